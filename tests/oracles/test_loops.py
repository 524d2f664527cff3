"""Records and edits of every family that loops, against raw hooks that count calls."""

import pytest
import torch

from workbench.edits import edit_hooks, parse_edits
from workbench.models import FAMILIES
from workbench.models.loops.depth import DepthModel

K = 3
TOKENS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
OUTER = {"n_prelude": 1, "n_coda": 1}
LOOPING = [name for name, cls in FAMILIES.items() if issubclass(cls, DepthModel)]
CASES = {
    **{name: (name, {}) for name in LOOPING},
    **{f"{name}, prelude and coda": (name, OUTER) for name in LOOPING},
    "discoloop, learned gate": ("discoloop", {"alpha": "learned"}),
    "universal, halting": ("universal", {"halting": "act"}),
}
PRE, POST = "recurrence.hook_state_pre", "recurrence.hook_state_post"
RESID = "blocks.0.hook_resid_post"
WITH_BRIDGES = [name for name in LOOPING if name != "gnn"]
CLOSE = dict(atol=1e-5, rtol=1e-5)


def at(wanted, change):
    """A change of one call alone."""
    return lambda call, tensor: change(tensor) if call == wanted else None


def near(one, other):
    torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("case", CASES)
def test_record_r_of_every_place_is_what_call_r_of_its_module_made(counted, build, case):
    name, changes = CASES[case]
    model = build(name, **changes)
    modules = {}
    for stack in ("prelude", "blocks", "coda"):
        for layer, block in enumerate(getattr(model, stack)):
            modules[f"{stack}.{layer}"] = block
            if hasattr(block, "ls1"):
                modules[f"{stack}.{layer}.ls1"] = block.ls1
                modules[f"{stack}.{layer}.ls2"] = block.ls2
    with counted(**modules, between=model.recurrence) as calls:
        _, cache = model.run_with_cache(TOKENS, n_loops=K)
    checked = 0
    for module, found in calls.items():
        inner = module.startswith("blocks.")
        if module == "between":
            assert len(found.given) == K - 1
            for r, post in enumerate(found.given):
                near(cache[POST][r], post)
            continue
        place, attribute = {
            "ls1": (f"{module.removesuffix('.ls1')}.hook_attn_out", "made"),
            "ls2": (f"{module.removesuffix('.ls2')}.hook_mlp_out", "made"),
        }.get(module.rpartition(".")[2], (f"{module}.hook_resid_post", "made"))
        if place not in cache:  # a graph network has layers of another make
            continue
        records = getattr(found, attribute)
        assert len(records) == (K if inner else 1), (module, len(records))
        assert cache.has_loop_axis(place) == inner
        for r, record in enumerate(records):
            near(cache[place][r] if inner else cache[place], record)
            checked += 1
    first = calls["blocks.0"]
    assert len(first.given) == K
    for r, start in enumerate(first.given):
        near(cache[PRE][r], start)
    assert checked or name == "gnn"


def values(tensor_by_loop):
    """Each kind of edit of a place's values as plain torch; what it is given is one call's."""
    return {
        "zero": ({}, lambda x: x * 0),
        "mean": ({}, lambda x: x.mean(0, keepdim=True).expand_as(x)),
        "add": ({"value": 0.5}, lambda x: x + 0.5),
        "scale": ({"factor": -2.0}, lambda x: x * -2),
        "clamp": ({"low": -0.1, "high": 0.2}, lambda x: x.clamp(-0.1, 0.2)),
        "patch": ({"from_loop": 1}, lambda x: tensor_by_loop[1]),
        "patch another row": ({"from_row": "other"}, lambda x: None),
    }


@pytest.mark.parametrize("loop", range(K))
@pytest.mark.parametrize("name", WITH_BRIDGES)
def test_an_edit_of_a_loop_is_what_a_raw_hook_on_that_call_does(
    counted, speaker, world, name, loop
):
    model = speaker(name)
    batch = world.split("test_ood")
    block = model.blocks[0]
    with counted(block=block) as plain:
        model(**batch.inputs, n_loops=K)
    for kind, (fields, change) in values(plain["block"].made).items():
        do = kind.split()[0]
        if kind == "patch another row":
            change = plain["block"].made[loop].roll(1, 0).clone
            change = (lambda rolled: lambda x: rolled)(change())
        edits = parse_edits([{"do": do, "place": RESID, "loops": [loop], **fields}])
        with model.hooks(fwd_hooks=edit_hooks(edits, model, batch)):
            found = model(**batch.inputs, n_loops=K)
        with counted(block=(block, None, at(loop, change))) as calls:
            wanted = model(**batch.inputs, n_loops=K)
        assert len(calls["block"].made) == K
        near(found, wanted)
        again = model(**batch.inputs, n_loops=K)
        assert torch.equal(again, model(**batch.inputs, n_loops=K))  # nothing is left behind


@pytest.mark.parametrize("name", WITH_BRIDGES)
def test_an_edit_without_loops_is_a_raw_hook_on_every_call(counted, speaker, world, name):
    model, batch = speaker(name), world.split("test_ood")
    edits = parse_edits([{"do": "scale", "place": RESID, "factor": 0.5, "positions": [1]}])

    def change(call, made):
        changed = made.clone()
        changed[:, 1] *= 0.5
        return changed

    with model.hooks(fwd_hooks=edit_hooks(edits, model, batch)):
        found = model(**batch.inputs, n_loops=K)
    with counted(block=(model.blocks[0], None, change)):
        wanted = model(**batch.inputs, n_loops=K)
    near(found, wanted)


@pytest.mark.parametrize("after", range(K - 1))
@pytest.mark.parametrize("name", WITH_BRIDGES)
def test_freeze_puts_what_an_earlier_call_made(counted, speaker, world, name, after):
    model, batch = speaker(name), world.split("test_ood")
    made = []

    def change(call, output):
        made.append(output)
        return made[after] if call > after else None

    edits = parse_edits([{"do": "freeze", "place": RESID, "after": after}])
    with model.hooks(fwd_hooks=edit_hooks(edits, model, batch)):
        found = model(**batch.inputs, n_loops=K)
    with counted(block=(model.blocks[0], None, change)):
        wanted = model(**batch.inputs, n_loops=K)
    near(found, wanted)


@pytest.mark.parametrize("loop", [1, 2])
@pytest.mark.parametrize("target", ["bridge", "decoded"])
@pytest.mark.parametrize("name", ["looped", "discoloop", "ponder"])
def test_realign_moves_what_a_call_starts_from(counted, speaker, world, name, target, loop):
    model, batch = speaker(name), world.split("test_ood")
    rows, where = torch.arange(len(batch)), batch.bridge_at[:, 0]

    def change(state):
        here = state[rows, where]
        logits = model.unembedded(model.ln_final.plain(here))
        aim = model.W_E[batch.bridge[:, 0] if target == "bridge" else logits.argmax(-1)]
        unit = aim / (aim.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        moved = state.clone()
        moved[rows, where] = 0.7 * here + 0.3 * unit
        return moved

    edits = parse_edits([{"do": "realign", "alpha": 0.3, "target": target, "loops": [loop]}])
    with model.hooks(fwd_hooks=edit_hooks(edits, model, batch)):
        found = model(**batch.inputs, n_loops=K)
    with counted(block=(model.blocks[0], at(loop, change), None)):
        wanted = model(**batch.inputs, n_loops=K)
    near(found, wanted)


@pytest.mark.parametrize("loop", range(K))
@pytest.mark.parametrize("name", ["looped", "discoloop"])
def test_a_skipped_loop_makes_what_it_was_given(counted, speaker, world, name, loop):
    model, batch = speaker(name), world.split("test_ood")
    edits = parse_edits([{"do": "skip", "loops": [loop]}])
    with model.hooks(fwd_hooks=edit_hooks(edits, model, batch)):
        found = model(**batch.inputs, n_loops=K)
    first, last = model.blocks[0], model.blocks[-1]
    given = []
    note = lambda call, start: given.append(start)  # noqa: E731
    with counted(first=(first, note, None), last=(last, None, at(loop, lambda x: given[loop]))):
        wanted = model(**batch.inputs, n_loops=K)
    near(found, wanted)


@pytest.mark.parametrize("name", ["depth_recurrent", "universal"])
@pytest.mark.parametrize(
    ("edit", "order"),
    [
        ({"do": "swap", "loops": [0, 2]}, [2, 1, 0]),
        ({"do": "swap", "loops": [1, 2]}, [0, 2, 1]),
        ({"do": "repeat", "loops": [0]}, [0, 0, 1]),
        ({"do": "repeat", "loops": [1]}, [0, 1, 1]),
    ],
)
def test_another_order_is_another_row_of_the_loop_embedding(
    counted, speaker, world, name, edit, order
):
    model, batch = speaker(name), world.split("test_ood")
    table = model.recurrence.loop_embed.W_loop
    with model.hooks(fwd_hooks=edit_hooks(parse_edits([edit]), model, batch)):
        found = model(**batch.inputs, n_loops=K)
    tell = lambda call, row: table[order[call]]  # noqa: E731
    with counted(told=(model.recurrence.loop_embed, None, tell)) as calls:
        wanted = model(**batch.inputs, n_loops=K)
    assert len(calls["told"].made) == K
    near(found, wanted)
