import pytest

from workbench.settings.config import ConfigError
from workbench.settings.plain_yaml import parse_yaml, write_yaml


@pytest.mark.parametrize("text", ["1e-4", "1.e-4", "1.0e-4", "+1E-4", "0.0001"])
def test_a_number_with_an_exponent_is_a_number(text):
    assert parse_yaml(f"lr: {text}", "x") == {"lr": 1e-4}


@pytest.mark.parametrize("text", ["1e-4x", "e-4", "'1e-4'", "1e"])
def test_a_word_that_looks_like_a_number_stays_a_word(text):
    assert parse_yaml(f"lr: {text}", "x") == {"lr": text.strip("'")}


def test_a_key_that_stands_twice_is_refused():
    with pytest.raises(
        ConfigError, match=r"^recipe x: the key 'a' stands a second time in its group at line 3$"
    ):
        parse_yaml("g:\n  a: 1\n  a: 2\n", "recipe x")


def test_broken_yaml_is_named_with_its_line():
    with pytest.raises(ConfigError, match="recipe x is no valid YAML at line 2: "):
        parse_yaml("a: 1\nb: [1}\n", "recipe x")


@pytest.mark.parametrize("text", ["!!python/object/apply:os.system ['true']", "!!python/name:os"])
def test_yaml_that_would_run_something_is_refused(text):
    with pytest.raises(ConfigError, match="is no valid YAML"):
        parse_yaml(text, "recipe x")


def test_what_is_written_reads_the_same():
    data = {"b": 1e-5, "a": [0.9, 1], "c": None, "d": {"e": "Φ", "f": "1e-4", "g": True}}
    assert parse_yaml(write_yaml(data), "x") == data
    assert list(parse_yaml(write_yaml(data), "x")) == list(data)
