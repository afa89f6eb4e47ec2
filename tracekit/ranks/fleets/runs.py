"""Figures of rows that follow on each other and have one number: of a fleet's half a million parts of collectives in a
tenth of the time that grouping tables takes."""

import numpy as np

from tracekit.interval import Floats, Ints


class Runs:
    """Rows of one number each, by the numbers of all rows, which are in order."""

    def __init__(self, numbers: Ints) -> None:
        self.first = np.flatnonzero(np.diff(numbers, prepend=-1))
        self.numbers: Ints = numbers[self.first]
        self.counts = np.diff(np.append(self.first, len(numbers)))
        #: The place of each row's number in `numbers`.
        self.of_row: Ints = np.repeat(np.arange(len(self.first)), self.counts)

    def least(self, values: Ints) -> Ints:
        """Of each number."""
        return np.minimum.reduceat(values, self.first) if len(values) else values

    def most(self, values: Ints) -> Ints:
        return np.maximum.reduceat(values, self.first) if len(values) else values

    def sums(self, values: Ints | Floats) -> Ints | Floats:
        return np.add.reduceat(values, self.first) if len(values) else values

    def medians(self, values: Ints | Floats) -> Floats:
        """Numbers of equally many rows are one table."""
        found = np.zeros(len(self.first))
        for count in np.unique(self.counts).tolist():
            some = self.counts == count
            rows = self.first[some][:, np.newaxis] + np.arange(count)
            found[some] = np.median(values[rows], axis=1)
        return found


def in_order(numbers: Ints, then: Ints) -> Ints:
    """The rows by their numbers, those of one by what is to decide `then`; neither is negative."""
    width = int(then.max(initial=0)) + 1
    if width * (int(numbers.max(initial=0)) + 1) >= 1 << 62:
        return np.lexsort((then, numbers))
    order: Ints = np.argsort(numbers * width + then)
    return order
