"""Laws of durations, of service times and of patience: shapes of mean 1.

What uses a law scales it: a node's rates say what its mean service time and mean patience are. A
law's squared coefficient of variation, ``scv``, is its variance, as its mean is 1. In scenario
files a law is a table that begins with its name: ``service = { law = "erlang", phases = 4 }``.

Phase-type laws are the times to absorption of a chain with initial law alpha and rates T between
its phases; with mean m = -alpha T^-1 1 before it is scaled,

    scv = 2 alpha T^-2 1 / m^2 - 1

(Neuts 1981, "Matrix-Geometric Solutions in Stochastic Models", section 2.2); both are computed from
the chain of the phases visited, the same that is sampled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le, MinLen
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.parameters import Tag, validate

__all__ = [
    "Deterministic",
    "Erlang",
    "Exponential",
    "Hyperexponential",
    "Law",
    "Lognormal",
    "PhaseType",
    "Uniform",
]

Floats: TypeAlias = NDArray[np.float64]

MOST_SCV = 1e6  # beyond, no simulation sees what the mean is made of
MOST_PHASES = 10_000  # visited on average by a duration of phase type
SUM_ERROR = 1e-9  # of probabilities that shall sum to 1, and of rates that shall sum to 0


@dataclass(frozen=True)
class Exponential:
    """The exponential law.

    Examples
    --------
    >>> Exponential().scv
    1.0
    """

    law: Literal["exponential"] = field(default="exponential", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        validate(self)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return 1.0

    def sample(self, generator: np.random.Generator, n: int) -> Floats:
        """Independent durations (n,) of mean 1."""
        return generator.standard_exponential(n)


@dataclass(frozen=True)
class Deterministic:
    """All durations are equal.

    Examples
    --------
    >>> Deterministic().scv
    0.0
    """

    law: Literal["deterministic"] = field(default="deterministic", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        validate(self)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return 0.0

    def sample(self, generator: np.random.Generator, n: int) -> Floats:
        """Durations (n,), all 1; the generator is not used."""
        return np.ones(n)


@dataclass(frozen=True)
class Erlang:
    """The sum of independent exponential phases.

    Parameters
    ----------
    phases : int
        Number of phases.

    Examples
    --------
    >>> Erlang(4).scv
    0.25
    """

    phases: Annotated[int, Ge(1)]
    law: Literal["erlang"] = field(default="erlang", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        validate(self)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return 1.0 / self.phases

    def sample(self, generator: np.random.Generator, n: int) -> Floats:
        """Independent durations (n,) of mean 1."""
        return generator.standard_gamma(float(self.phases), n) / self.phases


@dataclass(frozen=True)
class Hyperexponential:
    """A mixture of exponential laws: more variable than one of them.

    Given by its weights and rates, or by its squared coefficient of variation: then it has two
    branches that contribute equally to the mean ("balanced means"; Whitt 1982, "Approximating a
    point process by a renewal process, I", Operations Research 30, 125-147, eq. 3.7).

    Parameters
    ----------
    weights : tuple of float
        Probability of each branch.
    rates : tuple of float
        Rate of each branch, up to a common factor.
    scv : float
        Squared coefficient of variation; from the weights and rates if they are given.

    Examples
    --------
    >>> Hyperexponential(scv=3.0)
    Hyperexponential(weights=(0.853..., 0.146...), rates=(1.707..., 0.292...), scv=3.0)
    >>> round(Hyperexponential((0.5, 0.5), (1.0, 3.0)).scv, 12)
    1.5
    """

    weights: Annotated[tuple[Annotated[float, Gt(0)], ...], MinLen(1)] | None = None
    rates: Annotated[tuple[Annotated[float, Gt(0)], ...], MinLen(1)] | None = None
    scv: Annotated[float, Ge(1), Le(MOST_SCV)] | None = None
    law: Literal["hyperexponential"] = field(default="hyperexponential", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        validate(self)
        if (self.weights is None) != (self.rates is None):
            raise InputError("Hyperexponential: weights and rates must be given together")
        if self.weights is None or self.rates is None:
            self._balance()
        else:
            self._measure(self.weights, self.rates)

    def _balance(self) -> None:
        """Weights and rates of two branches of balanced means."""
        if self.scv is None:
            raise InputError("Hyperexponential: give scv, or weights and rates")
        high = 0.5 * (1.0 + math.sqrt((self.scv - 1.0) / (self.scv + 1.0)))
        low = 1.0 / ((self.scv + 1.0) * 2.0 * high)  # = 1 - high, without cancellation
        object.__setattr__(self, "weights", (high, low))
        object.__setattr__(self, "rates", (2.0 * high, 2.0 * low))

    def _measure(self, weights: tuple[float, ...], rates: tuple[float, ...]) -> None:
        """Squared coefficient of variation of the weights and rates."""
        if len(weights) != len(rates):
            raise InputError(
                f"Hyperexponential: there are {len(weights)} weights and {len(rates)} rates; each "
                "branch has one of both"
            )
        _check_sum("Hyperexponential: weights", weights)
        times = min(rates) / np.array(rates)
        means = weights * times / np.dot(weights, times)
        scv = float(2.0 * np.sum(means**2 / weights) - 1.0)
        if not scv <= MOST_SCV:
            raise InputError(
                f"Hyperexponential: the weights and rates make an scv of {scv:.3g}; it must be at "
                f"most {MOST_SCV:g}"
            )
        if self.scv is not None and not math.isclose(self.scv, scv, rel_tol=SUM_ERROR):
            raise InputError(
                f"Hyperexponential: scv is {self.scv:g}, but the weights and rates make it "
                f"{scv:g}; leave it out"
            )
        object.__setattr__(self, "scv", scv)

    def sample(self, generator: np.random.Generator, n: int) -> Floats:
        """Independent durations (n,) of mean 1."""
        rates = np.array(self.rates)
        means = rates.min() / rates
        branch = _drawn(np.cumsum(self.weights or ()), generator.random(n))
        scaled = means / np.dot(self.weights or (), means)
        return np.asarray(scaled[branch] * generator.standard_exponential(n))


@dataclass(frozen=True)
class Lognormal:
    """The law of exp(Z), Z normal.

    Parameters
    ----------
    scv : float
        Squared coefficient of variation.

    Examples
    --------
    >>> Lognormal(2.0).scv
    2.0
    """

    scv: Annotated[float, Gt(0), Le(MOST_SCV)]
    law: Literal["lognormal"] = field(default="lognormal", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        validate(self)

    def sample(self, generator: np.random.Generator, n: int) -> Floats:
        """Independent durations (n,) of mean 1."""
        variance = math.log1p(self.scv)
        return generator.lognormal(-0.5 * variance, math.sqrt(variance), n)


@dataclass(frozen=True)
class Uniform:
    """The uniform law on [1 - spread, 1 + spread].

    Parameters
    ----------
    spread : float
        Half the width of the interval.

    Examples
    --------
    >>> Uniform(0.6).scv
    0.12
    """

    spread: Annotated[float, Gt(0), Le(1)]
    law: Literal["uniform"] = field(default="uniform", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        validate(self)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return self.spread**2 / 3.0

    def sample(self, generator: np.random.Generator, n: int) -> Floats:
        """Independent durations (n,) of mean 1."""
        return generator.uniform(1.0 - self.spread, 1.0 + self.spread, n)


@dataclass(frozen=True)
class PhaseType:
    """The time to absorption of a Markov chain.

    Parameters
    ----------
    initial : tuple of float
        Probability of each phase at the beginning.
    generator : tuple of tuples of float
        Rates between the phases, up to a common factor; what a row lacks to 0 is the rate of
        absorption.

    Examples
    --------
    >>> PhaseType((1.0, 0.0), ((-2.0, 2.0), (0.0, -2.0))).scv
    0.5
    """

    initial: Annotated[tuple[Annotated[float, Ge(0)], ...], MinLen(1)]
    generator: tuple[tuple[float, ...], ...]
    law: Literal["phase_type"] = field(default="phase_type", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        validate(self)
        m = len(self.initial)
        if [len(row) for row in self.generator] != [m] * m:
            raise InputError(
                f"PhaseType: generator must be {m} lists of {m} rates, as initial has {m} phases"
            )
        _check_sum("PhaseType: initial", self.initial)
        self._check_rates()
        self._check_end()

    def _check_rates(self) -> None:
        rates = np.array(self.generator)
        for i, row in enumerate(rates):
            others = np.delete(row, i)
            if (others < 0.0).any() or row[i] >= 0.0 or row.sum() > SUM_ERROR * -row[i]:
                raise InputError(
                    f"PhaseType: generator[{i}] is {row.tolist()}; its rates to other phases must "
                    f"be >= 0, generator[{i}][{i}] < 0, and their sum <= 0"
                )

    def _check_end(self) -> None:
        """Every phase must lead to absorption, or the time to it may be infinite."""
        rates = np.array(self.generator)
        ends = self._absorption > SUM_ERROR
        for _ in self.initial:
            ends |= ((rates > 0.0) & ends).any(axis=1)
        if not ends.all():
            raise InputError(
                f"PhaseType: from phase {int(np.argmin(ends))} absorption is never reached; some "
                "row of the generator on the way must sum to less than 0"
            )
        phases = float(np.dot(self.initial, self._until_absorption(np.ones(len(rates)))))
        if not phases <= MOST_PHASES:
            raise InputError(
                f"PhaseType: a duration consists of {phases:.3g} phases on average; at most "
                f"{MOST_PHASES} can be simulated"
            )

    @cached_property
    def _absorption(self) -> Floats:
        """Per phase the probability that absorption is next."""
        rates = np.array(self.generator)
        return np.asarray(np.maximum(-rates.sum(axis=1), 0.0) / -np.diag(rates))

    @cached_property
    def _steps(self) -> Floats:
        """Probabilities (m, m + 1) of the phase after each phase; the last one is absorption."""
        rates = np.array(self.generator)
        jumps = rates / -np.diag(rates)[:, None]
        np.fill_diagonal(jumps, 0.0)
        steps = np.column_stack([jumps, self._absorption])
        return np.asarray(steps / steps.sum(axis=1, keepdims=True))

    def _until_absorption(self, per_visit: Floats) -> Floats:
        """Mean sum (m,) of what each visit of a phase adds, from each phase."""
        stay = np.eye(len(per_visit)) - self._steps[:, :-1]
        return np.asarray(np.linalg.solve(stay, per_visit), np.float64)

    @cached_property
    def _hold(self) -> Floats:
        """Mean time in each phase, where the mean of the law is 1."""
        rates = -np.diag(np.array(self.generator))
        times = rates.min() / rates
        return np.asarray(times / np.dot(self.initial, self._until_absorption(times)))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        times = self._until_absorption(self._hold)
        squares = self._until_absorption(2.0 * self._hold * times)
        return float(np.dot(self.initial, squares) - 1.0)

    def sample(self, generator: np.random.Generator, n: int) -> Floats:
        """Independent durations (n,) of mean 1."""
        phases = len(self.initial)
        durations = np.zeros(n)
        phase = _drawn(np.cumsum(self.initial), generator.random(n))
        alive = np.arange(n)
        while alive.size:
            durations[alive] += self._hold[phase] * generator.standard_exponential(alive.size)
            cumulative = np.cumsum(self._steps, axis=1)[phase]
            uniform = generator.random(alive.size)[:, None] * cumulative[:, -1:]
            phase = (cumulative[:, :-1] <= uniform).sum(axis=1)
            alive, phase = alive[phase < phases], phase[phase < phases]
        return durations


Law: TypeAlias = Annotated[
    Exponential | Deterministic | Erlang | Hyperexponential | Lognormal | Uniform | PhaseType,
    Tag("law"),
]
"""Any of the laws; in a scenario file its field ``law`` says which."""


def _drawn(cumulative: Floats, uniform: Floats) -> NDArray[np.int64]:
    """Number of the branch of each uniform number in [0, 1); none of probability 0."""
    return np.searchsorted(cumulative / cumulative[-1], uniform, side="right")


def _check_sum(owner: str, probabilities: tuple[float, ...]) -> None:
    total = math.fsum(probabilities)
    if abs(total - 1.0) > SUM_ERROR:
        raise InputError(f"{owner} must sum to 1, not {total:.12g}")
