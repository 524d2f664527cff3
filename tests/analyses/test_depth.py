"""What the analyses of depth recurrence find in planted models and hand-made graphs."""

import pytest
import torch

PATH = [(0, 1), (1, 2), (2, 3), (4, 1)]  # 0 → 1 → 2 → 3, and 4 that nothing leads to
STATE = "recurrence.hook_state_post"


def graph(edges=PATH, n_nodes=5, source=0, target=3, n=1):
    """A graph by hand, `n` times over."""
    from workbench.tasks.batch import GraphBatch

    adjacency = torch.zeros(n_nodes, n_nodes, dtype=torch.bool)
    for u, v in edges:
        adjacency[u, v] = True
    distance, frontier, step = torch.full((n_nodes,), -1), {source}, 0
    while frontier:
        for node in frontier:
            distance[node] = step
        step += 1
        found = {v for u in frontier for v in adjacency[u].nonzero()[:, 0].tolist()}
        frontier = {v for v in found if distance[v] < 0}
    none = torch.empty(n, 0, dtype=torch.long)
    return GraphBatch(
        tokens=torch.arange(1, n_nodes + 1).expand(n, -1).clone(),
        length=torch.full((n,), n_nodes),
        read_at=torch.full((n,), target),
        answer=(distance[target] > 0).long().expand(n).clone(),
        difficulty=distance[target].clamp(min=0).expand(n).clone(),
        bridge=none,
        bridge_at=none,
        adjacency=adjacency.expand(n, -1, -1).clone(),
        source_at=torch.full((n,), source),
        target_at=torch.full((n,), target),
        distance=distance.expand(n, -1).clone(),
    )


@pytest.fixture
def walker(build):
    """Build a model over graphs."""
    nodes = dict(perception="nodes", readout="node_pair", positional_embedding_type="none")

    def walker(family="depth_recurrent", **changes):
        table = {} if family == "looped" else {"max_loops": 6}
        return build(family, **({"n_loops": 3} | table | nodes | changes))

    return walker


def test_crossing_is_interpolated_and_the_slope_is_loops_a_step():
    from analyses.measure.fitted_frontier import fit

    accuracy = torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.5, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 1.0]])
    chance, solved = torch.full((3,), 0.5), torch.ones(3, dtype=torch.bool)
    found = fit(accuracy, chance, solved, torch.tensor([1, 2, 4]))
    torch.testing.assert_close(found.crossing, torch.tensor([1.0, 1.75, 3.75]))
    assert float(found.slope) == pytest.approx(0.9286, abs=1e-3)  # by hand: 13/14


def test_a_difficulty_within_noise_of_chance_is_never_solved():
    from analyses.measure.fitted_frontier import fit, solvable

    accuracy, chance = torch.tensor([[0.5, 0.55], [0.5, 0.9]]), torch.full((2,), 0.5)
    solved = solvable(accuracy, chance, torch.tensor([50, 50]))
    assert solved.tolist() == [False, True]
    found = fit(accuracy, chance, solved, torch.tensor([1, 2]))
    assert found.crossing.isnan().tolist() == [True, False]
    assert found.slope.isnan()  # no line through one point


def test_best_accuracy_counts_loops_from_the_difficulty_on():
    from analyses.measure.fitted_frontier import best_once_enough

    accuracy = torch.tensor([[0.9, 0.6], [1.0, 0.7], [1.0, 1.0]])
    levels, wanted = torch.tensor([1, 2, 3]), torch.ones(3, dtype=torch.bool)
    assert float(best_once_enough(accuracy, levels, wanted)) == pytest.approx(0.8)


@pytest.fixture
def staircase(walker):
    """A model whose every loop answers yes to the rows of so many hops, and no to all others."""
    model = walker()
    rows = [graph(target=t, n=40) for t in (1, 2, 3)]
    wrong = [graph(target=4, n=40) for _ in rows]
    for hops, batch in enumerate(wrong, 1):
        batch.difficulty.fill_(hops)
    from workbench.tasks.batch import Batch

    batch = Batch.cat([*rows, *wrong])

    def answer(read, hook):
        loop = len(seen) % 6
        seen.append(1)
        told = (batch.answer == 1) & (batch.difficulty <= loop + 1)
        return torch.where(told, 1.0, -1.0)[:, None].expand_as(read)

    seen = []
    with torch.no_grad():
        model.head.W_out.fill_(1.0)
        model.head.b_out.fill_(0.0)
    return model, batch, [("head.hook_post", answer)]


def test_the_frontier_of_a_planted_staircase_is_one_loop_a_step(staircase):
    from analyses import compute_frontier

    model, batch, hooks = staircase
    with model.hooks(fwd_hooks=hooks):
        found = compute_frontier(model, batch)
    assert found.accuracy.shape == (3, 6)
    is_enough = torch.arange(6) >= torch.arange(3)[:, None]
    stairs = torch.where(is_enough, 1.0, 0.5)
    torch.testing.assert_close(found.accuracy, stairs)
    torch.testing.assert_close(found.crossing, torch.tensor([1.0, 1.75, 2.75]))
    assert found.slope.value == pytest.approx(0.875)
    assert 0.8 < found.slope.low < 0.875 < found.slope.high < 0.95
    assert found.one_loop_hardest.value == 0.5
    assert "1 after 1.0, 2 after 1.8, 3 after 2.8" in found.summary()


def test_a_difficulty_that_a_guess_does_as_well_on_is_not_on_the_frontier(staircase, world):
    from analyses import compute_frontier
    from analyses.kit.trained import Shortcut, Trained

    class Guessing(Trained):
        def shortcut(self, batch):
            return Shortcut("planted", torch.tensor([0.6, 0.6, 1.0]))

    model, batch, hooks = staircase
    with model.hooks(fwd_hooks=hooks):
        found = compute_frontier(model, batch, trained=Guessing(world, (1, 2)))
    assert found.beyond_guess.tolist() == [True, True, False]
    assert found.slope.value == pytest.approx(0.75)
    assert float(found.crossing[2]) == pytest.approx(2.75)
    assert "hops solved beyond guessing: 1 after 1.0, 2 after 1.8 loops" in found.summary()


@pytest.mark.parametrize("n_loops", [1, 2])
def test_a_frontier_of_few_loops_is_drawn(walker, n_loops):
    from analyses import compute_frontier

    found = compute_frontier(walker("looped"), graph(n=4), n_loops=n_loops)
    cells, controls = found.figure().data[:2]
    assert list(cells.x) == list(range(1, n_loops + 1)) and len(controls.x) >= 1


def test_blocks_without_attention_have_none_to_look_at(build):
    from analyses import attention

    nodes = dict(perception="nodes", readout="node_pair", positional_embedding_type="none")
    with pytest.raises(ValueError, match="the blocks of family gnn have no attention"):
        attention(build("gnn", **nodes), graph(n=2))


def test_parts_of_a_batch_read_as_the_whole(walker):
    from analyses.kit.parts import in_parts
    from analyses.measure.compute_frontier import right_by_loop

    model = walker()
    batch = graph(n=7)
    assert [len(rows) for rows in in_parts(model, batch, 3)] == [3, 3, 1]
    with model.hooks(fwd_hooks=[(STATE, lambda t, hook: None)]):
        assert [len(rows) for rows in in_parts(model, batch, 3)] == [7]
        right_by_loop(model, batch, 2)


def test_the_update_gate_is_mapped_by_node_and_channel(walker):
    from analyses import gate_maps

    model, batch = walker(), graph(n=3)

    def open_at_source(share, hook):
        share = torch.zeros_like(share)
        share[:, 0] = 1.0
        share[:, 2, :4] = 0.5
        return share

    with model.hooks(fwd_hooks=[("recurrence.gate.hook_post", open_at_source)]):
        found = gate_maps(model, batch)
    assert found.places == ("source", "1", "2", "3", "none", "target")
    filled = found.mean[0, 0].nan_to_num(-1).tolist()
    # the node 3 edges away is the target, and counts as that
    assert filled == [1.0, 0.0, 0.125, -1.0, 0.0, 0.0]
    assert found.open[0].tolist() == pytest.approx([0.2] * 3)
    assert found.shut[0].tolist() == pytest.approx([0.75] * 3)
    assert found.overall[0].tolist() == pytest.approx([0.225] * 3)
    assert (found.channel[0, 0].diff() >= 0).all()
    assert len(found.figure().data) > 4


def test_gate_maps_show_the_probability_of_stopping(walker):
    from analyses import gate_maps

    found = gate_maps(walker("universal", halting="act"), graph(n=2))
    assert found.symbol == "stop" and found.channel.shape == (1, 3, 1)
    assert found.figure().layout.title.text.startswith("Probability of stopping")


def test_spectral_radius_is_the_largest_eigenvalue(walker):
    from analyses.read.convergence import spectral_radius

    model, batch = walker(), graph(n=2)
    state = torch.randn(2, 5, 16)
    found = spectral_radius(model, batch, state, loop=1)
    for row in range(2):
        one = batch[row : row + 1]

        def step(flat, one=one):
            return model.iterate(flat.view(1, 5, 16), 1, **one.inputs).flatten()

        jacobian = torch.autograd.functional.jacobian(step, state[row].flatten())
        radius = torch.linalg.eigvals(jacobian).abs().max()
        assert float(found[row]) == pytest.approx(float(radius), rel=0.03)


def test_iterating_by_hand_gives_the_models_own_states(walker, build):
    model, batch = walker(), graph(n=2)
    looped = build("discoloop", n_loops=3)
    for each, inputs in ((model, batch.inputs), (looped, {"tokens": torch.tensor([[1, 2, 3]])})):
        _, cache = each.run_with_cache(**inputs, names_filter=STATE)
        states = cache[STATE]
        torch.testing.assert_close(each.iterate(states[0], 1, **inputs), states[1])
        torch.testing.assert_close(each.iterate(states[1], 2, **inputs), states[2])


def test_a_model_that_halts_is_no_map_of_states(walker):
    from analyses import convergence

    with pytest.raises(ValueError, match="a recurrence that halts keeps more than its state"):
        convergence(walker("universal", halting="act"), graph(n=2))


def test_a_loop_that_halves_the_way_converges_by_halves(walker):
    from analyses import convergence

    model, batch = walker("looped", n_loops=4), graph(n=3)
    goal = torch.randn(3, 5, 16)

    def halve(post, hook):
        return goal * (1 + 2.0 ** -(model.clock.loop + 1)) + 0 * post

    with model.hooks(fwd_hooks=[(STATE, halve)]):
        found = convergence(model, batch, n_loops=6, radius_rows=2, at=[5])
    # after loop r the state is goal·(1 + 2^−r), whatever it was before
    steps = [2.0**-r / (1 + 2.0 ** -(r - 1)) for r in range(2, 7)]
    torch.testing.assert_close(found.step[0], torch.tensor(steps))
    assert found.radius[0, 0] < 1e-6
    assert found.settled is None and "in none of 6" in found.summary()


def test_attention_on_a_graph_is_compared_with_looking_evenly(walker):
    from analyses import attention
    from analyses.read.graph_attention import GraphAttention

    model, batch = walker(), graph(n=3)
    found = attention(model, batch)
    assert isinstance(found, GraphAttention)
    # node 1 has parents 0 and 4, nodes 2 and 3 one parent each; all look at themselves too
    torch.testing.assert_close(found.uniform, torch.tensor([1 / 3, 1 / 2, 1 / 2]))
    assert found.along_uniform == pytest.approx((2 / 3 + 1 / 2 + 1 / 2) / 3)
    shape = found.pattern.shape
    assert shape == (3, 2, 2, 5, 5)
    torch.testing.assert_close(found.toward[..., 1], found.pattern[..., 2, 1])


def test_frontier_attention_is_that_of_the_nodes_reached_in_that_loop(walker):
    from analyses import attention

    model, batch = walker(), graph(n=3)

    def to_frontier(pattern, hook):
        new = torch.eye(5).expand_as(pattern).clone()
        node = model.clock.loop + 1
        new[:, :, node] = torch.eye(5)[node - 1]
        return new

    hooks = [(f"blocks.{layer}.attn.hook_pattern", to_frontier) for layer in range(2)]
    with model.hooks(fwd_hooks=hooks):
        found = attention(model, batch)
    assert (found.frontier[0] == 1).all()
    off = ~torch.eye(3, dtype=torch.bool)[:, None, None].expand_as(found.toward)
    assert (found.toward[off] == 0).all()
    assert "with 1.00" in found.summary()


def test_without_gate_but_with_layer_scale_the_gradient_reaches_the_first_loop(walker):
    from analyses import gradient_highway

    found = gradient_highway(walker(), graph(n=4), n_seeds=2)
    by_kind = dict(zip(found.kinds, found.share[:, 0].tolist(), strict=True))
    assert by_kind["no gate, LayerScale 1e-4"] == pytest.approx(1.0, abs=0.01)
    assert (found.share[:, -1] == 1).all() and found.trained[-1] == 1
    assert found.family == "depth_recurrent"


def test_gradient_highway_touches_no_gradient_of_the_model(walker):
    from analyses import gradient_highway

    model = walker()
    gradient_highway(model, graph(n=2), n_seeds=2)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("options", "sentence"), [({"n_seeds": 1}, "n_seeds=1 must be"), ({"n_loops": 1}, "two loops")]
)
def test_gradient_highway_says_what_it_needs(walker, options, sentence):
    from analyses import gradient_highway

    with pytest.raises(ValueError, match=sentence):
        gradient_highway(walker(), graph(n=2), **options)


def test_a_probe_reads_a_planted_reached_set_and_a_shuffled_one_does_not():
    from analyses.graphs.node_probe import NodeProbe
    from workbench.tasks.batch import Batch

    batch = Batch.cat([graph(), graph(edges=[(0, 1)]), graph(edges=[(0, 2), (2, 4)])] * 20)
    wanted = (batch.distance >= 0)[None]
    states = torch.randn(1, len(batch), 5, 16)
    states[..., 0] += 8.0 * wanted
    probe = NodeProbe.fit(states, batch, wanted)
    control = NodeProbe.fit(states, batch, wanted, shuffled=True)
    assert (probe.predict(states) == wanted)[:, :, 1:].float().mean() > 0.98
    assert (control.predict(states) == wanted)[:, :, 1:].float().mean() < 0.8


def test_reached_sets_ask_the_readout_of_every_node(walker):
    from analyses import reached_set

    model = walker()
    batch = graph(n=8)
    found = reached_set(model, batch, n_loops=4)
    assert found.n == 4 and found.n_fitted == 4
    assert found.groups == ("1", "2", "3", "unreachable")
    assert found.n_nodes.tolist() == [4, 4, 4, 4]
    answer = model(**batch.inputs, n_loops=4, every_loop=True).argmax(-1) == 1
    assert found.reached[2, :, 3].tolist() == answer[:, 0].tolist()  # node 3 is the target
    assert found.distance.tolist() == [0, 1, 2, 3, -1]
    assert len(found.figure().data) > 6


def test_reached_sets_are_of_graphs_only(speaker, world):
    from analyses import reached_set

    with pytest.raises(ValueError, match="reached sets need graphs"):
        reached_set(speaker("looped"), world.batch("test_ood", 4))


def test_one_graph_needs_others_for_its_probes(walker):
    from analyses import reached_set

    with pytest.raises(ValueError, match="one graph gives no others"):
        reached_set(walker(), graph())
