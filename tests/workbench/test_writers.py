"""Files are written whole or not at all, only regular ones are replaced, one training a folder."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from workbench.settings.config import ConfigError
from workbench.settings.files import FileError, write_tensors, write_text
from workbench.training.lock import RunLock

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory, recipe):
    """The folder of a run of six steps."""
    from workbench.training import train

    return train(recipe(), tmp_path_factory.mktemp("made") / "run", quiet=True)


def test_a_device_stays_a_device():
    before = os.stat("/dev/null")
    write_text(Path("/dev/null"), "text")
    assert os.path.samestat(os.stat("/dev/null"), before)
    with pytest.raises(FileError, match="/dev/full cannot be written"):
        write_text(Path("/dev/full"), "text")
    assert not Path("/dev/full").is_file()


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "text")
    reader.join(10)
    assert read == ["text"] and pipe.is_fifo()


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 2


def test_two_writers_at_once_leave_one_whole_file(tmp_path):
    path = tmp_path / "weights.safetensors"
    tensors = [{"a": torch.full((50_000,), float(number))} for number in range(4)]
    writers = [threading.Thread(target=write_tensors, args=(path, t)) for t in tensors * 3]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    from workbench.settings.files import read_tensors

    assert len(read_tensors(path)["a"].unique()) == 1
    assert [*tmp_path.iterdir()] == [path]


def test_a_second_training_of_a_folder_is_refused_while_the_first_lives(tmp_path):
    first, second = RunLock(tmp_path), RunLock(tmp_path)
    first.take()
    with pytest.raises(ConfigError, match=rf"another training writes {tmp_path} \(process \d+\)"):
        second.take()
    first.drop()
    second.take()
    second.drop()
    assert not list(tmp_path.iterdir())


TRAIN = """
import sys, time
from pathlib import Path
from workbench.settings.recipe import load_recipe
from workbench.training import Trainer

trainer = Trainer(load_recipe(sys.argv[1]), Path(sys.argv[2]), quiet=True)
trainer.model.register_forward_pre_hook(lambda *_: time.sleep(600) if trainer.step == 3 else None)
trainer.start(resume=False)
trainer.run()
"""


def test_a_killed_training_leaves_no_lock_and_a_living_one_is_not_disturbed(recipe, tmp_path):
    from workbench.training import train

    whole = recipe()
    (tmp_path / "tiny.yaml").write_text(whole.to_yaml())
    folder = tmp_path / "run"
    living = subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(tmp_path / "tiny.yaml"), str(folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    try:
        until = time.monotonic() + 120
        while not (folder / "resume" / "state.json").exists():
            assert time.monotonic() < until and living.poll() is None
            time.sleep(0.1)
        before = (folder / "history.jsonl").read_bytes()
        for resume in (True, False):
            with pytest.raises(ConfigError, match=rf"\(process {living.pid}\)"):
                train(whole, folder, resume=resume, quiet=True)
        assert living.poll() is None and (folder / "history.jsonl").read_bytes() == before
    finally:
        living.send_signal(signal.SIGKILL)
        living.wait()
    train(whole, folder, resume=True, quiet=True)
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert len(lines) == len({(line["step"], line["split"]) for line in lines})


def test_exit_codes_tell_a_wrong_input_from_a_bug(made, capsys, monkeypatch):
    from workbench import cli

    def broken(*args, **options):
        return [][1]

    assert cli.main(["evaluate", str(made), "--split", "nowhere", "--device", "cpu"]) == 1
    monkeypatch.setattr("workbench.runs.evaluation.evaluate", broken)
    assert cli.main(["evaluate", str(made), "--device", "cpu"]) == cli.CRASHED == 70
    said = capsys.readouterr().err
    assert "IndexError" in said and "this is a bug; please report it" in said
    with pytest.raises(SystemExit) as left:
        cli.main(["evaluate"])
    assert left.value.code == 2
    assert "70 a bug" in " ".join(cli.build_parser().format_help().split())


def test_a_run_records_its_threads_and_says_so_when_another_number_goes_on(
    made, tmp_path, recipe, capsys
):
    import shutil

    from workbench.settings.recipe import load_recipe
    from workbench.training import train

    assert load_recipe(made / "recipe.yaml").threads == torch.get_num_threads() == 1
    folder = shutil.copytree(made, tmp_path / "run")
    path = folder / "recipe.yaml"
    path.write_text(path.read_text().replace("threads: 1", "threads: 7"))
    train(recipe(), folder, resume=True, quiet=True)
    assert "was begun with 7 threads and goes on with 1" in capsys.readouterr().err


def test_work_that_takes_longer_than_a_moment_says_what_it_does(made, capsys, monkeypatch):
    from workbench import cli

    monkeypatch.setattr(cli, "MOMENT", 0.0)
    assert cli.main(["evaluate", str(made), "--device", "cpu"]) == 0
    assert "workbench evaluate: drawing the task and asking the run …" in capsys.readouterr().err
