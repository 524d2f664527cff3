"""Analyses ask a model for what they need, not for a class of ours."""

import pytest
import torch

from workbench.capabilities import CanDecode, CanIterate, CanLoop, CanRecord, CanThink, has
from workbench.settings.config import ConfigError


class Wrapped:
    """A looped model of somebody else's: it has the members of `CanLoop` and no others."""

    def __init__(self, model):
        self._model = model
        for name in (
            *("cfg", "kind", "device", "hook_dict", "looped_places", "between_places"),
            *("tokenizer", "answers", "n_loops", "max_loops"),
        ):
            setattr(self, name, getattr(model, name))

    def __call__(self, *args, **kwargs):
        return self._model(*args, **kwargs)

    def hook_points(self):
        return self._model.hook_points()

    def hooks(self, *args, **kwargs):
        return self._model.hooks(*args, **kwargs)

    def run_with_cache(self, *args, **kwargs):
        return self._model.run_with_cache(*args, **kwargs)

    def untrained(self, seed=0):
        return Wrapped(self._model.untrained(seed))

    def twin(self):
        return Wrapped(self._model.twin())

    def to_str_tokens(self, tokens):
        return self._model.to_str_tokens(tokens)

    def ask(self, question):
        return self._model.ask(question)

    def readout(self, state, **inputs):
        return self._model.readout(state, **inputs)


def test_families_that_loop_have_all_that_looping_takes(build):
    model = build("looped")
    assert all(has(model, wanted) for wanted in (CanRecord, CanLoop, CanIterate, CanDecode))
    assert not has(model, CanThink)


def test_families_that_think_have_all_that_thinking_takes(thinker):
    assert has(thinker("agclr"), CanThink) and not has(thinker("agclr"), CanLoop)


def test_an_analysis_takes_a_model_of_no_class_of_ours(speaker, world):
    from analyses import attention, compute_frontier

    model, batch = speaker("looped"), world.batch("test_id", 6)
    assert not has(Wrapped(model), CanDecode) and has(Wrapped(model), CanLoop)
    for analysis in (attention, compute_frontier):
        own, other = analysis(model, batch), analysis(Wrapped(model), batch)
        assert own.to_frame().equals(other.to_frame())


def test_what_a_model_lacks_is_said_with_what_would_run(make_small_run):
    from analyses import analyse

    run = make_small_run()
    with pytest.raises(ConfigError) as error:
        analyse("logit_lens", run, model=Wrapped(run.model), n=4)
    assert str(error.value).startswith(
        "logit_lens needs a vocabulary and loops, which family discoloop does not have; these "
        "analyses run: gate_maps, attention, answers, gradient_highway"
    )
    assert "memory_retention" not in str(error.value) and "convergence" not in str(error.value)


@pytest.fixture
def make_small_run(recipe, tmp_path):
    from workbench.runs import load_run
    from workbench.training import train

    return lambda: load_run(train(recipe(steps=2), tmp_path / "run", quiet=True))


def test_a_wrapped_model_is_analysed_as_the_run_is(make_small_run):
    from analyses import analyse

    run = make_small_run()
    own = analyse("attention", run, n=4)
    other = analyse("attention", run, model=Wrapped(run.model), n=4)
    assert torch.equal(own.result.pattern, other.result.pattern)
