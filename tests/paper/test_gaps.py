from statistics import NormalDist, mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.errors import OptionError
from arcfleet.paper.gaps import paired_gaps, student_quantile


@pytest.mark.parametrize(
    ("freedom", "expected"),  # from printed tables
    [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (9, 2.262),
        (30, 2.042),
        (120, 1.980),
    ],
)
def test_quantiles_of_student(freedom: int, expected: float) -> None:
    assert student_quantile(freedom) == pytest.approx(expected, abs=6e-4)


def test_quantiles_fall_towards_the_normal_ones() -> None:
    quantiles = [student_quantile(freedom) for freedom in range(1, 150)]
    assert quantiles == sorted(quantiles, reverse=True)
    assert student_quantile(100_000) == pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-4)
    assert student_quantile(5, 0.99) == pytest.approx(4.032, abs=6e-4)


def test_gaps_by_hand() -> None:
    gaps = paired_gaps([110, 100, 60], [100, 100, 50])
    each = [10.0, 0.0, 20.0]
    assert gaps.gap_percent == pytest.approx(mean(each))
    assert gaps.half_width_percent == pytest.approx(4.3027 * stdev(each) / 3**0.5, rel=1e-4)
    assert gaps.mean_cost == pytest.approx(90)
    assert gaps.mean_reference == pytest.approx(250 / 3)
    # Not the mean of the gaps: dear instances weigh more in it.
    assert gaps.gap_of_means_percent == pytest.approx(8)


def test_one_instance_has_no_interval() -> None:
    assert paired_gaps([5], [4]).half_width_percent is None


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=30), st.integers(2, 9))
def test_the_unit_does_not_matter(references: list[int], factor: int) -> None:
    costs = [reference + i for i, reference in enumerate(references)]
    gaps = paired_gaps(costs, references)
    scaled = paired_gaps([factor * x for x in costs], [factor * x for x in references])
    assert scaled.gap_percent == pytest.approx(gaps.gap_percent, abs=1e-9)
    assert scaled.half_width_percent == pytest.approx(gaps.half_width_percent, abs=1e-9)
    assert gaps.gap_percent >= 0
    same = paired_gaps(references, references)
    assert (same.gap_percent, same.half_width_percent) == (0, 0)


@pytest.mark.parametrize(
    ("costs", "references"), [([], []), ([1, 2], [1]), ([1, 2], [1, 0])]
)
def test_references_that_do_not_fit(costs: list[int], references: list[int]) -> None:
    with pytest.raises(OptionError, match="expected a positive reference cost for each"):
        paired_gaps(costs, references)
