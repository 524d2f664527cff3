"""What each loop answers: words or yes and no, against shorter runs."""

import pytest
import torch


@pytest.fixture
def graph_run(make_graph_run):
    return make_graph_run()


def test_each_loop_answers_as_a_run_that_ends_there(graph_run):
    from analyses import analyse

    found = analyse("answers", graph_run, n=10, n_loops=3).result
    batch = graph_run.task.batch("test", 10, 0)
    for loop in range(3):
        share = graph_run.model(**batch.inputs, n_loops=loop + 1).softmax(-1)
        wanted = share.gather(1, batch.answer[:, None])[:, 0]
        torch.testing.assert_close(found.probability[loop], wanted)
        assert torch.equal(found.right[loop], share.argmax(-1) == batch.answer)


def test_a_question_is_answered_in_the_tasks_words(graph_run):
    from analyses import analyse

    found = analyse("answers", graph_run, question="A>B B>C : A C", n_loops=2).result
    assert found.true == "reachable"
    assert {word for word, _ in found.said} <= {"reachable", "unreachable"}
    assert "the true answer is reachable" in found.summary()


def test_words_are_answered_too(make_run):
    from analyses import analyse

    run = make_run("discoloop")
    found = analyse("answers", run, split="test_id", n=10).result
    assert found.true in run.task.vocabulary.words
    assert found.probability.shape == (2, 10)
