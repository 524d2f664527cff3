"""Guessing an answer from one number: what a question gives away without any reasoning."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

BINS = 64  # a number of more values is sorted into as many bins of about equal count

Numbers = Int[np.ndarray, " row"] | Float[np.ndarray, " row"]


class Rule(NamedTuple):
    """The commonest answer for each value of a number; a new value counts as the nearest known."""

    values: Int[np.ndarray, " value"] | Float[np.ndarray, " value"]  # rising
    answers: Int[np.ndarray, " value"]

    def guess(self, numbers: Numbers) -> Int[np.ndarray, " row"]:
        """The answer that goes with each number."""
        middles = (self.values[1:] + self.values[:-1]) / 2
        return self.answers[np.searchsorted(middles, numbers)]


def fit_rule(numbers: Numbers, answers: Int[np.ndarray, " row"]) -> Rule:
    """The rule that is right most often on these rows; of equals, the lowest answer."""
    values = np.unique(numbers)
    if len(values) > BINS:
        values = np.unique(np.quantile(numbers, np.linspace(0, 1, BINS), method="nearest"))
    number = np.searchsorted((values[1:] + values[:-1]) / 2, numbers)
    count = np.zeros((len(values), int(answers.max()) + 1), dtype=np.int64)
    np.add.at(count, (number, answers), 1)
    return Rule(values, count.argmax(1))
