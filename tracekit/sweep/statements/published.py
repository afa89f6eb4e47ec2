"""What is otherwise here than where the published figures come from, or not known of those."""

from collections.abc import Sequence

from tracekit.sweep.figures import PublishedDifference


class Machine(PublishedDifference):
    code = "machine"
    here: Sequence[str]

    def long(self) -> str:
        return f"Machine: {', '.join(self.here)}; 2023 one A100."


class Torch(PublishedDifference):
    code = "torch"
    here: Sequence[str]

    def long(self) -> str:
        return f"torch: {', '.join(self.here)}; 2023 2.0.1."


class Dtype(PublishedDifference):
    code = "dtype"
    here: Sequence[str]

    def long(self) -> str:
        return f"dtype: {', '.join(self.here)}; 2023 not stated."


class RandomWeights(PublishedDifference):
    code = "random_weights"

    def long(self) -> str:
        return "Weights: random, at the published architecture."


class Size(PublishedDifference):
    code = "size"
    here: Sequence[str]

    def long(self) -> str:
        return f"Size: {', '.join(self.here)}, not the published architecture: not comparable."


class Calls(PublishedDifference):
    code = "calls"
    least: int
    most: int

    def long(self) -> str:
        most = f" to {self.most:,}" if self.most != self.least else ""
        return f"Calls: {self.least:,}{most} each, interleaved; 2023 300."


class WhatACallContains(PublishedDifference):
    code = "what_a_call_contains"

    def long(self) -> str:
        return "A call here is a forward pass over inputs on the device; 2023 may differ."
