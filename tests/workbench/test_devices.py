import pytest

from workbench.settings.devices import best_device, check_device, devices


def test_the_processor_is_always_there_and_comes_last():
    assert devices()[-1] == "cpu"


def test_the_best_device_is_the_first():
    assert best_device() == devices()[0]


def test_a_device_that_is_there_is_fine():
    assert check_device("cpu") == "cpu"


def test_a_device_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(ValueError, match="no device 'cpx' here; "):
        check_device("cpx")
