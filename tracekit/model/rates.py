"""How much work a GPU activity did, how fast, and how fast the device could. All but durations are estimates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peak:
    """What the maker publishes for a device: memory bandwidth, and dense arithmetic by type of the inputs. None: the
    device has no such units."""

    device: str
    gb_per_s: float
    bf16_tflop_per_s: float | None
    fp16_tflop_per_s: float | None
    tf32_tflop_per_s: float | None
    fp32_tflop_per_s: float


@dataclass(frozen=True, slots=True)
class Rates:
    """One activity's estimated work and rates; None where it cannot be derived from what was recorded.

    `bytes` is memory traffic if each input is read once and each output written once. The shares are of the device's
    published peak.
    """

    bytes: int | None
    flops: int | None
    gb_per_s: float | None
    tflop_per_s: float | None
    bandwidth_share: float | None
    arithmetic_share: float | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Estimated memory traffic of eager kernels and of those that took their place.

    A side's bytes are None where those of none of its calls can be derived. `eager_missing` and `compiled_missing`
    count the calls that could not be: with any, `removed_bytes` is None.
    """

    eager_bytes: float | None
    compiled_bytes: float | None
    eager_missing: float
    compiled_missing: float

    def times(self, factor: float) -> Traffic:
        """The traffic of so many times the same work."""
        eager, compiled = (None if each is None else each * factor for each in (self.eager_bytes, self.compiled_bytes))
        return Traffic(eager, compiled, self.eager_missing * factor, self.compiled_missing * factor)

    @property
    def removed_bytes(self) -> float | None:
        if self.eager_bytes is None or self.compiled_bytes is None or self.eager_missing or self.compiled_missing:
            return None
        return self.eager_bytes - self.compiled_bytes
