"""Random restless arms whose numbers are the same rationals in floats and in fractions.

Probabilities and rates are whole multiples of a power of two and rows sum exactly to 1 or 0, so
that the library and the exact second method are given one and the same arm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

import mdpcloud as mc
from tests.indices.exact_index import ExactPath, exact_path, optimal_differences

__all__ = ["KINDS", "TURNING", "TestArm", "arms", "make_arm", "published"]

Rng = np.random.Generator
FINE = 30  # bits of probabilities
WHOLE = 20  # bits of costs


@dataclass(frozen=True, eq=False)
class TestArm:
    """An arm in floats that are exact.

    ``moves`` (2, n, n) are probabilities, or generators where time is continuous; ``alpha`` is the
    discount rate, of a step the rate that belongs to its factor.
    """

    __test__ = False

    moves: np.ndarray
    costs: np.ndarray
    work: np.ndarray
    discrete: bool = True
    alpha: Fraction = Fraction(0)
    kind: str = ""

    @property
    def n(self) -> int:
        return int(self.costs.shape[1])

    @property
    def rates(self) -> np.ndarray:
        return self.moves - np.eye(self.n) if self.discrete else self.moves

    @property
    def criterion(self) -> Any:
        if self.alpha == 0:
            return mc.AverageCost()
        if self.discrete:
            return mc.Discounted(factor=float(1 / (1 + self.alpha)))
        return mc.Discounted(rate=float(self.alpha))

    def exact(self) -> ExactPath:
        def fractions(array: np.ndarray) -> Any:
            return [fractions(a) if a.ndim else Fraction(float(a)) for a in array]

        return exact_path(
            fractions(self.moves),
            fractions(self.costs),
            fractions(self.work),
            self.alpha,
            discrete=self.discrete,
        )

    def differences(self) -> Callable[[float], np.ndarray]:
        return optimal_differences(list(self.rates), self.costs, self.work, float(self.alpha))

    def built(self, sparse: bool = False) -> Any:
        """The arm of the library."""
        from scipy.sparse import csr_array

        from mdpcloud.indices.restless.arm import arm, rate_arm

        make = arm if self.discrete else rate_arm
        moves = [csr_array(m) if sparse else m for m in self.moves]
        work0, work1 = self.work
        return make(*moves, *self.costs, work0=work0, work1=work1)

    def __repr__(self) -> str:
        parts = {k: np.asarray(getattr(self, k)).tolist() for k in ("moves", "costs", "work")}
        return f"TestArm({self.kind!r}, {parts}, discrete={self.discrete}, alpha={self.alpha!r})"


def dyadic(weights: np.ndarray, bits: int) -> np.ndarray:
    """Rows of probabilities near those of the weights, multiples of 2^-bits that sum to 1."""
    total = weights.sum(axis=-1, keepdims=True)
    counts = np.floor(weights / total * 2.0**bits)
    largest = np.argmax(weights, axis=-1)[..., None]
    rest = 2.0**bits - counts.sum(axis=-1, keepdims=True)
    np.put_along_axis(counts, largest, np.take_along_axis(counts, largest, -1) + rest, -1)
    return counts / 2.0**bits


def numbers(rng: Rng, shape: tuple[int, ...], bits: int = WHOLE) -> np.ndarray:
    return np.round(rng.standard_normal(shape) * 2.0**bits) / 2.0**bits


def standard_work(n: int) -> np.ndarray:
    return np.stack([np.zeros(n), np.ones(n)])


def dense(rng: Rng, n: int) -> TestArm:
    return TestArm(dyadic(rng.random((2, n, n)), FINE), numbers(rng, (2, n)), standard_work(n))


def peaked(rng: Rng, n: int) -> TestArm:
    """Rows with a few large entries; several per cent of them are not indexable."""
    weights = rng.random((2, n, n)) ** 6 + 1e-6
    return TestArm(dyadic(weights, FINE), numbers(rng, (2, n)), standard_work(n))


def sparse(rng: Rng, n: int) -> TestArm:
    """Two successors per state; state 0 is always one of them or near."""
    weights = rng.random((2, n, n)) * (rng.random((2, n, n)) < 2.0 / n)
    weights[..., 0] += 0.1
    return TestArm(dyadic(weights, FINE), numbers(rng, (2, n)), standard_work(n))


def coarse(rng: Rng, n: int) -> TestArm:
    """Small denominators: prices coincide."""
    weights = rng.integers(0, 3, (2, n, n)) + 0.5 * n * np.eye(n)[0]
    costs = rng.integers(-2, 3, (2, n)) / 2.0
    return TestArm(dyadic(weights, 3), costs, standard_work(n))


def alike(rng: Rng, n: int) -> TestArm:
    """Some states are copies of others, some rows are the same under both actions."""
    arm = dense(rng, n)
    copies = np.sort(rng.integers(0, n, n))
    moves, costs = arm.moves[:, copies].copy(), arm.costs[:, copies]
    same = rng.random(n) < 0.3
    moves[1, same] = moves[0, same]
    return TestArm(moves, costs, arm.work)


def decomposable(rng: Rng, n: int) -> TestArm:
    """Two blocks with links of probability 2^-8 to 2^-40."""
    cut = int(rng.integers(1, n)) if n > 1 else 1
    block = np.arange(n) < cut
    weights = rng.random((2, n, n)) * (block[:, None] == block)
    moves = dyadic(weights, 10)
    link = 2.0 ** -int(rng.integers(8, 41))
    for a in range(2):
        for i in range(n):
            others = np.flatnonzero(block != block[i])
            if others.size:
                moves[a, i, np.argmax(moves[a, i])] -= link
                moves[a, i, rng.choice(others)] += link
    return TestArm(moves, numbers(rng, (2, n), 8), standard_work(n))


def periodic(rng: Rng, n: int) -> TestArm:
    """A cycle; activity may jump to its beginning."""
    forward = np.roll(np.eye(n), 1, axis=1)
    moves = np.stack([forward, forward])
    jumps = rng.random(n) < 0.5
    moves[1, jumps] = np.eye(n)[0]
    return TestArm(moves, numbers(rng, (2, n)), standard_work(n))


def absorbing(rng: Rng, n: int) -> TestArm:
    """Passivity stops in some states, activity in some others."""
    arm = sparse(rng, n)
    moves = arm.moves.copy()
    for a in range(2):
        stops = rng.random(n) < 0.3
        moves[a, stops] = np.eye(n)[stops]
    return TestArm(moves, arm.costs, arm.work)


def restful(rng: Rng, n: int) -> TestArm:
    """A passive arm stays where it is and costs nothing: Gittins' bandit."""
    arm = dense(rng, n)
    moves = np.stack([np.eye(n), arm.moves[1]])
    costs = np.stack([np.zeros(n), arm.costs[1]])
    return TestArm(moves, costs, arm.work, alpha=Fraction(1))


def decades(rng: Rng, n: int) -> TestArm:
    """A generator with rates over twelve decades."""
    exponents = rng.integers(-20, 21, (2, n, n))
    rates = (1.0 + rng.integers(0, 8, (2, n, n)) / 8.0) * 2.0**exponents
    rates *= rng.random((2, n, n)) < 0.7
    rates[:, :, 0] += 2.0**-10
    return TestArm(with_diagonal(rates), numbers(rng, (2, n), 8), standard_work(n), discrete=False)


def ladder(rng: Rng, n: int) -> TestArm:
    """A birth-death generator: activity lets jobs in, as in the routing model."""
    moves = np.zeros((2, n, n))
    for i in range(n - 1):
        moves[1, i, i + 1] = rng.integers(1, 9) / 2.0
        moves[0, i, i + 1] = moves[1, i, i + 1] * rng.integers(0, 4) / 4.0
        moves[:, i + 1, i] = rng.integers(1, 9, 2) / 2.0 if rng.random() < 0.3 else (i + 1.0)
    costs = np.cumsum(rng.integers(0, 5, n)) / 4.0 * np.ones((2, n))
    return TestArm(with_diagonal(moves), costs, standard_work(n), discrete=False)


def laborious(rng: Rng, n: int) -> TestArm:
    """Work in every state, passive and active."""
    arm = dense(rng, n)
    passive = rng.integers(0, 4, n) / 4.0
    active = passive + rng.integers(1, 8, n) / 4.0
    return TestArm(arm.moves, arm.costs, np.stack([passive, active]))


def idle(rng: Rng, n: int) -> TestArm:
    """In some states activity is no more work; in some of them it makes no difference at all."""
    arm = coarse(rng, n)
    moves, costs, work = arm.moves.copy(), arm.costs.copy(), arm.work.copy()
    free = rng.random(n) < 0.4
    work[1, free] = 0.0
    same = free & (rng.random(n) < 0.7)
    moves[1, same] = moves[0, same]
    equal = same & (rng.random(n) < 0.5)
    costs[1, equal] = costs[0, equal]
    return TestArm(moves, costs, work)


def with_diagonal(rates: np.ndarray) -> np.ndarray:
    rates = rates * (1.0 - np.eye(rates.shape[-1]))
    return rates - np.eye(rates.shape[-1]) * rates.sum(axis=-1)[..., None]


KINDS: dict[str, Callable[[Rng, int], TestArm]] = {
    make.__name__: make
    for make in (
        dense,
        peaked,
        sparse,
        coarse,
        alike,
        decomposable,
        periodic,
        absorbing,
        restful,
        decades,
        ladder,
        laborious,
        idle,
    )
}
TURNING = (40, 46, 75, 120, 194, 252, 303, 354)  # peaked arms of 3 states, not indexable
DISCOUNTS = (Fraction(0), Fraction(1), Fraction(1, 8), Fraction(1, 1024))


def make_arm(kind: str, seed: int, n: int, discount: Fraction = Fraction(0)) -> TestArm:
    """The arm of this kind and number."""
    found = KINDS[kind](np.random.default_rng([seed, n]), n)
    alpha = found.alpha or discount
    return TestArm(found.moves, found.costs, found.work, found.discrete, alpha, f"{kind} {seed}")


def arms(
    kinds: Any = tuple(KINDS), largest: int = 5, discounts: Any = DISCOUNTS
) -> st.SearchStrategy[TestArm]:
    """Arms of at most so many states."""
    return st.builds(
        make_arm,
        st.sampled_from(list(kinds)),
        st.integers(0, 2**32 - 1),
        st.integers(1, largest),
        st.sampled_from(list(discounts)),
    )


def published() -> TestArm:
    """The arm of markovianbandit-pkg's README (its seed 2791) that is not indexable.

    The printed probabilities are rounded here to multiples of 2^-30.
    """
    passive = [
        [0.2168, 0.7246, 0.005, 0.0536],
        [0.463, 0.2776, 0.0475, 0.2119],
        [0.0906, 0.1627, 0.0822, 0.6645],
        [0.4645, 0.1505, 0.1958, 0.1892],
    ]
    active = [
        [0.1013, 0.509, 0.2344, 0.1553],
        [0.1655, 0.0166, 0.1173, 0.7006],
        [0.3943, 0.564, 0.0156, 0.0261],
        [0.0543, 0.1092, 0.0992, 0.7373],
    ]
    rewards = np.array([[0.7235, 0.8718, 0.6831, 0.5825], [0.5426, 0.1168, 0.7152, 0.8725]])
    moves = dyadic(np.array([passive, active]), FINE)
    factor = Fraction(99, 100)
    return TestArm(moves, -rewards, standard_work(4), alpha=(1 - factor) / factor, kind="published")
