import pytest

from workbench.settings.config import nearest
from workbench.settings.errors import is_complaint
from workbench.settings.files import read_tensors
from workbench.training.measure import headline


def raised(call, *args):
    """The error that a call raises."""
    try:
        call(*args)
    except Exception as error:
        return error
    pytest.fail("nothing was raised")


def test_an_error_that_the_project_raises_is_a_complaint(tmp_path):
    assert is_complaint(raised(read_tensors, tmp_path / "nowhere"))


def test_an_error_from_below_is_a_bug():
    assert not is_complaint(raised(nearest, "x", [1, "a"]))


def test_an_error_from_elsewhere_is_a_bug():
    assert not is_complaint(raised(int, "x"))


def test_an_error_that_was_never_raised_is_no_complaint():
    assert not is_complaint(ValueError("x"))


def test_an_error_of_a_function_without_python_code_is_a_bug_wherever_it_is_called():
    assert not is_complaint(raised(headline, {"test_id": {}}))  # a KeyError in our own frame
