"""How much work a GPU activity did, how fast, and how fast the device could. All but durations are estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tracekit.model.bounded import doc


@dataclass(frozen=True, slots=True)
class Peak:
    """What the maker publishes for a device: memory bandwidth, and dense arithmetic by type of the inputs. None: the
    device has no such units.

    `float32_precision` is torch's setting for products of float32 on it (`highest`: no tf32 units); None where it was
    not recorded.
    """

    device: str
    gb_per_s: float
    bf16_tflop_per_s: float | None
    fp16_tflop_per_s: float | None
    tf32_tflop_per_s: float | None
    fp32_tflop_per_s: float
    float32_precision: str | None = None


@dataclass(frozen=True, slots=True)
class NotedCall:
    """What torch itself said of an operator call while the eager form was tagged; None where that says nothing of the
    operator that launched the work.

    `bytes` are those read and written, `output` is the size of the (first) result.
    """

    bytes: int | None
    flops: int | None
    output: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Rates:
    """One operator call's estimated work and rates, the mean of all calls like it; None where it cannot be derived from
    what was recorded."""

    bytes: Annotated[float | None, doc("Memory traffic if each input is read once and each output written once.")]
    flops: Annotated[float | None, doc("Floating-point operations, a multiplication and an addition being two.")]
    gb_per_s: Annotated[float | None, doc("10^9 bytes a second.")]
    tflop_per_s: Annotated[float | None, doc("10^12 operations a second.")]
    bandwidth_share: Annotated[float | None, doc("Of the device's published peak, 0 to 1.")]
    arithmetic_share: Annotated[float | None, doc("Of the device's published peak, 0 to 1.")]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Estimated memory traffic of eager kernels and of those that took their place. An operator call counts where its
    main kernel is: what else it launched moves nothing of its own."""

    eager_bytes: Annotated[float | None, doc("None where that of no call can be derived.")]
    compiled_bytes: Annotated[float | None, doc("None where that of no call can be derived.")]
    eager_missing: Annotated[float, doc("Calls whose traffic could not be derived.")]
    compiled_missing: Annotated[float, doc("Calls whose traffic could not be derived.")]

    @property
    def removed_bytes(self) -> float | None:
        if self.eager_bytes is None or self.compiled_bytes is None or self.eager_missing or self.compiled_missing:
            return None
        return self.eager_bytes - self.compiled_bytes


@dataclass(frozen=True, slots=True)
class TrafficTotal:
    """Estimated memory traffic per step of the kernel groups in which that of every call of both sides is known."""

    eager_bytes: float
    compiled_bytes: float
    a_time_known: Annotated[float, doc("The share of A's GPU time in these groups, 0 to 1.")]
    b_time_known: Annotated[float, doc("The share of B's GPU time in these groups, 0 to 1.")]

    @property
    def removed_bytes(self) -> float:
        """Less than 0 where B moves more."""
        return self.eager_bytes - self.compiled_bytes
