"""The page on runs that think: thoughts, what is done to them, and the views that are of loops."""

import json

import pytest

OF_LOOPS = ["question", "frontier", "realignment"]
GATES = {gate: f"recurrence.{gate}.hook_post" for gate in ("read", "forget", "write")}


@pytest.fixture
def open_thoughts(open_page):
    """Open the view of thoughts."""

    def open_thoughts(run="tiny-agclr", **address):
        page = open_page("thoughts", run=run, rows="50", **address)
        assert not page.exception
        return page

    return open_thoughts


def sentences(page):
    shown = (*page.warning, *page.info, *page.error)
    return [element.value.replace("\\", "") for element in shown]


def captions(page):
    return [caption.value.replace("\\", "") for caption in page.caption]


def made(page):
    """The edits that the controls made."""
    found = [block.value for block in page.code if block.language == "json"]
    return json.loads(found[0]) if found else []


def lines(page):
    """The lines of Python below the figures."""
    return [block.value for block in page.code if block.language == "python"]


def test_thoughts_are_decoded_and_every_figure_has_its_lines(open_thoughts):
    page = open_thoughts()
    assert not sentences(page)
    said = captions(page)
    assert any(line.startswith("nearest words after thought 2") for line in said)
    assert any(line.startswith("said by number of thoughts: 0: ") for line in said)
    assert any(line.startswith("mass by number of thoughts: ") for line in said)
    assert any("of pass 2 with pass 1" in line for line in said)
    assert len(page.get("plotly_chart")) == 5
    assert len(lines(page)) == 5
    for block in lines(page):
        import_line, call, _ = block.splitlines()
        scope = {}
        exec(f"{import_line}\n{call}", scope)
        assert scope["found"].summary() in said


def test_a_family_without_gates_shows_what_it_has(open_thoughts):
    page = open_thoughts("tiny-coconut")
    assert not sentences(page)
    assert len(page.get("plotly_chart")) == 4
    assert not page.multiselect


def test_controls_make_edits_and_a_link_holds_them(open_thoughts):
    page = open_thoughts()
    plain = captions(page)
    page.multiselect(key="shut").set_value(["read", "forget"]).run()
    page.selectbox(key="from").set_value(2).run()
    assert made(page) == [
        {"do": "zero", "place": GATES[gate], "loops": [1]} for gate in ("read", "forget")
    ]
    assert captions(page) != plain
    assert all("hook_post" in block for block in lines(page))
    page.selectbox(key="memory").set_value("stream held").run()
    assert made(page)[2:] == [{"do": "freeze", "place": "recurrence.hook_stream", "after": 0}]
    page.selectbox(key="memory").set_value("write frozen").run()
    assert made(page)[2:] == [{"do": "zero", "place": GATES["write"], "loops": [1]}]
    assert not page.exception
    assert not sentences(page)
    question = page.text_area(key="question").value
    link = {"shut": ["read", "forget"], "from": "2", "memory": "write frozen"}
    other = open_thoughts(question=question, **link)
    assert made(other) == made(page)
    assert captions(other) == captions(page)


def test_a_thought_is_exchanged_for_that_of_another_question(open_thoughts):
    page = open_thoughts(swap="1", other="3")
    (edit,) = made(page)
    assert (edit["do"], edit["loops"]) == ("patch", [0])
    assert edit["question"] != page.text_area(key="question").value
    assert any(caption.startswith("… ? ") for caption in captions(page))
    page.selectbox(key="swap").set_value("all").run()
    assert made(page)[0]["loops"] == [0, 1]
    page.text_area(key="edits").set_value(json.dumps([{"do": "mix", "alpha": 0.5}])).run()
    assert not page.exception
    assert not sentences(page)
    assert all("'mix'" in block and "'patch'" in block for block in lines(page))


def test_another_number_of_thoughts_is_marked_in_the_lines(open_thoughts):
    page = open_thoughts()
    assert all("thoughts=" not in block for block in lines(page))
    page.select_slider(key="thoughts").set_value("3").run()
    assert not page.exception
    assert not sentences(page)
    assert all("thoughts=3" in block for block in lines(page))
    page.select_slider(key="thoughts").set_value("0").run()
    assert not page.exception
    assert "runs without thoughts" in sentences(page)[0]
    page.select_slider(key="thoughts").set_value("2").run()
    assert all("thoughts=" not in block for block in lines(page))


def test_measures_over_a_split(open_thoughts):
    page = open_thoughts(more="What right answers depend on")
    assert not sentences(page)
    assert any("own thoughts put back" in caption for caption in captions(page))
    assert all("split='test'" in block for block in lines(page)[-2:])


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("", "no question mark"),
        ("Tom lorpus . ? Tom lorpus zumpus", "'zumpus'"),
        ("Tom lorpus zumpus . ? Tom lorpus rompus", "does not name two words"),
        ("<b> $x$ ?", "ends in"),
    ],
)
def test_a_wrong_question_gets_a_sentence(open_thoughts, question, reason):
    page = open_thoughts()
    page.text_area(key="question").set_value(question).run()
    assert not page.exception
    assert any(reason in sentence for sentence in sentences(page))


def test_a_session_sees_nothing_of_another_ones_edits(open_thoughts):
    alone = captions(open_thoughts())
    edited, plain = open_thoughts(), open_thoughts()
    edited.multiselect(key="shut").set_value(["read"]).run()
    edited.select_slider(key="thoughts").set_value("1").run()
    plain.run()
    assert captions(edited) != alone
    assert captions(plain) == alone
    assert made(plain) == []
    assert plain.select_slider(key="thoughts").value == "as trained"


def test_two_runs_think_side_by_side_and_a_loop_among_them_gets_a_sentence(open_thoughts):
    page = open_thoughts(compare="tiny-coconut")
    assert [heading.value for heading in page.subheader] == ["tiny-agclr", "tiny-coconut"] * 2
    assert len(page.get("plotly_chart")) == 9
    page = open_thoughts(compare="tiny-looped")
    assert len(sentences(page)) == 1
    assert len(page.get("plotly_chart")) == 5


def test_loops_are_not_thoughts(open_page):
    page = open_page("thoughts", run="tiny-looped")
    assert not page.exception
    (said,) = sentences(page)
    assert said.endswith("tiny-looped has not; these runs have: tiny-agclr, tiny-coconut.")


@pytest.mark.parametrize("view", OF_LOOPS)
def test_thoughts_are_not_loops(open_page, view):
    page = open_page(view, run="tiny-agclr")
    assert not page.exception
    (said,) = sentences(page)
    assert "tiny-agclr has not; these runs have: " in said
    assert "tiny-looped" in said
    assert "tiny-coconut" not in said
    page = open_page(view, run="tiny-looped", compare="tiny-agclr")
    assert not page.exception
    assert sentences(page)


def test_a_run_that_thinks_has_no_graph_of_nodes(open_page):
    page = open_page("graph", run="tiny-agclr")
    assert not page.exception
    assert sentences(page)[0].endswith("these runs have: tiny-graphs.")


def test_training_shows_stages_and_gates(open_page):
    page = open_page("training", run="tiny-agclr")
    assert not page.exception
    assert not sentences(page)
    assert any("accuracy at step 4, stage " in caption for caption in captions(page))
    assert any(caption.startswith("said by number of thoughts") for caption in captions(page))


def test_runs_lists_thoughts(open_page):
    page = open_page("runs", run="tiny-agclr")
    assert not page.exception
    shown = {metric.label: metric.value for metric in page.metric}
    assert shown["Thoughts"] == "2"
    assert "Loops" not in shown
