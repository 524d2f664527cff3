"""Nodes that are held, on a tiny run on graphs."""

import torch

from analyses.report.waiting import STATE_IN, answered, gate_shares, hold

POST = "recurrence.hook_state_post"


def test_a_held_node_starts_afresh_until_it_is_due(make_graph_run):
    run = make_graph_run()
    model, batch = run.model.twin(), run.task.batch("test", 6)
    due = torch.where(batch.distance < 0, batch.hops[:, None], batch.distance)
    with torch.no_grad(), model.hooks(fwd_hooks=hold(batch)):
        _, cache = model.run_with_cache(**batch.inputs, n_loops=4)
    for loop in range(1, 4):
        begun = cache[STATE_IN][loop]
        first, said = cache[STATE_IN][0], cache[POST][loop - 1]
        waits = due > loop
        torch.testing.assert_close(begun[waits], first[waits])
        torch.testing.assert_close(begun[~waits], said[~waits])


def test_without_holding_the_answers_are_the_models_own(make_graph_run):
    run = make_graph_run()
    batch = run.task.batch("test", 6)
    right = answered(run.model, batch, 3, is_held=False)
    with torch.no_grad():
        logits = run.model(**batch.inputs, n_loops=3)
    assert torch.equal(right[-1], logits.argmax(-1) == batch.answer)


def test_gate_shares_are_means_over_the_nodes_they_name(make_graph_run):
    run = make_graph_run()
    batch = run.task.batch("test", 6)
    near, never = gate_shares(run.model, batch, 3)
    _, cache = run.model.run_with_cache(**batch.inputs, n_loops=3)
    share = cache["recurrence.gate.hook_post"].mean(-1)
    away = batch.distance
    torch.testing.assert_close(near, share[:, (away > 0) & (away <= 3)].mean(1))
    torch.testing.assert_close(never, share[:, (away < 0) & ~batch.is_pad].mean(1))
