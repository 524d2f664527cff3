"""The page, run without a browser."""

import io
import shutil
import zipfile

import pytest

VIEWS = ["runs", "question", "realignment", "training"]


@pytest.fixture(scope="module")
def chain(page_folder):
    """A two-hop question of the runs' task, with its bridge and answer."""
    from workbench.runs import load_run

    task = load_run(page_folder / "runs" / "tiny-looped").task
    return task.examples(task.batch("test_id", 1, 3))[0]


def tiles(page):
    return {metric.label: metric.value for metric in page.metric}


def sentences(page):
    return [element.value for element in (*page.warning, *page.info, *page.error)]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("run", ["looped", "discoloop", "transformer", "unfinished"])
def test_every_view_renders(open_page, view, run):
    page = open_page(view, run=f"tiny-{run}")
    assert not page.exception
    assert page.title[0].value


def test_without_runs_the_page_says_how_to_make_one(open_page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = open_page()
    assert not page.exception
    assert "workbench train" in page.info[0].value


def test_a_link_to_a_run_that_is_gone_names_the_nearest(open_page):
    page = open_page(run="tiny-loopd")
    assert not page.exception
    assert "tiny-looped" in page.info[0].value


def test_runs_lists_all_runs_with_what_became_of_them(open_page):
    table = open_page().dataframe[0].value.set_index("run")
    names = ["agclr", "boolean", "coconut", "discoloop", "graphs", "looped", "transformer"]
    names.append("unfinished")
    assert list(table.index) == [f"tiny-{name}" for name in names]
    assert table.state["tiny-looped"] == "finished"
    assert table.state["tiny-unfinished"] == "in training"
    assert (table.parameters > 0).all()


def test_a_broken_run_is_named_and_the_others_are_shown(open_page, monkeypatch, tmp_path):
    broken = tmp_path / "runs" / "broken"
    broken.mkdir(parents=True)
    (broken / "recipe.yaml").write_text("name: broken\nmodle: {}\n")
    monkeypatch.setattr("workbench.runs.SHIPPED", tmp_path / "runs")
    page = open_page()
    assert not page.exception
    assert any("broken/recipe.yaml" in sentence for sentence in sentences(page))
    table = page.dataframe[0].value
    assert len(table) == 9
    assert table.set_index("run").state["broken"].startswith("cannot be read: ")


@pytest.mark.parametrize("view", VIEWS)
def test_a_broken_run_that_is_chosen_gets_a_sentence(open_page, monkeypatch, tmp_path, view):
    broken = tmp_path / "runs" / "broken"
    broken.mkdir(parents=True)
    (broken / "recipe.yaml").write_text("name: broken\nmodle: {}\n")
    monkeypatch.setattr("workbench.runs.SHIPPED", tmp_path / "runs")
    page = open_page(view, run="broken")
    assert not page.exception
    assert any("broken/recipe.yaml" in sentence for sentence in sentences(page))


def test_a_run_that_has_kept_no_weights_yet_says_so(open_page, page_folder, monkeypatch, tmp_path):
    young = tmp_path / "runs" / "young"
    young.mkdir(parents=True)
    shutil.copy(page_folder / "runs" / "tiny-looped" / "recipe.yaml", young)
    monkeypatch.setattr("workbench.runs.SHIPPED", tmp_path / "runs")
    page = open_page("training", run="young")
    assert not page.exception
    assert "No weights have been kept yet." in sentences(page)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("", "the question is empty"),
        ("A1 r99", "unknown word 'r99'"),
        ("r1 r2", "is no question"),
        ("A1 r1 r1 r1 r1", "4 relations"),
        ("<b> $x$ $y$", "unknown word"),
    ],
)
@pytest.mark.parametrize("view", ["question", "realignment", "training"])
def test_a_wrong_question_gets_a_sentence(open_page, view, question, reason):
    page = open_page(view)
    page.text_input(key="question").set_value(question).run()
    assert not page.exception
    assert any(reason in sentence.replace("\\", "") for sentence in sentences(page))


def test_an_entity_without_the_relation_gets_those_it_has(open_page, chain):
    entity, _first, _ = chain["question"].split()
    from workbench.runs import load_run

    task = load_run("tiny-looped").task
    known = set()
    for relation in (word for word in task.vocabulary.words if word.startswith("r")):
        try:
            task.question(f"{entity} {relation}")
            known.add(relation)
        except ValueError:
            missing = relation
    page = open_page("question", question=f"{entity} {missing}")
    assert not page.exception
    said = sentences(page)[0]
    assert "has no relation" in said
    assert all(relation in said for relation in known)


def test_question_shows_bridge_and_answer(open_page, chain):
    shown = tiles(open_page("question", question=chain["question"]))
    assert shown["Question"] == chain["question"]
    assert shown["Bridge"] == chain["bridges"][0]
    assert shown["True answer"] == chain["answer"]


def test_a_question_of_one_hop_has_no_bridge(open_page, chain):
    one_hop = " ".join(chain["question"].split()[:2])
    page = open_page("question", question=one_hop)
    assert not page.exception
    assert tiles(page)["Bridge"] == "none"
    page = open_page("realignment", question=one_hop)
    assert not page.exception
    assert any("without a bridge" in sentence for sentence in sentences(page))


def test_another_seed_draws_another_question_and_stands_in_the_address(open_page):
    page = open_page("question")
    before = page.text_input(key="question").value
    page.button(key="draw").click().run()
    after = page.text_input(key="question").value
    assert before != after
    assert page.query_params["question"] == after
    assert page.number_input(key="seed").value == 1


def test_a_link_reproduces_the_view(open_page, chain):
    address = {"run": "tiny-discoloop", "question": chain["question"], "loops": "3"}
    page = open_page("question", **address)
    assert page.selectbox(key="run").value == "tiny-discoloop"
    assert page.select_slider(key="loops").value == "3"
    assert "after loop 3" in page.caption[1].value
    assert tiles(page)["Question"] == chain["question"]


def test_more_loops_than_trained_are_shown(open_page):
    page = open_page("question")
    page.select_slider(key="loops").set_value("8").run()
    assert not page.exception
    assert any("after loop 8" in caption.value for caption in page.caption)


def test_two_runs_stand_side_by_side(open_page):
    page = open_page("question")
    page.selectbox(key="compare").set_value("tiny-discoloop").run()
    assert not page.exception
    assert [heading.value for heading in page.subheader] == ["tiny-looped", "tiny-discoloop"]
    assert len([metric for metric in page.metric if metric.label == "True answer"]) == 2


def test_alpha_moves_the_answer(open_page):
    page = open_page("realignment", alpha="0.0")
    still = tiles(page)["P(true answer)"]
    before, after = still.split(" → ")
    assert before == after
    page.slider(key="alpha").set_value(1.0).run()
    assert not page.exception
    assert tiles(page)["P(true answer)"] != still


def test_an_intervention_changes_what_is_said_and_a_wrong_one_gets_a_sentence(open_page):
    page = open_page("question")
    plain = page.caption[1].value
    edit = '[{"do": "zero", "place": "blocks.0.hook_mlp_out"}]'
    page.text_area(key="edits").set_value(edit).run()
    assert not page.exception
    assert page.caption[1].value != plain
    for wrong, reason in (("[{", "not JSON"), ('[{"do": "zap"}]', "zap"), ("{}", "a list")):
        page.text_area(key="edits").set_value(wrong).run()
        assert not page.exception
        assert any(reason in sentence for sentence in sentences(page))


def test_a_session_sees_nothing_of_another_ones_edits(open_page, chain):
    address = {"question": chain["question"]}
    alone = tiles(open_page("question", **address))
    edited, plain = open_page("question", **address), open_page("question", **address)
    edit = '[{"do": "add", "place": "recurrence.hook_state_post", "value": 3.0}]'
    edited.text_area(key="edits").set_value(edit).run()
    edited.select_slider(key="loops").set_value("5").run()
    plain.run()
    assert tiles(edited) != alone
    assert tiles(plain) == alone
    assert plain.select_slider(key="loops").value == "as trained"
    assert plain.text_area(key="edits").value == ""


def test_nobody_leaves_hooks_on_the_shared_model(open_page, chain):
    from app.session import Chosen, run_of

    wrong = '[{"do": "zero", "place": "blocks.0.hook_mlp_out", "positions": [9]}]'
    page = open_page("question", question=chain["question"], edits=wrong)
    assert any("position 9" in sentence for sentence in sentences(page))
    model = run_of(Chosen("tiny-looped", "runs/tiny-looped", "cpu")).model
    assert not any(point._forward_hooks for point in model.hook_points())


def test_sessions_at_once_get_what_each_would_get_alone(page_folder, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    from app.session import Chosen
    from workbench.runs import load_run

    monkeypatch.chdir(page_folder)
    from analyses import analyse

    run = load_run("tiny-discoloop")
    asked = [{"n_loops": loops, "n": 20, "seed": seed} for loops in (1, 2, 3) for seed in range(4)]

    def ask(options):
        plain = analyse("logit_lens", run, model=run.model.twin(), **options).to_plain()
        return plain["answer_probability"], plain["control_answer"]

    alone = list(map(ask, asked))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, asked)) == alone
    assert Chosen("a", "runs/tiny-looped", "cpu").saved_at > 0


def test_one_loop_has_no_stage_1_and_says_so_beside_its_curves(open_page):
    page = open_page("training", run="tiny-transformer")
    assert not page.exception
    assert any("one loop" in sentence for sentence in sentences(page))
    assert any("accuracy at step 20" in caption.value for caption in page.caption)


def test_the_step_slider_shows_the_model_of_that_step(open_page):
    page = open_page("training")
    last = [caption.value for caption in page.caption]
    page.select_slider(key="step").set_value(0).run()
    assert not page.exception
    assert [caption.value for caption in page.caption] != last


def test_choices_are_kept_from_view_to_view(open_page, chain):
    page = open_page("question")
    page.text_input(key="question").set_value(chain["question"]).run()
    page.switch_page("views/runs.py").run()
    page.switch_page("views/realignment.py").run()
    assert page.text_input(key="question").value == chain["question"]
    assert page.selectbox(key="run").value == "tiny-looped"


def test_every_figure_comes_with_the_lines_that_make_it(open_page, page_folder):
    for view in VIEWS[1:]:
        for block in open_page(view).code:
            import_line, call, _ = block.value.splitlines()
            scope = {}
            exec(f"{import_line}\n{call}", scope)
            assert scope["found"].summary()


def test_two_runs_are_realigned_side_by_side(open_page):
    page = open_page("realignment", compare="tiny-discoloop")
    assert not page.exception
    names = [heading.value for heading in page.subheader]
    assert names == ["tiny-looped", "tiny-discoloop"] * 2
    assert len([metric for metric in page.metric if metric.label == "P(true answer)"]) == 2
    assert len(page.get("plotly_chart")) == 4


def test_a_run_that_cannot_be_realigned_leaves_the_other_one_alone(open_page):
    page = open_page("realignment", compare="tiny-transformer")
    assert not page.exception
    assert any("acts between loops" in sentence for sentence in sentences(page))
    assert len(page.get("plotly_chart")) == 2


def test_a_link_holds_the_step_while_training_goes_on(
    open_page, page_folder, monkeypatch, tmp_path
):
    runs = tmp_path / "shelf"
    shutil.copytree(page_folder / "runs" / "tiny-unfinished", runs / "going")
    later = (runs / "going" / "steps" / "20.safetensors").rename(tmp_path / "20.safetensors")
    monkeypatch.setattr("workbench.runs.SHIPPED", runs)
    page = open_page("training", run="going")
    assert page.select_slider(key="step").value == 10
    link = dict(page.query_params)
    assert link["step"] in ("10", ["10"])
    later.rename(runs / "going" / "steps" / "20.safetensors")
    assert open_page("training", run="going").select_slider(key="step").value == 20
    assert open_page("training", run="going", step="10").select_slider(key="step").value == 10
    assert open_page("training", run="going", step="11").select_slider(key="step").value == 20


def zipped(folder):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in folder.rglob("*"):
            if path.is_file() and "resume" not in path.parts:
                archive.write(path, path.relative_to(folder.parent))
    return content.getvalue()


def test_an_uploaded_run_is_among_the_runs_and_chosen(
    open_page, page_folder, tmp_path, monkeypatch
):
    content = zipped(page_folder / "runs" / "tiny-looped")
    monkeypatch.chdir(tmp_path)
    page = open_page()
    assert page.button(key="add").disabled
    given = ("given.zip", content, "application/zip")
    page.file_uploader(key="upload").set_value(given).run()
    page.button(key="add").click().run()
    assert not page.exception
    assert page.selectbox(key="run").value == "given"
    assert list(page.dataframe[0].value.run) == ["given"]
    page.file_uploader(key="upload").set_value(given).run()
    page.button(key="add").click().run()
    assert not page.exception
    assert any("runs/given is there already" in sentence for sentence in sentences(page))


def test_an_upload_that_is_no_run_gets_a_sentence_and_leaves_nothing(open_page, page_folder):
    before = sorted(page_folder.rglob("*"))
    page = open_page()
    page.file_uploader(key="upload").set_value(("x.zip", b"no zip", "application/zip")).run()
    page.button(key="add").click().run()
    assert not page.exception
    assert any("x cannot be unpacked" in sentence for sentence in sentences(page))
    assert sorted(page_folder.rglob("*")) == before


def test_the_page_defines_the_words_that_are_coined_here(open_page):
    page = open_page()
    (glossary,) = [box for box in page.sidebar.expander if box.label == "Glossary"]
    text = glossary.markdown[0].value
    assert all(f"**{word}**: " in text for word in ("loop", "thought", "place"))
