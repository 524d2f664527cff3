import pytest

from workbench.evaluation import in_words, wilson


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


def test_in_words_the_best_guesses_stand_first_and_no_more_than_three():
    found = {
        "run": "tiny",
        "split": "test",
        "n": 8,
        "accuracy": 0.75,
        "accuracy_interval": [0.5, 1.0],
        "accuracy_by_loop": [0.5, 0.75],
        "accuracy_by_difficulty": {"1": 1.0, "3": 0.5},
        "majority_rate": 0.5,
        "shortcuts": {"nodes": 0.5, "edges": 0.625, "degrees": 0.75, "ancestors": 0.6},
    }
    assert in_words(found, "hops").splitlines() == [
        "tiny on test: 0.7500 [0.5000, 1.0000] of 8",
        "after each loop: 0.5000, 0.7500",
        "by hops: 1: 1.0000; 3: 0.5000",
        "commonest answer 0.5000; at most, degrees 0.7500; edges 0.6250; ancestors 0.6000",
    ]
