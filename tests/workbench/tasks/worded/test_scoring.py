"""Right and wrong by the rules of the three data sets."""

from decimal import Decimal

import pytest

from workbench.tasks.worded.problem import ProblemError
from workbench.tasks.worded.scoring import (
    Score,
    normalised,
    number_in,
    score_gsm8k,
    score_hotpotqa,
    score_prosqa,
)


@pytest.mark.parametrize(
    ("said", "gold", "right"),
    [
        ("He needs 72 boards, all told.", "72", True),
        ("#### 70,000", "70000", True),
        ("It falls to -3.", "3", False),
        ("It falls to -3.", "-3", True),
        ("$18.00.", "18", True),
        ("<<48/2=24>>24 #### 24", "24", True),
        ("8,000", "8000", True),
        ("8,000", "0", False),
        ("3 5", "35", False),
        ("3 5", "5", True),
        ("29.00", "29", True),
        ("#### 24\nSo the answer is 17.", "24", True),
        ("#### 24 of 30", "24", True),
        ("12 in all #### none", "12", True),
        ("12 ####\n5", "12", True),
        ("It is 10-3", "3", True),
        ("10 - 3 = 7", "7", True),
        ("He is $-5 off", "-5", True),
        ("He is -$5 off", "-5", True),
        ("It falls to −3", "-3", True),
        ("a share of .5", "0.5", True),
        ("1,2", "2", True),
        ("1,234,567.50", "1234567.5", True),
        ("#### 1,234 apples", "1234", True),
    ],
)
def test_numbers_are_compared_by_value(said, gold, right):
    assert score_gsm8k(said, gold) == Score(right, None, True)


@pytest.mark.parametrize("said", ["", "no idea", "####", "#### many"])
def test_without_a_number_nothing_is_answered(said):
    assert score_gsm8k(said, "5") == Score(False, None, False)


def test_a_right_answer_that_is_no_number_is_refused():
    with pytest.raises(ProblemError, match="the right answer 'five' is not one number"):
        score_gsm8k("5", "five")


def test_a_number_is_exact():
    assert number_in("0.1") == Decimal("0.1")
    assert number_in("12345678901234567890") == Decimal("12345678901234567890")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The  River\tTamsel.", "river tamsel"),
        ("An apple, a pear and THE plum!", "apple pear and plum"),
        ("theatre", "theatre"),
        ("U.S.A.", "usa"),
        ("a-b", "ab"),
        ("the", ""),
        ("", ""),
    ],
)
def test_case_punctuation_articles_and_blanks_do_not_count(text, plain):
    assert normalised(text) == plain


@pytest.mark.parametrize(
    ("said", "gold", "right", "f1", "answered"),
    [
        ("the River Tamsel", "River Tamsel.", True, 1.0, True),
        ("River", "the River Tamsel", False, 2 / 3, True),
        ("the the River", "River", True, 1.0, True),
        ("river river", "river tamsel", False, 0.5, True),
        ("Yes.", "yes", True, 1.0, True),
        ("yes it is", "yes", False, 0.0, True),
        ("no", "yes", False, 0.0, True),
        ("no", "no river", False, 0.0, True),
        ("noanswer", "noanswer here", False, 0.0, True),
        ("lake", "river", False, 0.0, True),
        ("", "river", False, 0.0, False),
        ("the", "river", False, 0.0, False),
        ("", "The", True, 0.0, False),  # as in the official rules
        ("The", "the", True, 0.0, True),
    ],
)
def test_exact_match_and_f1(said, gold, right, f1, answered):
    score = score_hotpotqa(said, gold)
    assert (score.right, score.answered) == (right, answered)
    assert score.f1 == pytest.approx(f1)


@pytest.mark.parametrize(
    ("said", "answer", "concept"),
    [
        ("Tom is a lorpus.", True, True),
        (" Tom  is a lorpus ", True, True),
        ("Bob is a lorpus.", False, True),
        ("lorpus", False, True),
        ("Tom is a rompus.", False, False),
        ("Tom is a", False, False),
    ],
)
def test_prosqa_by_whole_answer_and_by_concept(said, answer, concept):
    gold = "Tom is a lorpus."
    assert score_prosqa(said, gold) == Score(answer, None, True)
    assert score_prosqa(said, gold, by="concept") == Score(concept, None, True)


def test_prosqa_without_words_is_no_answer():
    for said in ("", "  ", "."):
        assert score_prosqa(said, "lorpus", by="concept") == Score(False, None, False)
