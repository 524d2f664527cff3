import pytest

from workbench.evaluation import wilson


@pytest.mark.parametrize(
    "right, n, low, high",
    # by hand: (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n), z = 1.96
    [(5, 10, 0.2366, 0.7634), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0)],
)
def test_the_interval_is_wilsons(right, n, low, high):
    assert wilson(right, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("right", [0, 1, 50, 99, 100])
def test_the_interval_holds_the_share_and_stays_within_0_and_1(right):
    low, high = wilson(right, 100)
    assert -1e-12 <= low <= right / 100 <= high <= 1 + 1e-12
