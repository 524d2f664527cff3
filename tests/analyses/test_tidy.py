import pytest
import torch


def test_a_tidy_table_has_one_row_for_each_combination_of_labels():
    from analyses.kit.tidy import tidy

    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    frame = tidy({"share": values, "twice": 2 * values}, {"model": "ab", "loop": [0, 1, 2]}, n=7)
    assert list(frame) == ["model", "loop", "share", "twice", "n"]
    assert frame[(frame.model == "b") & (frame.loop == 1)].iloc[0].tolist() == ["b", 1, 5, 10, 7]
    assert len(frame) == 6


def test_labels_that_do_not_fit_are_refused():
    from analyses.kit.tidy import tidy

    with pytest.raises(ValueError, match=r"share of shape \[2\] does not fit \[3\] labels"):
        tidy({"share": torch.zeros(2)}, {"loop": [0, 1, 2]})
