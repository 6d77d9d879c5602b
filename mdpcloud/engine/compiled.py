"""A model compiled: its numbers evaluated once, its sweeps run by the kernels."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine import fused, kernels
from mdpcloud.engine.chosen import cost_rate, lump_rate, moves_from
from mdpcloud.engine.generator import rates_under
from mdpcloud.engine.indexed import IndexedLayout, enumerate_states, inside_states
from mdpcloud.engine.lattice import LatticeLayout, lattice_grid
from mdpcloud.engine.listing import list_rows, open_actions, state_cost_rate
from mdpcloud.engine.memory import check_memory
from mdpcloud.engine.moves import balanced
from mdpcloud.engine.problem import Choice, Floats, Mixture, TermInfo, choice_dtype
from mdpcloud.engine.program import NONE, Program, ProgramBuilder
from mdpcloud.engine.rows import Matrix, Rows, RowsProblem
from mdpcloud.engine.scales import cost_scale, rate_bound
from mdpcloud.engine.terms import Grid, Term, choose_terms, evaluate_field, evaluate_terms
from mdpcloud.engine.threads import in_parallel
from mdpcloud.engine.vector_kernels import FAR
from mdpcloud.errors import InputError, SolveError
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice

__all__ = ["CompiledProblem", "Form", "compile_events"]

Form = Literal["lattice", "indexed"]
Array = NDArray[Any]
LEAST_FILL = 0.4  # part of its box that a region must fill for the lattice form to be faster
LOST = 1e200  # a right-hand side beyond this has met the value of a forbidden action
NO_CHOICE = np.zeros((0, 0), dtype=np.int8)


@dataclass(frozen=True, eq=False)
class CompiledProblem:
    """A model in lattice or indexed form; implements `mdpcloud.engine.problem.Problem`.

    Attributes
    ----------
    layout : LatticeLayout or IndexedLayout
    program : Program
    terms : tuple of TermInfo
    rate_bound, cost_scale : float
    choice : integer array (multi-action terms, cells), or None
        Fixed actions; None minimises.
    threads : int
    """

    layout: Any
    program: Program
    terms: tuple[TermInfo, ...]
    rate_bound: float
    cost_scale: float
    choice: Array | None = None
    threads: int = 1
    discrete: bool = field(default=False, init=False)

    @property
    def n(self) -> int:
        """Number of states."""
        return int(self.layout.n)

    @property
    def grid(self) -> Grid:
        """The states' coordinates."""
        grid: Grid = self.layout.grid
        return grid

    def pack(self, values: Floats) -> Floats:
        """States' values as a work array; under fixed actions the cells outside hold 0."""
        return np.asarray(self.layout.pack(values, FAR if self.choice is None else 0.0))

    def unpack(self, work: Floats) -> Floats:
        """Values of the states from a work array."""
        return np.asarray(self.layout.unpack(work))

    def backup(
        self, h: Floats, out: Floats, *, step: float, shift: float = 0.0, discount: float = 0.0
    ) -> tuple[float, float]:
        """One sweep, fast; see the protocol."""
        _, low, high, _ = self.sweeps(h, out, 1, step=step, shift=shift, discount=discount)
        return low, high

    def sweeps(
        self,
        h: Floats,
        out: Floats,
        count: int,
        *,
        step: float,
        shift: float = 0.0,
        discount: float = 0.0,
        target: float = 0.0,
        recentre: bool = False,
        keep: float = 1.0,
    ) -> tuple[int, float, float, bool]:
        """Up to ``count`` sweeps in one call; (done, low, high, whether the result is in ``out``).

        A sweep computes ``keep * h + step * (v - shift)``. It ends early when high - low <= target;
        with ``recentre`` the middle of the bounds is the next shift.
        """
        arguments = (
            *(
                h,
                out,
                self.program,
                self.layout.targets,
                self._fixed,
                count,
                float(keep),
                float(step),
            ),
            *(float(shift), float(discount), float(target), recentre),
        )
        if self._sweeps is None:
            done, low, high = kernels.sweeps(*arguments)
        elif self.threads == 1:
            done, low, high = self._sweeps.sweeps(*arguments)
        else:
            done, low, high = in_parallel(self._sweeps.sweeps_parallel, self.threads, *arguments)
        if not abs(high) < LOST:
            raise SolveError(
                "a sweep met a forbidden action: some policy or start leaves the state space, or "
                "the values grew beyond 1e200"
            )
        return int(done), float(low), float(high), done % 2 == 1

    @property
    def _fixed(self) -> Array:
        return NO_CHOICE if self.choice is None else self.choice

    @cached_property
    def _sweeps(self) -> Any:
        """The sweeps compiled for this structure; None where that does not pay."""
        if not fused.pays(self.program, self.n):
            return None
        indexed = len(self.layout.targets) > 0
        return fused.sweeps_of(self.program, indexed, self.choice is not None)

    def certify(self, h: Floats, *, discount: float = 0.0) -> tuple[float, float]:
        """Rigorous bounds of the right-hand side over all states; see `kernels.certify`."""
        low, high, finite = kernels.certify(
            h, self.program, self.layout.targets, self._fixed, float(discount)
        )
        if not finite or not abs(high) < LOST:
            raise SolveError("a value or right-hand side is not finite; nothing can be certified")
        return float(low), float(high)

    def greedy(self, h: Floats, margin: float) -> Choice:
        """Per term and state the first action within ``margin`` of the best; see the protocol."""
        choice = np.full((len(self.terms), self.n), -1, dtype=choice_dtype(self.terms))
        kernels.greedy(h, self.program, self.layout.targets, choice, float(margin))
        return choice

    def under(self, choice: Choice) -> CompiledProblem:
        """The uncontrolled problem in which every term takes the chosen action."""
        return dataclasses.replace(self, choice=self._pack_choice(choice))

    def mixed(self, mixture: Mixture) -> RowsProblem:
        """The uncontrolled problem of a randomised choice, as explicit rows."""
        return self.listed().mixed(mixture)

    def listed(self) -> RowsProblem:
        """The same problem in the form of explicit rows."""
        return RowsProblem(self.rows(), self.terms, labels=self.label, grid=self.grid)

    def chain(self) -> tuple[Matrix, Floats]:
        """Generator (n, n) and cost rate (n,) of an uncontrolled problem."""
        if self.choice is None and self.multi.size:
            return self.listed().chain()
        return balanced(rates_under(self, None)), state_cost_rate(self) + lump_rate(self)

    @property
    def chain_roundings(self) -> int:
        """Most roundings in a rate of `chain`: a product, and moves to one state are added up."""
        return 1 + len(self.program.move_weight)

    def flow(self, h: Floats, out: Floats, shift: float = 0.0) -> None:
        """Set out = Q h - shift for an uncontrolled problem; other cells stay as in h."""
        self._without_costs.sweeps(h, out, 1, step=1.0, keep=0.0, shift=shift)

    def moves_from(self, state: int) -> tuple[int, Array, Floats]:
        """Place of a state in work arrays, those of its targets, and the rates; uncontrolled."""
        cell = self.layout.cell(state)
        return cell, *moves_from(self, cell)

    def walk(self, jumps: int) -> tuple[Array, Floats]:
        """States that a seeded walk visits, and how long it stays there; uncontrolled."""
        where = self.program, self.layout.targets, self._fixed
        cells, stays = kernels.walk(*where, self.layout.cell(0), jumps)
        return self.layout.states(cells), stays

    def likely_state(self, jumps: int = 20_000) -> int:
        """A state where an uncontrolled problem is often: where a walk spends most time."""
        visited, stays = self.walk(jumps)
        states, place = np.unique(visited, return_inverse=True)
        return int(states[np.argmax(np.bincount(place, stays))])

    def cost_work(self) -> Floats:
        """Cost rate of an uncontrolled problem as a work array, 0 in cells outside the space."""
        return np.asarray(self.layout.pack(cost_rate(self), 0.0))

    def with_cost(self, values: Floats) -> CompiledProblem:
        """The same problem with the cost rate values (n,) alone, and no lump costs."""
        part, start, vector = self.layout.cut(self.layout.over_box(values))
        p = self._without_costs.program
        program = p._replace(
            data=np.concatenate([p.data, part]),
            start=np.vstack([p.start, start + p.data.size]),
            vector=np.append(p.vector, vector),
            cost=np.array([len(p.start)]),
        )
        scale = float(np.abs(values).max(initial=0.0))
        return dataclasses.replace(self, program=program, cost_scale=scale)

    @cached_property
    def _without_costs(self) -> CompiledProblem:
        p = self.program
        program = p._replace(cost=p.cost[:0], action_cost=np.full_like(p.action_cost, NONE))
        return dataclasses.replace(self, program=program, cost_scale=0.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the lattice where the states fill it, else (n,)."""
        return self.grid.shape if self.grid.inside is None else (self.n,)

    def state(self, index: Any) -> Any:
        """The named tuple of coordinates of a state (int) or of several (slice)."""
        columns = [column[index] for column in self.columns]
        return self.grid.axes.state([c if c.shape else int(c) for c in columns])

    def allowed(self, e: int) -> tuple[Array, Array]:
        """Which actions of term e may be taken, (A, n), and where its rate is positive, (n,)."""
        first, last = self.program.term_action[e], self.program.term_action[e + 1]
        open_ = [open_actions(self, a) for a in range(first, last)]
        return np.array(open_), self._active[e]

    def label(self, state: int) -> str:
        """The state's coordinates, for messages."""
        return self.grid.axes.describe([int(column[state]) for column in self.columns])

    @cached_property
    def multi(self) -> Array:
        """Numbers of the terms with several actions: the rows of the kernels' choice array."""
        return np.flatnonzero(self.program.term_choice != NONE)

    @cached_property
    def columns(self) -> list[Array]:
        """Coordinates of the states: one column of length n per flat axis."""
        return [self.layout.spread(column) for column in self.grid.columns]

    def field(self, value: Any, owner: str) -> Floats:
        """A number or function of x, as one number per state."""
        return np.asarray(self.layout.spread(evaluate_field(value, self.grid, owner)))

    def _pack_choice(self, choice: Choice) -> Array:
        dtype = choice_dtype(self.terms)
        rows = [self.layout.pack(choice[term], -1, dtype) for term in self.multi]
        return np.array(rows, dtype=dtype).reshape(len(rows), self.layout.cells)

    def field_values(self, number: int) -> Floats:
        """A field of the program, as one number per state."""
        values = np.empty(self.n)
        kernels.spread(self.program, number, values)
        return values

    @cached_property
    def _active(self) -> Array:
        """Where each term's rate is positive: booleans (terms, n)."""
        return np.array([self.field_values(f) > 0 for f in self.program.term_rate])

    def target_states(self, move: int) -> Array:
        """State number of the target of a move in every state, -1 where it leaves the space."""
        layout = self.layout
        if len(layout.targets):
            return np.asarray(layout.rank_of_cell[layout.targets[move]])
        return np.asarray(layout.rank_of_cell[layout.cell_of_state + self.program.offset[move]])

    def rows(self) -> Rows:
        """Explicit rows: one per state, term and allowed action with a positive rate."""
        return self._rows

    @cached_property
    def _rows(self) -> Rows:
        return list_rows(self)


def compile_events(model: Model, form: Form | None = None, threads: int = 1) -> CompiledProblem:
    """Compile a model; without ``form`` the faster form is chosen.

    Raises
    ------
    InputError
        When the model is not consistent (see `mdpcloud.engine.terms`), has a state in which an
        event has no allowed action, or is too large for the memory.
    """
    if isinstance(model.space, Lattice):
        check_memory(model.space)
        grid = lattice_grid(model.space)
        compiled = None if form == "indexed" else _try_lattice(model, grid, form, threads)
        if compiled is not None:
            return compiled
        grid = inside_states(grid)
    elif form == "lattice":
        raise InputError("a Reachable space has no lattice form")
    else:
        grid = enumerate_states(model)
    terms = evaluate_terms(model.events, grid)
    moves = sum(len(choice.moves) for term in terms for choice in term.choices)
    return _assemble(model, terms, IndexedLayout(grid, moves), threads)


def _try_lattice(
    model: Model, grid: Grid, form: Form | None, threads: int
) -> CompiledProblem | None:
    if form is None and grid.inside is not None and grid.inside.mean() < LEAST_FILL:
        return None
    terms = evaluate_terms(model.events, grid)
    moves = [move for term in terms for choice in term.choices for move in choice.moves]
    if not all(move.constant for move in moves):
        if form == "lattice":
            raise InputError("a step depends on the state; such a model has only the indexed form")
        return None
    return _assemble(model, terms, LatticeLayout(grid, [move.shift for move in moves]), threads)


def _assemble(model: Model, terms: list[Term], layout: Any, threads: int) -> CompiledProblem:
    grid = layout.grid
    masks = choose_terms(terms, layout.leaves, grid)
    builder = ProgramBuilder(layout)
    costs = _cost_fields(layout, [evaluate_field(c, grid, "cost rate") for c in model.cost_rate])
    for cost in costs:
        builder.add_cost(cost)
    for term in terms:
        for choice in term.choices:
            for move in choice.moves:
                builder.add_move(move.weight, layout.offset(move))
            barred = np.array(False) if choice.allowed is None else ~choice.allowed
            builder.end_action(np.where(barred, FAR, choice.cost) if barred.any() else choice.cost)
        builder.end_term(term.rate)
    infos = tuple(
        TermInfo(t.name, tuple(c.name for c in t.choices), _is_decision(t, m, grid))
        for t, m in zip(terms, masks, strict=True)
    )
    return CompiledProblem(
        layout,
        builder.build(),
        infos,
        rate_bound=rate_bound(terms, masks, grid),
        cost_scale=cost_scale(costs, terms, masks, grid),
        threads=threads,
    )


def _cost_fields(layout: Any, parts: list[Array]) -> list[Array]:
    """Fields whose sum is the cost rate; costs of both signs are left apart, as sums may cancel."""
    if all((p >= 0).all() for p in parts) or all((p <= 0).all() for p in parts):
        return list(layout.merge(parts))
    return parts


def _is_decision(term: Term, masks: list[Array], grid: Grid) -> bool:
    if len(masks) == 1:
        return False
    one, several = masks[0], np.array(False)
    for mask in masks[1:]:
        one, several = one | mask, several | (one & mask)
    return grid.first(several & (term.rate > 0)) is not None
