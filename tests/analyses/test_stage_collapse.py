"""Planted curves: the collapse is found where it was put, and nowhere else."""

import numpy as np
import pytest


def planted(at: int, n: int = 40, noise: float = 0.03, seed: int = 0) -> list[float]:
    """Rises over ten measurements, stays near 1, and is near 0 from index `at` on."""
    curve = np.minimum(np.arange(n) / 10, 1.0) * 0.95
    curve[at:] = 0.03
    wiggle = np.random.default_rng(seed).normal(0, noise, n)
    return list(np.clip(curve + wiggle, 0, 1))


@pytest.mark.parametrize("at", [14, 20, 33])
@pytest.mark.parametrize("seed", range(5))
def test_a_planted_collapse_is_found_within_one_measurement(at, seed):
    from analyses.training.stage_collapse import collapse_of

    change = collapse_of(planted(at, seed=seed))
    assert change.at is not None
    assert abs(change.at - at) <= 1
    assert change.p_value < 0.01


@pytest.mark.parametrize("seed", range(5))
def test_a_collapse_over_several_measurements_is_found_at_its_middle(seed):
    from analyses.training.stage_collapse import collapse_of

    wiggle = np.random.default_rng(seed).normal(0, 0.02, 40)
    curve = np.interp(np.arange(40), [0, 10, 20, 24, 39], [0, 1, 1, 0, 0]) + wiggle
    change = collapse_of(curve.tolist())
    assert change.at is not None
    assert 21 <= change.at <= 24


@pytest.mark.parametrize("seed", range(10))
def test_a_curve_that_rises_and_stays_has_no_collapse(seed):
    from analyses.training.stage_collapse import collapse_of

    curve = planted(at=40, seed=seed)
    change = collapse_of(curve)
    assert change.at is None
    assert 0 < change.p_value <= 1


@pytest.mark.parametrize("seed", range(10))
def test_noise_near_the_floor_is_no_collapse(seed):
    from analyses.training.stage_collapse import collapse_of

    curve = np.abs(np.random.default_rng(seed).normal(0, 0.01, 40))
    assert collapse_of(curve.tolist()).at is None


@pytest.mark.parametrize("at", [6, 20, 33])
def test_a_planted_rise_is_found_within_one_measurement(at):
    from analyses.training.stage_collapse import rise_of

    curve = np.where(np.arange(40) < at, 0.05, 0.95)
    curve = curve + np.random.default_rng(0).normal(0, 0.03, 40)
    change = rise_of(curve.tolist())
    assert change.at is not None
    assert abs(change.at - at) <= 1


def test_a_flat_curve_neither_falls_nor_rises():
    from analyses.training.stage_collapse import collapse_of, rise_of

    assert collapse_of([0.5] * 12).at is None
    assert rise_of([0.5] * 12).at is None


def test_lag_counts_epochs_from_collapse_to_rise(run_with_history):
    from analyses import analyse

    stage_1 = planted(20, noise=0.0)
    test = [0.02] * 23 + [0.98] * 17
    result = analyse("stage_collapse", run_with_history(stage_1, test)).result
    assert result.collapse_epoch == 20 * 5
    assert result.rise_epoch == 23 * 5
    assert result.lag == 15


def test_too_short_a_history_is_refused_in_a_sentence(run_with_history):
    from analyses import analyse

    with pytest.raises(ValueError, match="has 3 measurements; a change needs at least 5"):
        analyse("stage_collapse", run_with_history([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]))


def test_a_step_that_is_in_the_making_counts_not(run_with_history):
    from analyses import analyse

    run = run_with_history(planted(20, noise=0.0), [0.5] * 40)
    path = run.path / "history.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert len(analyse("stage_collapse", run).result.steps) == 39


def test_an_interval_is_of_the_rows_that_there_are(run_with_history):
    from analyses import analyse
    from workbench.runs.evaluation import wilson

    path = run_with_history([0.5] * 6, [0.5] * 6).path
    recipe = path / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("    n: 20\n", "    n: 1000\n"))
    result = analyse("stage_collapse", path).result  # test_id has 20 rows
    low, high = wilson(10, 20)
    assert result.low[1, 0] == pytest.approx(low) and result.high[1, 0] == pytest.approx(high)


@pytest.mark.parametrize("memory", [0.0, 0.9, 0.97])
@pytest.mark.parametrize("n", [12, 40])
def test_noise_that_remembers_its_past_is_rarely_taken_for_a_step(memory, n):
    from analyses.training.stage_collapse import step_down

    rng = np.random.default_rng(0)
    series = rng.normal(size=(200, n))
    series[:, 0] /= np.sqrt(1 - memory**2)  # as far from its mean as it will be later
    for step in range(1, n):
        series[:, step] += memory * series[:, step - 1]
    found = [step_down(row).p_value <= 0.05 for row in 0.1 * series]
    assert np.mean(found) <= 0.06
