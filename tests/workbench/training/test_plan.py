from pathlib import Path

import pytest

from workbench.training.plan import flops_per_token, plan


def test_a_plan_says_what_the_recipe_amounts_to(recipe):
    text = plan(recipe(), Path("somewhere"))
    # 4 maps of 16×16 and 2 of 16×32; biases 4·16 and 32+16; three norms of 16; 17 words and a gate
    n_parameters = 4 * 256 + 2 * 512 + 4 * 16 + 48 + 3 * 16 + 17 * 16 + 17
    for line in (
        "# writes to      somewhere",
        f"# parameters     {n_parameters:,}",
        "# rows           train_atom 36; train_id 12; test_id 6; test_ood 6",
        "# epochs         1 of train_id",
    ):
        assert line in text.splitlines()


def test_a_plan_counts_the_steps_that_are_kept(recipe):
    # every second step up to the fourth, then every third: 0, 2, 4, and the last
    assert "# saved weights  4 steps" in plan(recipe(), Path("x"))


def test_a_plan_writes_nothing(recipe, tmp_path):
    plan(recipe(), tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_loops", [1, 3])
def test_a_tokens_operations_are_six_for_each_weight_used(build, n_loops):
    in_block, vocabulary = 4 * 256 + 2 * 512, 11 * 16
    looped = flops_per_token(build("looped", n_layers=1, n_loops=n_loops))
    mixed = flops_per_token(build("discoloop", n_layers=1, n_loops=n_loops))
    # Φ decodes and embeds again between loops
    assert mixed - looped == 6 * 2 * vocabulary * (n_loops - 1)
    assert looped == flops_per_token(build("looped", n_layers=1, n_loops=1)) + 6 * in_block * (
        n_loops - 1
    )


def test_a_plan_of_a_curriculum_says_rows_epochs_and_stages(staged):
    lines = plan(staged(), Path("x")).splitlines()
    assert "# rows           train 12; valid 6; test 6; test_swapped 6" in lines
    assert "# epochs         3.0 of train, stage 0 to 2 of 2" in lines
    # the first and the last step, and the best one of each stage
    assert any(line.startswith("# saved weights  5 steps") for line in lines)


def test_operations_of_a_curriculum_grow_with_its_thoughts(staged):
    def operations(**curriculum):
        text = plan(staged(curriculum=curriculum), Path("x"))
        line = next(line for line in text.splitlines() if line.startswith("# operations"))
        return float(line.split()[2].rstrip(","))

    answers, thinks = operations(method="no_cot"), operations(first_stage=2)
    many = operations(first_stage=2, c_thought=4)
    assert answers < thinks < many
