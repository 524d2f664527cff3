"""How an analysis is declared, and what is refused in a sentence."""

import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import analyses
from workbench.capabilities import CanLoop
from workbench.settings.config import ConfigError
from workbench.tasks.batch import Batch


def test_a_parameter_without_a_type_is_refused():
    from analyses import analysis

    def untyped(model: CanLoop, batch: Batch, *, top=5):
        return None

    with pytest.raises(ConfigError, match="analysis untyped: give 'top' a type, such as top: int"):
        analysis()(untyped)


def test_a_model_without_a_type_is_refused_with_one_that_would_do():
    from analyses import analysis

    def untyped(model, batch: Batch):
        return None

    with pytest.raises(ConfigError, match="give 'model' a type, such as model: CanLoop"):
        analysis()(untyped)


def test_one_name_may_stand_without_a_tuple():
    from analyses import ANALYSES, analysis
    from analyses.kit.declare import declared

    @analysis(given="n_loops")
    def lens(model: CanLoop, batch: Batch, *, n_loops: int | None = None):
        return None

    try:
        assert declared("lens").given == ("n_loops",)
    finally:
        del ANALYSES._things["lens"]


def test_what_nothing_gives_is_refused():
    from analyses import analysis

    def greedy(model: CanLoop, batch: Batch, *, gold: int = 0):
        return None

    with pytest.raises(ConfigError, match="greedy: nothing gives 'gold'; n_loops, trained"):
        analysis(given=("gold",))(greedy)


def test_what_is_given_must_be_a_parameter():
    from analyses import analysis

    def plain(model: CanLoop, batch: Batch):
        return None

    with pytest.raises(ConfigError, match="plain: 'task' is given, but no keyword-only parameter"):
        analysis(given=("task",))(plain)


def test_the_type_of_the_model_must_be_a_class():
    from analyses import analysis

    def loose(model: int | None, batch: Batch):
        return None

    with pytest.raises(ConfigError, match="loose: the type of its model must be a class"):
        analysis()(loose)


def test_what_is_given_is_no_option():
    from analyses.kit.declare import declared

    lens = declared("logit_lens")
    assert lens.given == ("n_loops",) and lens.options == {"top": int}


def test_a_function_that_was_never_declared_is_refused_by_name():
    from analyses.kit.declare import declared
    from analyses.kit.listing import ANALYSES

    def bare(model: CanLoop, batch: Batch):
        return None

    ANALYSES.register("bare")(bare)
    try:
        with pytest.raises(ConfigError, match=r"decorate bare with @analysis\(…\)"):
            declared("bare")
    finally:
        del ANALYSES._things["bare"]


@pytest.mark.parametrize("before", ["analyses.attention", "analyses.report.hops"])
def test_the_package_gives_functions_whatever_was_imported_before(before):
    program = (
        f"import {before}; from analyses import attention, logit_lens; import analyses; "
        "print(callable(attention), callable(logit_lens), callable(analyses.attention))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 3, done.stderr


def test_modules_named_like_functions_are_modules_still():
    module = import_module("analyses.attention")
    assert isinstance(module, ModuleType) and analyses.attention is module.attention


def test_listing_the_analyses_imports_no_torch():
    program = (
        "import sys; from workbench.cli import main; main(['analyses']); "
        "print(sorted({'torch', 'pandas', 'plotly'} & set(sys.modules)))"
    )
    env = {"PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
    assert done.stdout.startswith("logit_lens ")
