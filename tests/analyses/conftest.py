"""Runs small enough to make in a test, and models whose mechanism is planted."""

import json

import pytest
import torch

RECIPE = """
name: tiny
task: {name: two_hop, n_entities: 12, n_relations: 5, out_degree: 3, n_train: 80, n_test_id: 20,
       n_test_ood: 20}
model: {family: %s, d_model: 16, n_heads: 2, n_layers: 1, d_mlp: 32}
training: {steps: 6, batch_size: 32, measure: {every: 2, n: 20},
           save: {dense_every: 2, dense_until: 6}}
"""
GRAPHS = """
name: tiny
task: {name: reachability, n_train: 200, n_valid: 20, n_test: 40, test_hops: [2, 5]}
model: {family: looped, d_model: 16, n_heads: 2, n_layers: 1, d_mlp: 32}
training: {steps: 6, batch_size: 32}
"""


@pytest.fixture(scope="session")
def make_run(tmp_path_factory):
    """Train a family for six steps; each family once a session."""
    from workbench.runs import load_run
    from workbench.settings.recipe import load_recipe
    from workbench.training import train

    made = {}

    def make(family, changes=()):
        key = (family, tuple(changes))
        if key not in made:
            folder = tmp_path_factory.mktemp("runs")
            (folder / "recipe.yaml").write_text(RECIPE % family)
            recipe = load_recipe(folder / "recipe.yaml", changes)
            made[key] = load_run(train(recipe, folder / "run", quiet=True))
        return made[key]

    return make


GRAPH_RECIPE = """
name: tiny
task: {name: reachability, n_train: 200, n_valid: 20, n_test: 20, test_hops: [1, 2, 4]}
model: {family: depth_recurrent, n_loops: 3, max_loops: 6, d_model: 16, n_heads: 2, n_layers: 1,
        d_mlp: 32, positional_embedding_type: none}
training: {steps: 6, batch_size: 32, loops: [2, 3], measure: {every: 3, n: 20},
           save: {dense_every: 3, dense_until: 6}}
"""


@pytest.fixture(scope="session")
def make_graph_run(tmp_path_factory):
    """Train a depth-recurrent model on graphs for six steps, once a session."""
    from workbench.runs import load_run
    from workbench.settings.recipe import load_recipe
    from workbench.training import train

    made = []

    def make():
        if not made:
            folder = tmp_path_factory.mktemp("graphs")
            (folder / "recipe.yaml").write_text(GRAPH_RECIPE)
            recipe = load_recipe(folder / "recipe.yaml")
            made.append(load_run(train(recipe, folder / "run", quiet=True)))
        return made[0]

    return make


THOUGHTS = """
name: tiny
task: {name: prosqa, n_train: 40, n_valid: 8, n_test: 8, n_nodes: 10, hops: [3, 4],
       wording: arrows}
model: {family: %s, d_model: 16, n_heads: 2, n_layers: 2, d_mlp: 32}
training:
  steps: 6
  batch_size: 16
  curriculum: {method: coconut, epochs_per_stage: 1, max_latent_stage: 2}
  measure: {every: 3, n: 4}
"""


@pytest.fixture(scope="session")
def make_thinking_run(tmp_path_factory):
    """Train a model that thinks for six steps; each family once a session."""
    from workbench.runs import load_run
    from workbench.settings.recipe import load_recipe
    from workbench.training import train

    made = {}

    def make(family, changes=()):
        key = (family, tuple(changes))
        if key not in made:
            folder = tmp_path_factory.mktemp("thoughts")
            (folder / "recipe.yaml").write_text(THOUGHTS % family)
            recipe = load_recipe(folder / "recipe.yaml", changes)
            made[key] = load_run(train(recipe, folder / "run", quiet=True))
        return made[key]

    return make


@pytest.fixture
def reasoner(make_thinking_run):
    """A model that says the word which its last thought is nearest to, and hooks that make it so.

    Its embeddings are of one length, so that each word is nearest to itself. What a thought is made
    from is planted by `states(thought)`, a vector for each row of the batch.
    """

    def make(family, states, **changes):
        run = make_thinking_run(family, [f"model.{k}={v}" for k, v in changes.items()])
        model, seen = run.model.untrained(), {}
        torch.nn.init.normal_(model.embed.W_E)
        model.embed.W_E.data /= model.embed.W_E.data.norm(dim=1, keepdim=True)
        ids = run.task.vocabulary.ids

        def make_state(state, hook):
            return states(model, hook.clock.loop).expand_as(state)

        def see(words, hook):
            seen["tokens"] = (words @ model.W_E.T).argmax(-1)
            clock = hook.clock
            if clock.loop < clock.passes.n or clock.passes.n == 0:
                seen["thought"] = torch.zeros_like(seen["tokens"][:, 0])
            elif words.shape[1] > 1:  # not a word said since
                seen["thought"] = seen["tokens"][:, 0]

        def say(normed, hook):
            tokens, thought = seen["tokens"], seen["thought"][:, None]
            said = torch.full_like(tokens, ids["<|end|>"])
            said = torch.where(tokens == ids["<|end-latent|>"], ids["###"], said)
            said = torch.where(tokens == ids["###"], thought, said)
            return model.W_E[said] * 4

        see.by_pass = say.by_pass = True
        hooks = [("hook_embed", see), ("ln_final.hook_normalized", say)]
        return run, model, [("recurrence.hook_state_pre", make_state), *hooks]

    return make


STAGED = """
name: tiny
task: {name: prosqa, n_train: 32, n_valid: 10, n_test: 20, n_nodes: 10, hops: [2, 3],
       lengths: balanced, wording: arrows}
model: {family: coconut, d_model: 16, n_heads: 2, n_layers: 2, d_mlp: 32}
training: {steps: 8, batch_size: 16, measure: {every: 2, n: 10},
           curriculum: {method: coconut, epochs_per_stage: 1, max_latent_stage: 2}}
"""


@pytest.fixture(scope="session")
def make_staged_run(tmp_path_factory):
    """Train a model that thinks for eight steps, two a stage; each kind once a session."""
    from workbench.runs import load_run
    from workbench.settings.recipe import load_recipe
    from workbench.training import train

    made = {}

    def make(*changes):
        if changes not in made:
            folder = tmp_path_factory.mktemp("thinking")
            (folder / "recipe.yaml").write_text(STAGED)
            recipe = load_recipe(folder / "recipe.yaml", changes)
            made[changes] = load_run(train(recipe, folder / "run", quiet=True))
        return made[changes]

    return make


@pytest.fixture
def plant_words(make_staged_run, tmp_path):
    """A run whose next token depends on the last one alone, by shares that are planted.

    `shares` says for each word which words follow it how often; words that it does not name are
    followed by those of `""`. Weights may be planted for single steps, too.
    """
    import shutil

    import torch

    from workbench.runs import load_run
    from workbench.settings.files import write_tensors

    wide = ("model.d_model=128", "model.n_layers=1", "model.tie_embeddings=false")

    def weights(run, shares):
        ids = run.task.vocabulary.ids
        planted = {name: torch.zeros_like(t) for name, t in run.model.state_dict().items()}
        planted["embed.W_E"] = 100 * torch.eye(*planted["embed.W_E"].shape)
        planted["ln_final.w"] += 1
        table = planted["unembed.W_U"]  # [d_model d_vocab]; a state is √d_model times one-hot
        for word, token in ids.items():
            table[token] = -40 / 128**0.5
            for after, share in shares.get(word, shares.get("", {})).items():
                table[token, ids[after]] = torch.tensor(share).log() / 128**0.5
        return planted

    def make(name, shares, *changes, by_step=()):
        base = make_staged_run(*wide, *changes)
        folder = tmp_path / name
        shutil.copytree(base.path, folder)
        write_tensors(folder / "model.safetensors", weights(base, shares))
        for step, other in dict(by_step).items():
            write_tensors(folder / "steps" / f"{step}.safetensors", weights(base, other))
        return load_run(folder)

    return make


@pytest.fixture
def always():
    """Shares of a model that gives one answer to everything."""
    return lambda word: {"": {"###": 1.0}, "###": {word: 1.0}, word: {"<|end|>": 1.0}}


@pytest.fixture(scope="session")
def graph_run(tmp_path_factory):
    """A run on graphs of which nothing but the recipe is there."""
    from workbench.runs import Run

    folder = tmp_path_factory.mktemp("graphs")
    (folder / "recipe.yaml").write_text(GRAPHS)
    return Run(folder)


@pytest.fixture
def run_with_history(make_run, tmp_path):
    """A run whose history is planted: Stage-1 on train_id, final accuracy on test_id."""
    import shutil

    from workbench.runs import load_run

    def make(stage_1, test):
        folder = tmp_path / "planted"
        shutil.copytree(make_run("looped").path, folder)
        lines = []
        for index, (early, late) in enumerate(zip(stage_1, test, strict=True)):
            where = {"step": index * 100, "epoch": index * 5.0}
            for split, by_loop in (("train_id", [early, 1.0]), ("test_id", [0.0, late])):
                record = where | {
                    "split": split,
                    "accuracy": by_loop[-1],
                    "accuracy_by_loop": by_loop,
                }
                lines.append(json.dumps(record) + "\n")
        (folder / "history.jsonl").write_text("".join(lines))
        return load_run(folder)

    return make


@pytest.fixture
def plant_bridge():
    """Hooks that write the bridge's embedding, and nothing else, where it is to be read."""
    from workbench.hooks import at_loop

    def hooks(model, batch, size=1.0):
        def write(state, hook):
            state = state.clone()
            rows, hops = (batch.bridge >= 0).nonzero(as_tuple=True)
            state[rows, batch.bridge_at[rows, hops]] = size * model.W_E[batch.bridge[rows, hops]]
            return state

        return [("recurrence.hook_state_post", at_loop(write, 0))]

    return hooks
