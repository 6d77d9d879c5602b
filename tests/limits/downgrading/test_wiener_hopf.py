"""The walk at the threshold: published numbers, truncated walks solved without subtraction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.limits.downgrading.equilibrium import Link, equilibrium
from mdpcloud.limits.downgrading.wiener_hopf import fraction_below, walk_law
from tests.models import reference

SETS = reference("allocation")["S3"]["sets"]


def walk_of(one):
    """Rates of the walk at the equilibrium of a published set."""
    found = equilibrium(Link(one["lam"], one["mu"], one["A"], one["c"], one["c0"]))
    return one["lam"], np.multiply(found.jobs, one["mu"]), one["A"]


def at_equilibrium(one):
    return walk_law(*walk_of(one))


def truncated(rates, freed, units, reach):
    """The law of the walk kept within -reach ... reach."""
    size = 2 * reach + 1
    rows = np.arange(size)
    generator = np.zeros((size, size))
    below = rows < reach
    for rate, back, steps in zip(rates, freed, units, strict=True):
        up = np.where(below, steps, 1)
        np.add.at(generator, (rows, np.minimum(rows + up, size - 1)), rate)
        np.add.at(generator, (rows, np.maximum(rows - steps, 0)), back)
    np.fill_diagonal(generator, 0.0)
    return mc.stationary(generator - np.diag(generator.sum(axis=1)))


def reach_of(law, mass=1e-16):
    """Distance beyond which both tails are below a mass."""
    return int(np.log(mass) / max(-np.log(law.z1), np.log(law.z2))) + 30


@pytest.mark.parametrize("one", SETS)
class TestPublishedSets:
    def test_decay_rates_and_the_fraction_below(self, one):
        law = at_equilibrium(one)
        assert law.z1 == pytest.approx(one["z1"], rel=1e-13)
        assert law.z2 == pytest.approx(one["z2"], rel=1e-13)
        assert law.below == pytest.approx(one["pi_minus"], rel=1e-13)
        assert law.error < 1e-14

    def test_probabilities_are_those_printed(self, one):
        found = at_equilibrium(one).probabilities(-8, 8)
        printed = [one["pi_n"][str(m)] for m in range(-8, 9)]
        assert found == pytest.approx(printed, abs=1e-14)

    def test_the_mean_is_that_printed_for_a_truncated_walk(self, one):
        assert at_equilibrium(one).mean == pytest.approx(one["E_m"], abs=1e-8)

    def test_probabilities_agree_with_a_truncated_walk(self, one):
        law = at_equilibrium(one)
        reach = reach_of(law)
        other = truncated(*walk_of(one), reach)
        found = law.probabilities(-reach, reach)
        assert found == pytest.approx(other, abs=1e-13)
        assert found @ np.arange(-reach, reach + 1) == pytest.approx(law.mean, abs=1e-11)


rate = st.sampled_from([0.0, 1e-6]) | st.floats(0.05, 3.0)


@st.composite
def walks(draw):
    units = [1, *draw(st.lists(st.integers(2, 7), min_size=1, max_size=3))]
    rates = [draw(rate) for _ in units]
    freed = [draw(rate) for _ in units]
    assume(any(rates) and any(freed))
    total, up, down = sum(rates), np.dot(rates, units), np.dot(freed, units)
    assume(up > 1.2 * total)
    place = draw(st.floats(0.1, 0.9))  # of the units freed between both ends
    freed = np.array(freed) * (total + place * (up - total)) / down
    return np.array(rates), freed, units


class TestAnyWalk:
    @given(walks())
    @settings(max_examples=40, deadline=None)
    def test_the_law_is_that_of_a_truncated_walk(self, walk):
        law = walk_law(*walk)
        reach = reach_of(law)
        assume(reach < 340)
        other = truncated(*walk, reach)
        assert law.probabilities(-reach, reach) == pytest.approx(other, abs=1e-12)

    @given(walks())
    @settings(max_examples=60, deadline=None)
    def test_the_fraction_below_is_the_sum_of_its_probabilities(self, walk):
        law = walk_law(*walk)
        reach = int(np.log(1e-16) / np.log(law.z2))
        assume(reach < 5000)
        assert law.probabilities(-reach, -1).sum() == pytest.approx(law.below, abs=1e-11)

    @given(walks(), st.floats(1e-3, 1e3))
    @settings(max_examples=30, deadline=None)
    def test_the_unit_of_time_does_not_matter(self, walk, factor):
        rates, freed, units = walk
        one, other = walk_law(*walk), walk_law(factor * rates, factor * freed, units)
        assert other.probabilities(-9, 9) == pytest.approx(one.probabilities(-9, 9), abs=1e-12)


class TestUnusualRoots:
    def test_a_double_root_does_no_harm(self):
        # z^3 - 1.5 z^2 - 15/16 z - 1/8 = (z - 2) (z + 1/4)^2
        freed, units = (0.5625, 0.8125, 0.125), (1, 2, 3)
        law = walk_law((0.0, 0.2, 0.8), freed, units)
        assert law.z1 == pytest.approx(2.0, rel=1e-15)
        other = truncated((0.0, 0.2, 0.8), freed, units, reach_of(law))
        assert law.probabilities(-20, 20) == pytest.approx(
            other[other.size // 2 - 20 : other.size // 2 + 21], abs=1e-14
        )

    def test_steps_with_a_common_divisor_have_roots_on_the_unit_circle(self):
        walk = (0.0, 1.7), (0.0, 1.1), (1, 3)
        law = walk_law(*walk)
        reach = reach_of(law)
        other = truncated(*walk, reach)
        assert law.probabilities(-reach, reach) == pytest.approx(other, abs=1e-13)

    @pytest.mark.parametrize("tiny", [1e-8, 1e-16, 1e-300])
    def test_departures_of_the_largest_class_may_vanish(self, tiny):
        one = walk_law((0.3, 0.4, 0.1), (0.5, 0.2, tiny), (1, 2, 5))
        without = walk_law((0.3, 0.4, 0.1), (0.5, 0.2, 0.0), (1, 2, 5))
        assert one.probabilities(-9, 9) == pytest.approx(
            without.probabilities(-9, 9), abs=10 * tiny + 1e-14
        )

    def test_arrivals_of_the_largest_class_may_vanish(self):
        one = walk_law((0.3, 0.4, 1e-14), (0.35, 0.2, 0.01), (1, 2, 5))
        without = walk_law((0.3, 0.4, 0.0), (0.35, 0.2, 0.01), (1, 2, 5))
        assert one.probabilities(-9, 9) == pytest.approx(without.probabilities(-9, 9), abs=1e-13)

    def test_roots_beyond_the_range_of_numbers_are_missed_with_an_error(self):
        with pytest.raises(
            SolveError, match=r"5 and 3, besides 1 and z2; the walk has 4, 0, 4 and 4"
        ):
            walk_law((0.3, 0.4, 1e-100), (0.35, 0.2, 0.01), (1, 2, 5))

    def test_requirements_may_be_large(self):
        law = walk_law((0.3, 0.4), (0.6, 0.003), (1, 100))
        assert law.error < 1e-11
        reach = reach_of(law)
        assert law.probabilities(-reach, reach).sum() == pytest.approx(1.0, abs=1e-10)


class TestNearTheEdges:
    @pytest.mark.parametrize("gap", [1e-3, 1e-5])
    def test_the_law_stays_accurate(self, gap):
        for freed in ((0.3 + gap, 0.2), (0.3, 0.4 - gap)):
            law = walk_law((0.3, 0.4), freed, (1, 2))
            assert law.error < 1e-9
            assert min(law.z1 - 1.0, 1.0 - law.z2) < 4 * gap

    @pytest.mark.parametrize("gap", [1e-11, 1e-13, 1e-15])
    def test_a_wrong_number_is_never_returned(self, gap):
        for freed in ((0.3 + gap, 0.2), (0.3, 0.4 - gap)):
            with pytest.raises(SolveError, match=r"too inaccurate|found inside"):
                walk_law((0.3, 0.4), freed, (1, 2))

    def test_a_walk_that_drifts_to_the_right_has_no_law(self):
        with pytest.raises(NoLimitError, match=r"drifts to the right: .*, and are 0.1 more"):
            walk_law((0.3, 0.4), (0.2, 0.2), (1, 2))

    def test_a_walk_that_drifts_to_the_left_has_no_law(self):
        with pytest.raises(NoLimitError, match=r"drifts to the left: .*, and are 0.1 more"):
            fraction_below((0.3, 0.4), (0.4, 0.4), (1, 2))


class TestBadInput:
    @pytest.mark.parametrize(
        ("walk", "words"),
        [
            (((0.3, 0.4), (0.5,), (1, 2)), "one for each class"),
            (((0.3, -0.4), (0.5, 0.2), (1, 2)), "arrival_rates are"),
            (((0.3, 0.4), (0.5, np.nan), (1, 2)), "departure_rates are"),
            (((0.0, 0.0), (0.5, 0.2), (1, 2)), "not all 0"),
            (((0.3, 0.4), (0.5, 0.2), (1, 0)), "integers >= 1"),
            (((0.3, 0.4), (0.5, 0.2), (1, 2.5)), "integers >= 1"),
        ],
    )
    def test_is_refused_with_the_name_of_what_is_wrong(self, walk, words):
        with pytest.raises(InputError, match=words):
            walk_law(*walk)
