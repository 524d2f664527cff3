"""The page in a real browser: every view, its main control, and no complaint of any kind."""

import json
import re
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import expect

SHIPPED = Path(__file__).parents[2] / "checkpoints"


def one_of_each():
    """Shipped runs, one for each task and family."""
    found = {}
    for path in sorted(SHIPPED.glob("*/recipe.yaml")):
        recipe = yaml.safe_load(path.read_text())
        found.setdefault((recipe["task"]["name"], recipe["model"]["family"]), path.parent.name)
    return list(found.values())


RUNS = ["tiny-discoloop", *one_of_each()]
THINKING = [
    path.parent.name
    for path in SHIPPED.glob("*/recipe.yaml")
    if yaml.safe_load(path.read_text())["model"]["family"] in ("coconut", "agclr")
]
SLOW = 60_000  # milliseconds until a view has been computed on a busy machine

expect.set_options(timeout=SLOW)


def settle(tab):
    """Wait until the script has run and everything is drawn."""
    done = "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState == 'notRunning'"
    tab.wait_for_timeout(200)
    tab.wait_for_function(done)
    expect(tab.locator("[data-stale=true]")).to_have_count(0)
    expect(tab.get_by_test_id("stException")).to_have_count(0)


def no_sentence(tab):
    """Nothing is warned of or refused."""
    expect(tab.get_by_test_id("stAlert")).to_have_count(0)


def visit(tab, view):
    tab.get_by_test_id("stSidebarNav").get_by_text(view, exact=True).click()
    settle(tab)


def figures(tab):
    return tab.locator(".js-plotly-plot")


def pick(tab, label, option):
    box = tab.get_by_role("combobox", name=re.compile(label))
    box.scroll_into_view_if_needed()
    tab.wait_for_timeout(300)  # scrolling shuts the list of options
    box.click()
    box.fill(option)  # of a long list, only a part is there until one types
    tab.get_by_role("option", name=option, exact=True).click()
    settle(tab)


def push(tab, label, times=1, key="ArrowRight"):
    slider = tab.get_by_role("slider", name=label)
    for _ in range(times):
        slider.press(key)
    settle(tab)


@pytest.mark.parametrize("run", ["tiny-discoloop", "two-hop-small-discoloop"])
def test_every_view_and_its_main_control(tab, run):
    tab.goto(f"/?run={run}")
    expect(tab.get_by_role("heading", name="Runs")).to_be_visible()
    settle(tab)
    expect(tab.get_by_test_id("stDataFrame")).to_be_visible()
    expect(tab.get_by_role("heading", name=run, exact=True)).to_be_visible()

    visit(tab, "Question")
    expect(figures(tab)).to_have_count(3)
    before = tab.get_by_label("Question", exact=True).input_value()
    tab.get_by_role("button", name="Draw another").click()
    expect(tab.get_by_label("Question", exact=True)).not_to_have_value(before)
    settle(tab)
    push(tab, "Loops")
    expect(tab.get_by_text("after loop 1 is").first).to_be_visible()
    no_sentence(tab)

    visit(tab, "Realignment")
    expect(figures(tab)).to_have_count(2)
    caption = tab.get_by_text(re.compile("^α="))
    before = caption.inner_text()
    push(tab, "α", times=4)
    expect(caption).not_to_have_text(before)
    no_sentence(tab)

    visit(tab, "Training")
    expect(figures(tab).first).to_be_visible()
    expect(tab.get_by_text("One question over training")).to_be_visible()
    push(tab, "Step", key="ArrowLeft")
    assert "step=" in tab.url


def test_the_frontier_and_a_cell_of_it(tab):
    tab.goto("/frontier?run=tiny-graphs")
    expect(figures(tab)).to_have_count(1)
    settle(tab)
    plot = figures(tab).first
    area = plot.locator(".nsewdrag").first.bounding_box()
    # the cell of 1 hop after loop 1 of 6, of 3 rows
    tab.mouse.click(area["x"] + area["width"] / 12, area["y"] + area["height"] * 5 / 6)
    expect(figures(tab)).to_have_count(2)
    settle(tab)
    expect(tab.get_by_text("answers after loop 1; wrong answers first")).to_be_visible()
    assert "level=1" in tab.url
    pick(tab, "Measure", "Gates")
    expect(figures(tab)).to_have_count(3)
    no_sentence(tab)
    tab.get_by_role("link", name="Open in Graph").click()
    expect(tab.get_by_role("heading", name="One graph, loop by loop")).to_be_visible()
    expect(figures(tab)).to_have_count(2)
    settle(tab)
    no_sentence(tab)


def test_a_graph_after_each_loop(tab):
    tab.goto("/graph?run=tiny-graphs&question=A>B B>C D>A : A C")
    expect(figures(tab)).to_have_count(2)
    settle(tab)
    expect(tab.get_by_text("after loop 3 it answers")).to_be_visible()
    push(tab, "After loop", key="ArrowLeft")
    expect(tab.get_by_text("after loop 2 it answers")).to_be_visible()
    assert "after=2" in tab.url
    pick(tab, "Measure", "Reached sets")
    expect(figures(tab)).to_have_count(3)
    no_sentence(tab)
    tab.get_by_label("Question", exact=True).fill("A>B : A Z")
    tab.get_by_label("Question", exact=True).press("Enter")
    expect(tab.get_by_test_id("stAlert")).to_contain_text("node Z is not in the graph")


def test_thoughts_and_what_is_done_to_them(tab):
    tab.goto("/thoughts?run=tiny-agclr&rows=50")
    expect(figures(tab)).to_have_count(5)
    settle(tab)
    said = tab.get_by_text("said by number of thoughts").first
    expect(said).to_be_visible()
    edits = tab.get_by_test_id("stMain").locator("code", has_text='"do":')
    expect(edits).to_have_count(0)
    pick(tab, "Memory", "stream held")
    expect(edits.first).to_contain_text('"do": "freeze"')
    assert "memory=stream+held" in tab.url
    pick(tab, "Exchange thought", "all")
    expect(edits.first).to_contain_text('"do": "patch"')
    assert "swap=all" in tab.url
    expect(figures(tab)).to_have_count(5)
    before = tab.get_by_label("Question", exact=True).input_value()
    tab.get_by_role("button", name="Draw another").click()
    expect(tab.get_by_label("Question", exact=True)).not_to_have_value(before)
    settle(tab)
    no_sentence(tab)
    visit(tab, "Training")
    expect(tab.get_by_text("accuracy at step 4, stage ").first).to_be_visible()
    no_sentence(tab)
    visit(tab, "Question")
    expect(tab.get_by_test_id("stAlert")).to_contain_text("tiny-looped")


def test_an_expression_loop_by_loop(tab):
    tab.goto("/question?run=tiny-boolean&question=!((T%26F)|T)")
    expect(figures(tab)).to_have_count(3)
    settle(tab)
    no_sentence(tab)
    visit(tab, "Training")
    expect(tab.get_by_text("accuracy at step 4").first).to_be_visible()
    visit(tab, "Graph")
    expect(tab.get_by_test_id("stAlert")).to_contain_text("tiny-graphs")


@pytest.mark.parametrize("run", RUNS)
def test_every_run_opens(tab, run):
    if run in THINKING:
        tab.goto(f"/thoughts?run={run}")
        expect(tab.get_by_text("said by number of thoughts").first).to_be_visible()
        settle(tab)
        return
    tab.goto(f"/question?run={run}")
    # a text is too long for a map of attention; on graphs, some have no gate or no attention
    fewer = {"kinship-small": 2, "reachability-transformer": 2, "reachability-gnn": 1}
    expect(figures(tab)).to_have_count(fewer.get(run, 3))
    settle(tab)


def test_a_link_shows_the_same_view_in_another_session(tab, chromium, address):
    tab.goto("/question?run=tiny-looped")
    expect(figures(tab)).to_have_count(3)
    tab.get_by_role("button", name="Draw another").click()
    settle(tab)
    push(tab, "Loops", times=4)
    tiles = tab.get_by_test_id("stMetric")
    expect(tab.get_by_text("after loop 4 is").first).to_be_visible()
    shown = tiles.all_inner_texts()
    other = chromium.new_page(base_url=address)
    other.goto(tab.url)
    expect(other.get_by_text("after loop 4 is").first).to_be_visible(timeout=SLOW)
    settle(other)
    expect(other.get_by_test_id("stMetric")).to_have_text(shown, use_inner_text=True)
    other.close()


def test_a_wrong_question_gets_a_sentence(tab):
    tab.goto("/question?run=tiny-looped")
    expect(figures(tab)).to_have_count(3)
    for wrong, reason in (("A1 <b>", "unknown word '<b>'"), ("", "the question is empty")):
        box = tab.get_by_label("Question", exact=True)
        box.fill(wrong)
        box.press("Enter")
        expect(tab.get_by_test_id("stAlert")).to_contain_text(reason)
        settle(tab)


def test_two_runs_side_by_side(tab):
    tab.goto("/question?run=tiny-looped")
    expect(figures(tab)).to_have_count(3)
    pick(tab, "Compare with", "tiny-transformer")
    expect(figures(tab)).to_have_count(6)
    assert "compare=tiny-transformer" in tab.url
    no_sentence(tab)


def test_a_figure_can_be_taken_along(tab):
    starts = {"PNG": b"\x89PNG", "SVG": b"<svg", "HTML": b"<!doctype html", "CSV": b"question,"}
    tab.goto("/question?run=tiny-looped")
    expect(figures(tab)).to_have_count(3)
    settle(tab)
    tab.get_by_text("Export", exact=True).first.click()
    for kind, start in starts.items():
        with tab.expect_download() as download:
            tab.get_by_role("button", name=kind, exact=True).first.click()
        assert Path(download.value.path()).read_bytes().startswith(start)


def test_a_run_in_training_is_followed(tab, page_folder):
    history = page_folder / "runs" / "tiny-unfinished" / "history.jsonl"
    lines = history.read_text().splitlines()
    history.touch()  # a run that measured nothing for ten minutes counts as stopped
    tab.goto("/training?run=tiny-unfinished")
    expect(tab.get_by_text("accuracy at step 20").first).to_be_visible()
    last = [json.loads(line) for line in lines if json.loads(line)["step"] == 20]
    with history.open("a") as file:
        file.writelines(json.dumps(record | {"step": 24}) + "\n" for record in last)
    expect(tab.get_by_text("accuracy at step 24").first).to_be_visible()
    history.write_text("".join(line + "\n" for line in lines))
