"""Things by name, from this project and from others."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from workbench.settings import registry as registry_module
from workbench.settings.config import ConfigError
from workbench.settings.registry import Registry, plug

PLUGIN = '''"""Half the state goes on."""
from workbench import FAMILIES
from workbench.recurrence.base import Continue


class Halved(Continue):
    def begin(self, state, loop, passage):
        return state / 2


FAMILIES.register_recurrence("halved", lambda cfg: Halved())
'''


@pytest.fixture
def shelf():
    return Registry("thing", "things", {"known": "tests.nowhere"})


class Thing:
    """A thing."""


def found(monkeypatch, **points):
    """Entry points of a package that is installed."""
    group = "latent_workbench.things"
    all_of_them = [EntryPoint(name, value, group) for name, value in points.items()]
    monkeypatch.setattr(registry_module, "entry_points", lambda group: all_of_them)


def test_what_is_registered_is_found_with_its_example(shelf):
    shelf.register("thing", example={"size": 3})(Thing)
    assert shelf["thing"] is Thing and shelf.example("thing") == {"size": 3}
    assert list(shelf) == ["known", "thing"] and len(shelf) == 2


def test_a_module_that_is_run_again_replaces_its_own(shelf):
    shelf.register("thing")(Thing)
    again = type("Thing", (), {"__module__": Thing.__module__})
    shelf.register("thing")(again)
    assert shelf["thing"] is again


def test_a_name_that_another_module_has_is_refused(shelf):
    other = type("Other", (), {"__module__": "elsewhere"})
    shelf.register("thing")(Thing)
    with pytest.raises(ConfigError, match=r"elsewhere registers the thing 'thing', which .* has"):
        shelf.register("thing")(other)
    with pytest.raises(ConfigError, match=r"'known', which tests.nowhere has; rename it"):
        shelf.register("known")(other)


def test_an_unknown_name_is_refused_with_the_nearest(shelf):
    shelf.register("gauge")(Thing)
    with pytest.raises(ConfigError, match="no thing 'guage'; did you mean 'gauge'"):
        shelf.find("guage")
    with pytest.raises(ConfigError, match="there is gauge, known; --plugin adds those of other"):
        shelf.find("xxx")


def test_things_of_an_installed_package_come_by_entry_point(shelf, monkeypatch):
    found(monkeypatch, far="collections:OrderedDict")
    assert "far" in shelf and list(shelf) == ["known", "far"]
    assert shelf.about("far") == "of the package collections:OrderedDict"
    assert shelf["far"].__name__ == "OrderedDict"


def test_a_package_that_cannot_be_imported_is_named_and_hides_no_other(shelf, monkeypatch):
    found(monkeypatch, far="no_such_module:Thing", near="collections:OrderedDict")
    with pytest.raises(ConfigError, match="the thing 'far' of no_such_module:Thing cannot be"):
        shelf.find("far")
    assert shelf["near"]


def test_a_package_cannot_take_a_name_of_this_project(shelf, monkeypatch):
    found(monkeypatch, known="collections:OrderedDict")
    assert list(shelf) == ["known"]
    with pytest.raises(ModuleNotFoundError, match=r"tests.nowhere"):
        shelf["known"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise OSError('no')", "OSError: no"),
        (None, "FileNotFoundError: no file"),
    ],
)
def test_a_plugin_that_fails_is_refused_in_a_sentence(tmp_path, text, message):
    path = tmp_path / "broken_plugin.py"
    if text:
        path.write_text(text)
    for _ in range(2):  # it is not taken for loaded
        with pytest.raises(
            ConfigError, match=rf"plugin .*broken_plugin.py( \(line 1\))?: {message}"
        ):
            plug(str(path))
    assert "broken_plugin" not in sys.modules


def test_a_plugin_does_not_hide_another_module(tmp_path):
    (tmp_path / "json.py").write_text("")
    with pytest.raises(ConfigError, match="there is another module 'json'; rename the file"):
        plug(str(tmp_path / "json.py"))


def run(*words, cwd, **env):
    command = [sys.executable, "-m", "workbench.cli", *words]
    plain = {k: v for k, v in os.environ.items() if k != "WORKBENCH_PLUGINS"}
    return subprocess.run(command, cwd=cwd, env=plain | env, capture_output=True, text=True)


RECIPE = """
name: tiny
task: {name: two_hop, n_entities: 6, n_relations: 4, out_degree: 3, n_train: 12, n_test_id: 6,
       n_test_ood: 6}
model: {family: halved, d_model: 16, n_heads: 2, n_layers: 1, d_mlp: 32}
training: {steps: 2, batch_size: 4, measure: {every: 2, n: 4}}
"""


def test_a_family_of_somebody_elses_is_trained_and_asked_from_the_command_line(tmp_path):
    (tmp_path / "halving.py").write_text(PLUGIN)
    (tmp_path / "tiny.yaml").write_text(RECIPE)
    plugin = ("--plugin", "halving.py")
    made = run(*plugin, "train", "tiny.yaml", "--out", "run", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    without = run("evaluate", "run", cwd=tmp_path)
    assert without.returncode == 1 and "no family 'halved'; there is" in without.stderr
    by_variable = run("evaluate", "run", cwd=tmp_path, WORKBENCH_PLUGINS="halving.py")
    assert "run on test_id" in by_variable.stdout, by_variable.stderr


def registered(**fields):
    """Register an edit class with these fields, as an example has them."""
    from workbench.edits.base import PlaceEdit
    from workbench.registries import Edits

    example = fields.pop("example", None)
    body = {"__annotations__": {"do": str}, "__module__": __name__, "do": "fade"} | fields
    Edits("edit", "edits", {}).register("fade", example)(type("Fade", (PlaceEdit,), body))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "edit fade: register it with an example, a dict of its fields"),
        ({"do": "other", "example": {}}, "edit fade: give its class the field do: Literal"),
        ({"example": {}}, "the example of the edit 'fade' lacks the field 'place'"),
        ({"example": {"plac": "x"}}, "the example of the edit 'fade' has no field 'plac'"),
    ],
)
def test_an_edit_without_a_valid_example_is_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        registered(**fields)


def test_a_folder_is_no_plugin(tmp_path):
    with pytest.raises(ConfigError, match="is a folder; name a Python file or a module"):
        plug(str(tmp_path))
