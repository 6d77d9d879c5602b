"""Sweeps written and compiled for one structure of model, all terms in one pass over the cells.

The structure is the number of terms, actions and moves, which fields vary inside a block, the form
(lattice or indexed), and whether the actions are fixed. From it `write` makes the source of a
sweep in which every field, action and move has its own variable, such as, for one queue,

    v = f0
    v += f2 * (least(here + f1, h0) - here)  # arrival
    v += f3 * (h1 - here)  # departure

where a leading f is a field, h the value at the target of a move. The source is a file in the cache
folder, named after its hash, and is compiled once; models of the same structure share it. The loops
of `mdpcloud.engine.kernels` compute the same for any structure, some twenty times slower.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Self

import numpy as np

from mdpcloud.engine.jit import cache_folder
from mdpcloud.engine.program import NONE, Program

__all__ = ["FEWEST", "MOST", "load_sweeps", "pays", "sweeps_of", "write"]

FEWEST = 1000  # states from which a compilation of some two seconds pays
MOST = 300  # moves and fields; beyond, compilation takes too long

FRAME = '''\
"""A sweep over models of one structure, written by mdpcloud.engine.fused (see there)."""

import numpy as np
from numba import prange

from mdpcloud.engine.jit import kernel
from mdpcloud.engine.vector_kernels import FAR, FAST, choose, least, load, most, store


@kernel(fastmath=FAST)
def _sweep(h, out, p, targets, choice, first, last, keep, step, shift, discount):
    """Sweep the blocks first..last-1; the least and the largest right-hand side v."""
    data, inside = p.data, p.inside
    {arrays}
    low, high = FAR, -FAR
    for b in range(first, last):
        x = p.base[b]
        {starts}
        for i in range(p.size[b]):
            here = load(h, x + i)
            {loads}
            {values}
            {result}
    return low, high


@kernel(fastmath=FAST)
def sweeps(h, out, p, targets, choice, count, keep, step, shift, discount, target, recentre):
    """See mdpcloud.engine.kernels.sweeps."""
    low, high, done = -FAR, FAR, 0
    while done < count and high - low > target:
        low, high = _sweep(h, out, p, targets, choice, 0, p.size.size, keep, step, shift, discount)
        h, out = out, h
        done += 1
        if recentre:
            shift = 0.5 * (low + high)
        if not high - low < FAR:
            break
    return done, low, high


@kernel(fastmath=FAST, parallel=True)
def sweeps_parallel(
    threads, h, out, p, targets, choice, count, keep, step, shift, discount, target, recentre
):
    """The same, the blocks split in as many chunks as threads."""
    blocks = p.size.size
    lows, highs = np.empty(threads), np.empty(threads)
    low, high, done = -FAR, FAR, 0
    while done < count and high - low > target:
        for c in prange(threads):
            lows[c], highs[c] = _sweep(
                *(h, out, p, targets, choice, c * blocks // threads, (c + 1) * blocks // threads),
                *(keep, step, shift, discount),
            )
        low, high = lows.min(), highs.max()
        h, out = out, h
        done += 1
        if recentre:
            shift = 0.5 * (low + high)
        if not high - low < FAR:
            break
    return done, low, high
'''

EVERYWHERE = (
    "low, high = least(low, v), most(high, v)",
    "store(out, x + i, keep * here + step * (v - shift))",
)
INSIDE = (
    "inner = load(inside, m + i) != 0",
    "low, high = least(low, choose(inner, v, FAR)), most(high, choose(inner, v, -FAR))",
    "store(out, x + i, choose(inner, keep * here + step * (v - shift), here))",
)


def pays(program: Program, states: int) -> bool:
    """Whether to compile a sweep for this model."""
    return states >= FEWEST and len(program.offset) + len(program.vector) <= MOST


@cache
def load_sweeps(source: str) -> ModuleType:
    """The module of a source; its file is written when it is new."""
    name = f"mdpcloud_sweep_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    path = cache_folder() / f"{name}.py"
    if not path.exists():
        _write_at_once(path, source)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba finds the functions that it cached by their module's name
    spec.loader.exec_module(module)
    return module


def _write_at_once(path: Path, text: str) -> None:
    """Write a file that other processes see whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(name, path)


class Structure(NamedTuple):
    """What the source of a sweep depends on; names as in `Program`."""

    vector: tuple[bool, ...]
    cost: tuple[int, ...]
    term_rate: tuple[int, ...]
    term_action: tuple[int, ...]
    term_choice: tuple[int, ...]
    action_cost: tuple[int, ...]
    action_move: tuple[int, ...]
    move_weight: tuple[int, ...]
    same: tuple[int, ...]  # numbers of the offsets: equal moves of the lattice form share loads
    whole: bool  # whether every cell of a block belongs to the space
    indexed: bool
    fixed: bool

    @classmethod
    def of(cls, program: Program, indexed: bool, fixed: bool) -> Self:
        """The structure of a program; see `write`."""
        same = () if indexed else np.unique(program.offset, return_inverse=True)[1].tolist()
        return cls(
            **{name: tuple(getattr(program, name).tolist()) for name in cls._fields[:8]},
            same=tuple(same),
            whole=bool(program.inside.all()),
            indexed=indexed,
            fixed=fixed,
        )


def sweeps_of(program: Program, indexed: bool, fixed: bool) -> ModuleType:
    """The module of the sweep for a model's structure; see `write`."""
    return _module(Structure.of(program, indexed, fixed))


@cache
def _module(structure: Structure) -> ModuleType:
    return load_sweeps(_Writer(structure).source())


def write(program: Program, indexed: bool, fixed: bool) -> str:
    """Source of the sweep for a model's structure.

    Parameters
    ----------
    program : Program
    indexed : bool
        Whether moves have columns of targets, not offsets.
    fixed : bool
        Whether the actions of a choice are taken, not the minimum.
    """
    return _Writer(Structure.of(program, indexed, fixed)).source()


class _Writer:
    """Collects the lines of a sweep."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.arrays: list[str] = []
        self.starts: list[str] = []
        self.loads: list[str] = []
        self.values: list[str] = []

    def source(self) -> str:
        """The whole module."""
        p = self.structure
        result: Sequence[str] = EVERYWHERE
        if not p.whole:
            self.starts.append("m = p.mask[b]")
            result = INSIDE
        costs = " + ".join(self.field(f) for f in p.cost) or "0.0"
        self.values.append(f"v = {costs} - discount * here")
        for e in range(len(p.term_rate)):
            self.values.append(f"v += {self.field(p.term_rate[e])} * {self.term(e)}")
        return FRAME.format(
            arrays=_block(self.arrays, 1),
            starts=_block(self.starts, 2),
            loads=_block(self.loads, 3),
            values=_block(self.values, 3),
            result=_block(result, 3),
        )

    def once(self, lines: list[str], line: str) -> None:
        """Add a line unless it is there."""
        if line not in lines:
            lines.append(line)

    def field(self, number: int) -> str:
        """Variable that holds a field: of the block, or of the cell."""
        if self.structure.vector[number]:
            self.once(self.starts, f"s{number} = p.start[{number}, b]")
            self.once(self.loads, f"f{number} = load(data, s{number} + i)")
        else:
            self.once(self.starts, f"f{number} = data[p.start[{number}, b]]")
        return f"f{number}"

    def target(self, move: int) -> str:
        """Variable that holds the value at the target of a move."""
        if self.structure.indexed:
            self.once(self.arrays, f"t{move} = targets[{move}]")
            self.once(self.loads, f"h{move} = load(h, load(t{move}, x + i))")
            return f"h{move}"
        first = self.structure.same.index(self.structure.same[move])
        self.once(self.starts, f"y{first} = x + p.offset[{first}]")
        self.once(self.loads, f"h{first} = load(h, y{first} + i)")
        return f"h{first}"

    def term(self, e: int) -> str:
        """What a rate is multiplied with; actions are compared without - here where they can be."""
        first, last = self.structure.term_action[e : e + 2]
        actions = range(first, last)
        plain = all(self.is_plain(a) for a in actions)
        values = [self.plain_action(a) if plain else self.action(a) for a in actions]
        best = (
            self.chosen(e, values) if self.structure.fixed and len(values) > 1 else _least(values)
        )
        return f"({best} - here)" if plain else f"({best})"

    def is_plain(self, action: int) -> bool:
        """Whether an action has at most one move, of weight 1."""
        first, last = self.structure.action_move[action : action + 2]
        return all(w == NONE for w in self.structure.move_weight[first:last]) and last - first <= 1

    def plain_action(self, action: int) -> str:
        """k_a + h(y_a)."""
        first, last = self.structure.action_move[action : action + 2]
        value = self.target(first) if last > first else "here"
        cost = self.structure.action_cost[action]
        return value if cost == NONE else f"{value} + {self.field(cost)}"

    def action(self, action: int) -> str:
        """k_a + sum_j w_aj (h(y_j) - h(x))."""
        p = self.structure
        cost = p.action_cost[action]
        parts = [] if cost == NONE else [self.field(cost)]
        for j in range(*p.action_move[action : action + 2]):
            flow = f"({self.target(j)} - here)"
            weight = p.move_weight[j]
            parts.append(flow if weight == NONE else f"{self.field(weight)} * {flow}")
        return " + ".join(parts) or "0.0"

    def chosen(self, e: int, values: Sequence[str]) -> str:
        """Variable that holds the value of the chosen action of a term."""
        row = self.structure.term_choice[e]
        self.once(self.arrays, f"c{row} = choice[{row}]")
        self.once(self.loads, f"a{row} = load(c{row}, x + i)")
        self.values.append(f"b{row} = {values[0]}")
        for number, value in enumerate(values[1:], start=1):
            self.values.append(f"b{row} = choose(a{row} == {number}, {value}, b{row})")
        return f"b{row}"


def _least(values: Sequence[str]) -> str:
    """The minimum of some expressions, in pairs."""
    while len(values) > 1:
        pairs = [f"least({a}, {b})" for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + list(values[len(pairs) * 2 :])
    return values[0]


def _block(lines: Sequence[str], depth: int) -> str:
    return f"\n{'    ' * depth}".join(lines) or "pass"
