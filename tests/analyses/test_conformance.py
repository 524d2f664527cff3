"""Every analysis gives a frozen result with a figure, a tidy table, a line and plain data."""

import dataclasses
import json

import pytest

NAMES = [
    "logit_lens",
    "bridge_alignment",
    "gate_maps",
    "realignment",
    "stage_collapse",
    "attention",
    "realigned_answer",
    "training_curves",
    "answers",
    "shortcuts",
    "compute_frontier",
    "convergence",
    "gradient_highway",
    "reached_set",
    "graph_states",
    "memory_retention",
    "concept_probe",
    "ablation",
    "thought_count",
    "thought_search_tree",
    "stage_curve",
    "compare",
    "cost",
]
CASES = [*NAMES, "gate_maps of thoughts"]
OF_THOUGHTS = ("memory_retention", "concept_probe", "ablation", "thought_count")
STAGED = ("thought_search_tree", "stage_curve", "compare", "cost")
OF_RUNS = ("stage_collapse", "training_curves", "shortcuts", "stage_curve", "compare", "cost")
OF_GRAPHS = ("reached_set", "shortcuts", "graph_states")
OPTIONS = {"cost": {"rows": 4, "timed": 1, "repeats": 1}}


@pytest.fixture
def run_for(make_run, make_graph_run, make_thinking_run, make_staged_run):
    """A run that an analysis can look at."""

    def find(case):
        if case in OF_THOUGHTS or case.endswith(" of thoughts"):
            return make_thinking_run("agclr")
        if case in STAGED:
            return make_staged_run()
        return make_graph_run() if case in OF_GRAPHS else make_run("discoloop")

    return find


@pytest.fixture(scope="module")
def kept():
    """Results by case; each is worked out once, for it is frozen."""
    return {}


@pytest.fixture(params=CASES)
def analysed(request, run_for, run_with_history, kept):
    from analyses import analyse

    case = request.param
    if case in kept:
        return kept[case]
    if case == "stage_collapse":
        flat = [0.1, 0.5, 0.9, 0.9, 0.1, 0.1]
        found = analyse("stage_collapse", run_with_history(flat, flat))
    else:
        few = 4 if case in OF_THOUGHTS else 10
        rows = {} if case in OF_RUNS else {"n": few}
        name = case.removesuffix(" of thoughts")
        found = analyse(name, run_for(case), **rows, **OPTIONS.get(name, {}))
    kept[case] = found
    return found


def test_all_analyses_are_held_to_this_contract():
    from analyses import ANALYSES

    assert sorted(ANALYSES) == sorted(NAMES)


def test_result_is_frozen(analysed):
    field = dataclasses.fields(analysed.result)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(analysed.result, field, None)


def test_figure_has_data_a_title_and_its_provenance(analysed):
    figure = analysed.figure()
    assert len(figure.data) > 0
    assert figure.layout.title.text
    folder = analysed.provenance.run
    assert figure.layout.title.subtitle.text.startswith(f"{folder} (recipe tiny) · ")


def test_table_is_tidy(analysed):
    frame = analysed.to_frame()
    assert len(frame) > 0
    assert frame.columns.is_unique
    assert all(frame[column].map(lambda v: not isinstance(v, list)).all() for column in frame)


def test_summary_is_one_line(analysed):
    summary = analysed.summary()
    assert summary
    assert "\n" not in summary


def test_plain_data_is_json_and_names_axes(analysed):
    plain = json.loads(json.dumps(analysed.to_plain(), allow_nan=False))
    assert {"run", "step", "split", "loops", "edits", "n", "seed"} <= plain.keys()
    tensors = [value for value in plain.values() if isinstance(value, dict) and "axes" in value]
    assert tensors
    for tensor in tensors:
        depth, values = 0, tensor["values"]
        while isinstance(values, list):
            depth, values = depth + 1, values[0]
        assert depth == len(tensor["axes"])


def test_files_are_written_under_the_analysis_name(analysed, tmp_path):
    paths = analysed.write(tmp_path / "out")
    assert sorted(path.suffix for path in paths) == [".csv", ".html", ".json"]
    assert all(path.stem == analysed.name and path.stat().st_size > 0 for path in paths)


@pytest.mark.parametrize("case", [case for case in CASES if case not in OF_RUNS])
def test_an_analysis_leaves_lasting_hooks_alone_and_none_of_its_own(case, run_for):
    from analyses import analyse

    run, name = run_for(case), case.removesuffix(" of thoughts")
    model = run.model.twin()
    split = "test_ood" if "test_ood" in run.task.splits else "test"
    batch = run.task.batch(split, 5)
    plain = model(**batch.inputs)
    model.add_hook("blocks.0.hook_attn_out", lambda t, hook: t + 0.5)
    shifted = model(**batch.inputs)
    analyse(name, run, n=5, split=split, model=model)
    assert (model(**batch.inputs) == shifted).all()
    model.reset_hooks()
    assert (model(**batch.inputs) == plain).all()
