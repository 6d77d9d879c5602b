"""The arrays that the kernels read, and how they are filled.

A *field* is a rate, cost or weight. In each block of cells it is one number or one number per cell:
``data[start[f, b]]``, or ``data[start[f, b] + i]`` where ``vector[f]``. So a function of outer
coordinates costs one number per block, and a function of inner ones is stored once for all blocks.
Blocks may hold cells outside the space; ``inside[mask[b] + i]`` tells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["NONE", "Program", "ProgramBuilder"]

NONE = -1  # no field: cost 0, weight 1; no row in a choice array
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
MaskArray = NDArray[np.int8]


class Program(NamedTuple):
    """A compiled model. E terms, A actions and J moves in all, B blocks, F fields."""

    data: FloatArray
    start: IntArray  # (F, B)
    vector: BoolArray  # (F,)
    base: IntArray  # (B,) first cell
    size: IntArray  # (B,) cells
    inside: MaskArray  # 1 for cells of the space
    mask: IntArray  # (B,) where a block's part of inside begins
    cost: IntArray  # fields of the cost rate, to be added
    term_rate: IntArray  # (E,) field
    term_action: IntArray  # (E + 1,)
    term_choice: IntArray  # (E,) row in a choice array, or NONE for one-action terms
    action_cost: IntArray  # (A,) field or NONE
    action_move: IntArray  # (A + 1,)
    move_weight: IntArray  # (J,) field or NONE
    offset: IntArray  # (J,) cell offset (lattice form)
    depth: int  # rounded operations behind one right-hand side, for the rounding bound


class FieldStore:
    """Collects fields. `Layout` says how an array over the states is cut into blocks."""

    def __init__(self, layout: Any) -> None:
        self.layout = layout
        self.parts: list[FloatArray] = []
        self.starts: list[IntArray] = []
        self.vectors: list[bool] = []
        self.length = 0

    def add(self, array: NDArray[Any]) -> int:
        """Store an array that broadcasts over the states; its number."""
        part, start, vector = self.layout.cut(np.asarray(array, dtype=np.float64))
        self.starts.append(start + self.length)
        self.vectors.append(vector)
        self.parts.append(part)
        self.length += part.size
        return len(self.parts) - 1


class ProgramBuilder:
    """Turns evaluated terms into a `Program`."""

    def __init__(self, layout: Any) -> None:
        self.layout = layout
        self.fields = FieldStore(layout)
        self.cost: list[int] = []
        self.term_rate: list[int] = []
        self.term_action = [0]
        self.term_choice: list[int] = []
        self.action_cost: list[int] = []
        self.action_move = [0]
        self.move_weight: list[int] = []
        self.offset: list[int] = []

    def add_cost(self, array: NDArray[Any]) -> None:
        """Add a part of the cost rate; numbers are merged by the caller."""
        if np.any(array):
            self.cost.append(self.fields.add(array))

    def add_move(self, weight: NDArray[Any], offset: int) -> None:
        """A move of the action being built."""
        unit = weight.ndim == 0 and float(weight) == 1.0
        self.move_weight.append(NONE if unit else self.fields.add(weight))
        self.offset.append(offset)

    def end_action(self, cost: NDArray[Any]) -> None:
        """Close the action whose moves were added."""
        field = self.fields.add(cost) if np.any(cost) else NONE
        self.action_cost.append(field)
        self.action_move.append(len(self.move_weight))

    def end_term(self, rate: NDArray[Any]) -> None:
        """Close the term whose actions were added."""
        actions = len(self.action_cost) - self.term_action[-1]
        rows = sum(row != NONE for row in self.term_choice)
        self.term_rate.append(self.fields.add(rate))
        self.term_choice.append(rows if actions > 1 else NONE)
        self.term_action.append(len(self.action_cost))

    def build(self) -> Program:
        """The arrays."""
        layout = self.layout
        blocks = len(layout.base)
        most_moves = max(np.diff(self.action_move), default=0)
        integer = np.int64
        return Program(
            data=np.concatenate([*self.fields.parts, np.zeros(1)]),
            start=np.array(self.fields.starts, dtype=integer).reshape(-1, blocks),
            vector=np.array(self.fields.vectors, dtype=np.bool_),
            base=layout.base,
            size=layout.size,
            inside=layout.inside,
            mask=layout.mask,
            cost=np.array(self.cost, dtype=integer),
            term_rate=np.array(self.term_rate, dtype=integer),
            term_action=np.array(self.term_action, dtype=integer),
            term_choice=np.array(self.term_choice, dtype=integer),
            action_cost=np.array(self.action_cost, dtype=integer),
            action_move=np.array(self.action_move, dtype=integer),
            move_weight=np.array(self.move_weight, dtype=integer),
            offset=np.array(self.offset, dtype=integer),
            depth=int(len(self.cost) + 2 * len(self.term_rate) + 3 * most_moves + 8),
        )
