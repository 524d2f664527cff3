"""Rules that guess the answer from one feature, to measure what needs no reasoning."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

BINS = 64  # a feature with more values than this is binned into quantiles

Numbers = Int[np.ndarray, " row"] | Float[np.ndarray, " row"]


class Rule(NamedTuple):
    """The most common answer for each value of a feature; an unseen value uses the nearest one."""

    values: Int[np.ndarray, " value"] | Float[np.ndarray, " value"]  # ascending
    answers: Int[np.ndarray, " value"]

    def guess(self, numbers: Numbers) -> Int[np.ndarray, " row"]:
        """Return the answer for each number."""
        middles = (self.values[1:] + self.values[:-1]) / 2
        return self.answers[np.searchsorted(middles, numbers)]


def fit_rule(numbers: Numbers, answers: Int[np.ndarray, " row"]) -> Rule:
    """Fit the rule that is right most often on these rows; ties go to the lowest answer."""
    values = np.unique(numbers)
    if len(values) > BINS:
        values = np.unique(np.quantile(numbers, np.linspace(0, 1, BINS), method="nearest"))
    number = np.searchsorted((values[1:] + values[:-1]) / 2, numbers)
    count = np.zeros((len(values), int(answers.max()) + 1), dtype=np.int64)
    np.add.at(count, (number, answers), 1)
    return Rule(values, count.argmax(1))
