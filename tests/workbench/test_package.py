import doctest

import pytest

import workbench


@pytest.mark.parametrize("name", workbench.__all__)
def test_every_public_name_is_there(name):
    assert getattr(workbench, name) is not None
    assert name in dir(workbench)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'workbench' has no attribute 'nothing'"):
        _ = workbench.nothing


def test_examples_in_docstrings_run():
    from workbench import hooks

    results = doctest.testmod(hooks)
    assert results.attempted and not results.failed
