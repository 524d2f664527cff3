"""Every verb of the command line, and what it says to wrong input."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BY_LOOP = "accuracy_by_loop"

RECIPE = """
name: tiny
about: A model to try the verbs on.
task: {name: two_hop, n_entities: 12, n_relations: 5, out_degree: 3, n_train: 80, n_test_id: 20,
       n_test_ood: 20}
model: {family: discoloop, d_model: 16, n_heads: 2, n_layers: 1, d_mlp: 32}
training: {steps: 4, batch_size: 32, measure: {every: 2, n: 20},
           save: {dense_every: 2, dense_until: 4}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a recipe and a run of it."""
    from workbench.cli import main

    folder = tmp_path_factory.mktemp("cli")
    (folder / "tiny.yaml").write_text(RECIPE)
    assert main(["train", str(folder / "tiny.yaml"), "--out", str(folder / "run")]) == 0
    return folder


@pytest.fixture
def say(folder, capsys, monkeypatch):
    """Run a command line in that folder; gives exit code, output and errors."""
    from workbench.cli import main

    monkeypatch.chdir(folder)

    def say(*words):
        capsys.readouterr()
        code = main(
            [*words, "--device", "cpu"] if words[0] in ("evaluate", "analyse") else [*words]
        )
        out, err = capsys.readouterr()
        return code, out, err

    return say


def test_help_loads_no_torch():
    code = (
        "import sys, workbench.cli as cli; cli.build_parser().format_help();"
        "print('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("verb", "word"),
    [("recipes", "two-hop-paper-discoloop"), ("analyses", "logit_lens"), ("tasks", "three_hop")],
)
def test_listings_have_one_line_for_each_thing(say, verb, word):
    code, out, _ = say(verb)
    assert code == 0
    assert sum(line.startswith(word) for line in out.splitlines()) == 1


def test_runs_lists_the_runs_of_the_folder(say, folder, monkeypatch):
    (folder / "runs").mkdir(exist_ok=True)
    if not (folder / "runs" / "mine").exists():
        (folder / "runs" / "mine").symlink_to(folder / "run")
    code, out, _ = say("runs")
    assert code == 0
    assert any(line.startswith("mine ") and "discoloop" in line for line in out.splitlines())


def test_runs_names_a_broken_run_and_lists_the_others(say, folder):
    broken = folder / "runs" / "broken"
    broken.mkdir(parents=True)
    (broken / "recipe.yaml").write_text("name: [")
    code, out, _ = say("runs")
    shutil.rmtree(broken)
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert "cannot be read: recipe runs/broken/recipe.yaml is no valid YAML" in lines["broken"]
    assert "two-hop-small-discoloop" in lines


def test_plan_says_what_would_be_done_and_does_nothing(say, folder):
    code, out, _ = say("train", "tiny.yaml", "--out", "planned", "--plan", "--set", "seed=7")
    assert code == 0
    assert "seed: 7" in out
    assert "# parameters" in out
    assert not (folder / "planned").exists()


def test_training_again_into_a_run_is_refused(say):
    code, _, err = say("train", "tiny.yaml", "--out", "run")
    assert code == 1
    assert err.endswith("already holds a run; choose another --out, or --resume it\n")


def test_evaluate_prints_the_contracts_object(say):
    code, out, _ = say("evaluate", "run", "--split", "test_ood", "--json", "-")
    found = json.loads(out)
    assert code == 0
    assert {
        "run",
        "recipe",
        "step",
        "split",
        "loops",
        "edits",
        "n",
        "accuracy",
        "accuracy_interval",
        "accuracy_by_loop",
        "majority_rate",
    } <= found.keys()
    assert (found["run"], found["recipe"]) == ("run", "tiny")
    assert (found["step"], found["split"]) == (4, "test_ood")
    assert (found["loops"], found["n"], found["edits"]) == (2, 20, [])
    low, high = found["accuracy_interval"]
    assert low <= found["accuracy"] <= high
    assert len(found["accuracy_by_loop"]) == 2


def test_evaluate_prints_of_many_loops_the_first_and_the_last(say):
    _, out, _ = say("evaluate", "run", "--loops", "12", "--json", "twelve.json")
    (line,) = (line for line in out.splitlines() if line.startswith("after each loop "))
    shown = line.removeprefix("after each loop (trained with 2): ").split(", ")
    assert len(shown) == 10 and shown[-2] == "…"
    every = [f"{share:.4f}" for share in json.loads(Path("twelve.json").read_text())[BY_LOOP]]
    assert len(every) == 12
    assert shown[:-2] == every[:8] and shown[-1] == every[-1]
    _, out, _ = say("evaluate", "run", "--loops", "10")
    assert "…" not in out


def test_evaluate_takes_step_loops_and_edits(say, folder):
    edits = [{"do": "zero", "place": "blocks.0.hook_mlp_out", "loops": [2]}]
    (folder / "edits.json").write_text(json.dumps(edits))
    words = ["evaluate", "run", "--step", "2", "--loops", "3", "--edits", "edits.json"]
    code, out, _ = say(*words, "--json", "-")
    found = json.loads(out)
    assert code == 0
    assert (found["step"], found["loops"], found["edits"]) == (2, 3, edits)


def test_accuracy_is_the_same_in_every_chunk_size(say, monkeypatch):
    import workbench.runs.evaluation

    _, whole, _ = say("evaluate", "run", "--split", "train_id", "--json", "-")
    monkeypatch.setattr(workbench.runs.evaluation, "ROWS", 7)
    _, chunks, _ = say("evaluate", "run", "--split", "train_id", "--json", "-")
    assert json.loads(whole) == json.loads(chunks)


def test_analyse_writes_three_files_and_prints_the_finding(say, folder):
    code, out, _ = say("analyse", "gate_maps", "run", "--n", "5", "--out", "found")
    assert code == 0
    assert out.splitlines()[1:] == [f"found/gate_maps.{end}" for end in ("csv", "html", "json")]
    plain = json.loads((folder / "found" / "gate_maps.json").read_text())
    assert (plain["run"], plain["recipe"]) == ("run", "tiny")
    assert plain["mean"]["axes"] == ["split", "loop", "pos"]


def test_analyse_takes_one_typed_question(say):
    _, out, _ = say(
        "data",
        "two_hop",
        "--set",
        "n_entities=12",
        "--set",
        "n_relations=5",
        "--set",
        "out_degree=3",
        "--set",
        "n_train=80",
        "--set",
        "n_test_id=20",
        "--set",
        "n_test_ood=20",
        "--n",
        "1",
    )
    question = json.loads(out)["question"]
    code, out, _ = say("analyse", "logit_lens", "run", "--question", question)
    assert code == 0
    assert "n=1" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["evaluate", "rum"], "no run 'rum'; "),
        (
            ["evaluate", "run", "--split", "test_odd"],
            "no split 'test_odd'; did you mean 'test_ood'?",
        ),
        (["evaluate", "run", "--step", "3"], "run keeps no step 3; the nearest it keeps is "),
        (["evaluate", "run", "--loops", "0"], "--loops 0 must be at least 1"),
        (
            ["evaluate", "run", "--thoughts", "2"],
            "--thoughts is for models that think; this one has --loops",
        ),
        (["evaluate", "run", "--edits", "none.json"], "none.json does not exist"),
        (
            ["analyse", "logit_lense", "run"],
            "no analysis 'logit_lense'; did you mean 'logit_lens'?",
        ),
        (
            ["analyse", "logit_lens", "run", "--set", "topp=3"],
            "no option 'topp'; did you mean 'top'?",
        ),
        (
            ["analyse", "logit_lens", "run", "--set", "n=5"],
            "--set n: say it as --n, it is no option",
        ),
        (["analyse", "logit_lens", "run", "--out", "tiny.yaml"], "--out tiny.yaml is a file"),
        (["analyse", "realignment", "run", "--set", "alphas=[.nan]"], "must be numbers"),
        (["train", "tiny.yaml", "--set", "name=../x"], "name='../x'"),
        (["train", "tiny.yaml", "--set", "training.optimizer.lr=.nan"], "finite number"),
        (["analyse", "logit_lens", "run", "--question", " "], "the question is empty"),
        (
            ["analyse", "logit_lens", "run", "--question", "A1 r1", "--split", "test_id"],
            "split and question both choose the rows; give one of the two",
        ),
        (
            ["analyse", "training_curves", "run", "--step", "2", "--question", "A1 r1"],
            "training_curves looks at a run as a whole, which step, question do not change",
        ),
        (
            ["analyse", "training_curves", "run", "--n", "20"],
            "training_curves looks at a run as a whole, which n does not change",
        ),
        (
            ["analyse", "stage_collapse", "run", "--split", "test_id", "--loops", "3"],
            "stage_collapse looks at a run as a whole, which loops, split do not change",
        ),
        (
            ["train", "tiny.yaml", "--plan", "--set", "training.measure.splits=[test_odd]"],
            "training.measure.splits: the task has no split 'test_odd'; did you mean 'test_ood'?",
        ),
        (
            ["train", "tiny.yaml", "--out", "x", "--set", "training.mixture={train: 1.0}"],
            "training.mixture: the task has no split 'train'; did you mean 'train_id'?",
        ),
        (["train", "two-hop-paper-disco"], "no recipe 'two-hop-paper-disco'"),
        (["train", "tiny.yaml", "--out", "x", "--set", "training.step=3"], "did you mean 'steps'?"),
        (["train", "tiny.yaml", "--out", "x", "--set", "model.family=loopd"], "no family 'loopd'"),
        (["train", "tiny.yaml", "--out", "x", "--set", "task.name=two_hops"], "no task 'two_hops'"),
        (["data", "two_hop", "--split", "test"], "no split 'test'; did you mean"),
        (["data", "two_hop", "--set", "n_train"], "--set 'n_train' is not of the form k=v"),
        (["data", "two_hop", "--out", "none/x.jsonl"], "none/x.jsonl cannot be written"),
        (["data", "two_hop", "--seed", "-1"], "seed=-1 must be at least 0"),
        (["train", "run/model.safetensors"], "model.safetensors is not text in UTF-8"),
        (["train", "tiny.yaml", "--out", "tiny.yaml"], "tiny.yaml is no folder"),
        (
            ["analyse", "realignment", "run", "--set", "scale=rmss"],
            "realignment: scale='rmss': Input should be 'rms' or 'state'",
        ),
        (
            ["analyse", "realignment", "run", "--set", "alphas=3"],
            "realignment: alphas=3: Input should be",
        ),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_nothing(say, folder, words, sentence):
    before = sorted(folder.rglob("*"))
    code, out, err = say(*words)
    assert code == 1
    assert out == ""
    assert err.startswith(f"workbench {words[0]}: ")
    assert err.count("\n") == 1
    assert sentence in err
    assert sorted(folder.rglob("*")) == before


def test_an_unknown_device_is_named(folder, capsys):
    from workbench.cli import main

    assert main(["evaluate", str(folder / "run"), "--device", "tpu"]) == 1
    assert (
        capsys.readouterr().err == "workbench evaluate: no device 'tpu' here; did you mean 'cpu'?\n"
    )


def test_the_page_is_open_to_this_machine_alone_wherever_it_is_started(tmp_path, monkeypatch):
    from streamlit import config
    from streamlit.web import bootstrap

    from workbench.cli import main

    opened = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bootstrap, "run", lambda *how: opened.append(how))
    assert main(["app"]) == 0
    assert opened[0][0].endswith("app/streamlit_app.py")
    assert config.get_option("server.address") == "localhost"
    assert not config.get_option("browser.gatherUsageStats")


def test_a_reader_that_has_seen_enough_is_no_error():
    import subprocess
    import sys

    words = [sys.executable, "-m", "workbench.cli", "recipes"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        run.stdout.close()
        complaint = run.stderr.read()
    moment = "workbench recipes: reading the recipes …\n"  # where that takes longer than a moment
    assert run.returncode == 0
    assert complaint in ("", moment)


def test_data_of_a_run_are_in_the_words_that_it_knows(say):
    code, out, _ = say("data", "run", "--n", "3")
    assert code == 0
    from workbench.runs import load_run

    run = load_run("run")
    for line in out.splitlines():
        question = json.loads(line)["question"]
        assert run.model(**run.model.ask(question)).isfinite().all()
    code, _, err = say("data", "run", "--set", "n_train=3", "--seed", "1")
    assert code == 1 and "leave out --set and --seed" in err
