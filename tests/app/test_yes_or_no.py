"""The page on runs that answer yes or no: the frontier, a graph, an expression."""

import pytest

VIEWS = ["question", "frontier", "graph", "realignment", "training"]
PATH = "A>B B>C D>A C>E : A E"


def sentences(page):
    shown = (*page.warning, *page.info, *page.error)
    return [element.value.replace("\\", "") for element in shown]


def captions(page):
    return [caption.value.replace("\\", "") for caption in page.caption]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("run", ["graphs", "boolean"])
def test_every_view_renders_or_says_in_one_sentence_why_not(open_page, view, run):
    page = open_page(view, run=f"tiny-{run}")
    assert not page.exception
    said = sentences(page)
    if view == "realignment":
        assert len(said) == 1
        assert all(f"tiny-{name}" in said[0] for name in ("discoloop", "looped", "transformer"))
    elif view == "graph" and run == "boolean":
        assert len(said) == 1
        assert said[0].endswith("these runs have: tiny-graphs.")
    else:
        assert not said


def test_the_frontier_opens_the_questions_of_a_cell(open_page):
    page = open_page("frontier", run="tiny-graphs", level="2", after="1")
    table = page.dataframe[0].value
    assert set(table.verdict) <= {"right", "wrong"}
    assert ((table.says == table.true) == (table.verdict == "right")).all()
    assert (table.loc[table.true == "reachable", "question"].str.contains(" : ")).all()
    assert any(caption.startswith("after each loop: ") for caption in captions(page))
    page.number_input(key="item").set_value(1).run()
    assert not page.exception
    assert len(page.get("page_link")) == 2
    page.switch_page("views/graph.py").run()
    assert not page.exception
    assert page.title[0].value == "One graph, loop by loop"
    assert page.text_input(key="question").value == table.question[1]


def test_a_click_chooses_the_cell(open_page):
    page = open_page("frontier", run="tiny-boolean", level="3", after="6", item="1")
    assert page.number_input(key="item").value == 1
    page.session_state["level"], page.session_state["after"] = 2, 1
    page.run()
    assert not page.exception
    assert any("answers after loop 1; wrong" in caption for caption in captions(page))


def test_the_frontier_is_measured_as_far_as_there_are_loops_and_of_any_step(open_page):
    page = open_page("frontier", run="tiny-graphs", more="Gates")
    assert any("z 0." in caption for caption in captions(page))
    before = captions(page)[1]
    page.select_slider(key="most").set_value("2").run()
    assert captions(page)[1] != before
    page.select_slider(key="most").set_value("7").run()
    assert not page.exception
    assert any("max_loops=6" in sentence for sentence in sentences(page))


def test_a_graph_is_drawn_after_each_loop(open_page):
    page = open_page("graph", run="tiny-graphs", question=PATH, after="2")
    assert any(caption.startswith("after loop 2 it answers") for caption in captions(page))
    page.select_slider(key="after").set_value(1).run()
    page.selectbox(key="probe").set_value("reachable").run()
    page.selectbox(key="head").set_value("1").run()
    assert not page.exception
    first = next(caption for caption in captions(page) if caption.startswith("after loop 1 it"))
    assert "probe: reachable" in first
    edit = '[{"do": "add", "place": "recurrence.hook_state_post", "value": 3.0}]'
    page.text_area(key="edits").set_value(edit).run()
    assert not page.exception
    assert first not in captions(page)


def test_the_lines_that_make_the_graph_make_it(open_page):
    page = open_page("graph", run="tiny-graphs", question=PATH, after="2")
    import_line, call, _ = page.code[0].value.splitlines()
    scope = {}
    exec(f"{import_line}\n{call}", scope)
    assert scope["found"].summary() in captions(page)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("A>B : A Z", "node Z is not in the graph"),
        ("A>B", "asks about no nodes"),
        ("A>>B : A B", "is no edge"),
        ("A>b : A B", "unknown node 'b'"),
    ],
)
def test_a_malformed_graph_gets_a_sentence(open_page, question, reason):
    page = open_page("graph", run="tiny-graphs", question=question)
    assert not page.exception
    assert any(reason in sentence for sentence in sentences(page))


def test_a_run_of_another_task_beside_a_graph_gets_a_sentence(open_page):
    page = open_page("graph", run="tiny-graphs", question=PATH, compare="tiny-boolean")
    assert not page.exception
    assert len(sentences(page)) == 1


def test_an_expression_is_answered_loop_by_loop(open_page):
    page = open_page("question", run="tiny-boolean", question="!((T&F)|T)")
    shown = {metric.label: metric.value for metric in page.metric}
    assert shown["True answer"] == "False"
    assert any("no lens" in caption for caption in captions(page))
    assert len(page.get("plotly_chart")) == 3
    page.text_input(key="question").set_value("!((T&F)|T").run()
    assert not page.exception
    assert len(sentences(page)) == 1
