"""Recurrences that nobody here has seen: what a stranger's subclass may do, and what then holds."""

import pytest
import torch

from workbench.edits import edit_hooks, parse_edits
from workbench.hooks import HookPoint
from workbench.models.loops.looped import Looped
from workbench.recurrence.base import Continue, Recurrence
from workbench.settings.config import ConfigError
from workbench.training.plan import flops_per_token

IN, PRE, POST = (f"recurrence.hook_state_{where}" for where in ("in", "pre", "post"))


class Halved(Continue):
    """The blocks start from half the state."""

    def begin(self, state, loop, passage):
        return state * 0.5


class Inject(Recurrence):
    """Each loop starts from W [state; the state at loop 0], as Huginn's does."""

    def __init__(self, d_model):
        super().__init__()
        self.W_inject = torch.nn.Parameter(torch.randn(2 * d_model, d_model) * 0.2)
        self.hook_input = HookPoint()

    def begin(self, state, loop, passage):
        return torch.cat((state, self.hook_input(passage.start)), -1) @ self.W_inject

    def forward(self, post, passage):
        return post


class Counting(Continue):
    """Keeps a number beside the state and can run three loops."""

    state_is_all = False
    max_loops = 3


@pytest.fixture
def stranger(speaker, world):
    """Build a model with a recurrence of somebody else's, and a batch of questions."""

    def stranger(recurrence, **changes):
        class Strange(Looped):
            def make_recurrence(self):
                return recurrence

        cfg = speaker("looped", n_layers=1, **changes).cfg
        return Strange(cfg).eval(), world.batch("test_id", 4)

    return stranger


def run(model, batch, *edits, **options):
    with torch.no_grad(), model.hooks(fwd_hooks=edit_hooks(parse_edits([*edits]), model, batch)):
        return model.run_with_cache(**batch.inputs, **options)[1]


def test_a_skipped_loop_hands_on_the_state_as_it_was_handed(stranger):
    model, batch = stranger(Halved(), n_loops=3)
    cache = run(model, batch, {"do": "skip", "loops": [1]})
    assert torch.equal(cache[POST][1], cache[IN][1])
    assert torch.equal(cache[IN][2], cache[POST][0])
    torch.testing.assert_close(cache[PRE][1], cache[IN][1] * 0.5)


def test_a_realigned_state_is_the_one_that_is_handed_on(stranger):
    model, batch = stranger(Halved(), n_loops=2)
    edit = {"do": "realign", "target": "bridge", "alpha": 1.0}
    cache = run(model, batch, edit)
    rows = torch.arange(len(batch))
    at = batch.bridge_at[:, 0]
    embedding = model.W_E[batch.bridge[:, 0]]
    scaled = embedding * embedding.pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt()
    torch.testing.assert_close(cache[IN][1, rows, at], scaled, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(cache[PRE][1], cache[IN][1] * 0.5)


def test_a_stored_edit_that_names_what_the_blocks_start_from_keeps_its_meaning(speaker, world):
    model, batch = speaker("depth_recurrent", n_loops=2), world.batch("test_id", 4)
    at = {"do": "realign", "target": "bridge", "alpha": 1.0}
    before = run(model, batch, at | {"place": PRE})
    after = run(model, batch, at)
    rows, where = torch.arange(len(batch)), batch.bridge_at[:, 0]
    told = model.recurrence.loop_embedding(1)
    torch.testing.assert_close(before[PRE][1, rows, where] + told, after[PRE][1, rows, where])


@pytest.mark.parametrize("family", ["looped", "ponder", "discoloop"])
@pytest.mark.parametrize("norm", ["none", "rms"])
def test_without_a_loop_embedding_both_places_hold_the_same(speaker, world, family, norm):
    model, batch = speaker(family, n_loops=3, state_norm=norm), world.batch("test_id", 4)
    cache = run(model, batch)
    assert torch.equal(cache[IN], cache[PRE])


@pytest.mark.parametrize("family", ["universal", "depth_recurrent"])
def test_the_state_as_handed_on_lacks_the_loop_embedding(speaker, world, family):
    model, batch = speaker(family, n_loops=3), world.batch("test_id", 4)
    cache = run(model, batch)
    assert torch.equal(cache[IN] + cache["recurrence.hook_loop_embed"], cache[PRE])
    assert torch.equal(cache[IN][1:], cache[POST][:-1])


def test_the_state_at_loop_zero_comes_after_the_prelude(stranger):
    model, batch = stranger(Inject(16), n_loops=3, n_prelude=1, n_coda=1)
    cache = run(model, batch)
    prelude = cache["prelude.0.hook_resid_post"]
    for loop in range(3):
        assert torch.equal(cache["recurrence.hook_input"][loop], prelude)
    assert torch.equal(cache[IN][0], prelude)


def test_one_loop_of_an_injecting_recurrence_can_be_run_alone(stranger):
    model, batch = stranger(Inject(16), n_loops=3, n_prelude=1)
    cache = run(model, batch)
    with torch.no_grad():
        again = model.iterate(cache[POST][1], 2, **batch.inputs)
    torch.testing.assert_close(again, cache[POST][2])


def test_a_loop_of_an_injecting_recurrence_can_be_left_out(stranger):
    model, batch = stranger(Inject(16), n_loops=3, n_prelude=1)
    cache = run(model, batch, {"do": "skip", "loops": [1]})
    assert torch.equal(cache[IN][2], cache[POST][0])


def test_an_injecting_recurrence_has_a_spectral_radius(stranger):
    from analyses import convergence

    model, batch = stranger(Inject(16), n_loops=3)
    found = convergence(model, batch, n_loops=4)
    assert found.radius.shape == (3, 3) and bool((found.radius > 0).all())


def test_a_recurrence_that_does_not_halt_is_not_said_to(stranger):
    model, batch = stranger(Counting(), n_loops=2)
    _, cache = model.run_with_cache(**batch.inputs)
    with pytest.raises(ValueError, match=r"^iterate: Counting keeps more than its state from loop"):
        model.iterate(cache[POST][0], 1, **batch.inputs)
    with pytest.raises(ConfigError, match=r"^skip: Counting keeps more .* no loop can be left out"):
        run(model, batch, {"do": "skip", "loops": [1]})


def test_a_recurrence_without_a_table_is_not_said_to_have_one(stranger):
    model, batch = stranger(Counting(), n_loops=2)
    with pytest.raises(ValueError, match="n_loops=4 is more than Counting can run"):
        model(**batch.inputs, n_loops=4)


def test_a_recurrence_counts_its_own_operations(stranger, speaker):
    model, _ = stranger(Inject(16), n_loops=3)
    plain = speaker("looped", n_layers=1, n_loops=3)
    own = 2 * model.recurrence.W_inject.numel() * 3  # in a forward pass; backward costs two more
    assert flops_per_token(model) == flops_per_token(plain) + 3 * own


@pytest.mark.parametrize(
    ("family", "changes", "weights"),
    [
        ("discoloop", {}, lambda cfg: 2 * 2 * cfg.d_vocab * cfg.d_model),
        ("ponder", {"decoding": "hard"}, lambda cfg: 2 * cfg.d_vocab * cfg.d_model),
        ("depth_recurrent", {}, lambda cfg: 3 * 2 * cfg.d_model**2),
        ("universal", {}, lambda cfg: 0),
    ],
)
def test_our_recurrences_count_what_they_multiply(speaker, family, changes, weights):
    model = speaker(family, n_loops=3, **changes)
    own = model.recurrence.flops(3, model.cfg.d_vocab * model.cfg.d_model)
    assert own == 2 * weights(model.cfg)


def test_edits_of_order_need_a_loop_embedding_and_no_certain_class(speaker, world):
    model, batch = speaker("looped", n_loops=3), world.batch("test_id", 4)
    with pytest.raises(ConfigError, match="it has no loop embedding"):
        run(model, batch, {"do": "swap", "loops": [0, 1]})
