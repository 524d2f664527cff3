"""Every analysis gives a frozen result with a figure, a tidy table, a line and plain data."""

import dataclasses
import json

import pytest

from analyses.kit.listing import ANALYSES

CASES = [*ANALYSES, "gate_maps of thoughts"]


def example_of(case):
    from analyses import Example

    return Example("thoughts", n=4) if case.endswith(" of thoughts") else ANALYSES.example(case)


def name_of(case):
    return case.removesuffix(" of thoughts")


def is_of_a_run(case):
    from analyses.kit.declare import declared

    return declared(name_of(case)).on == "run"


@pytest.fixture
def run_for(make_run, make_graph_run, make_thinking_run, make_staged_run, run_with_history):
    """A run that an analysis can look at."""
    flat = [0.1, 0.5, 0.9, 0.9, 0.1, 0.1]
    tiny = {
        "chains": lambda: make_run("discoloop"),
        "graphs": make_graph_run,
        "thoughts": lambda: make_thinking_run("agclr"),
        "stages": make_staged_run,
        "history": lambda: run_with_history(flat, flat),
    }
    return lambda case: tiny[example_of(case).run]()


@pytest.fixture(scope="module")
def kept():
    """Results by case; each is worked out once, for it is frozen."""
    return {}


@pytest.fixture(params=CASES)
def analysed(request, run_for, run_with_history, kept):
    from analyses import analyse

    case = request.param
    if case not in kept:
        example = example_of(case)
        rows = {} if is_of_a_run(case) else {"n": example.n}
        kept[case] = analyse(name_of(case), run_for(case), **rows, **example.options)
    return kept[case]


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


@pytest.mark.parametrize("case", CASES)
def test_an_analysis_leaves_lasting_hooks_alone_and_none_of_its_own(case, run_for):
    from analyses import analyse

    if is_of_a_run(case):
        with pytest.raises(ValueError, match="looks at a run as a whole, which n does not change"):
            analyse(case, run_for(case), n=5)
        return
    run, name = run_for(case), name_of(case)
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
