"""What could a device do at most? The figures its maker publishes, dense, without sparsity."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tracekit.model.comparison import Side
from tracekit.model.rates import Peak


@dataclass(frozen=True, slots=True)
class _Known:
    """A device whose name, in lower case, has all of these words."""

    words: tuple[str, ...]
    peak: Peak


def _known(
    words: str, gb_per_s: float, bf16: float | None, fp16: float | None, tf32: float | None, fp32: float
) -> _Known:
    return _Known(tuple(words.split()), Peak(words, gb_per_s, bf16, fp16, tf32, fp32))


#: GB/s, then TFLOP/s of bf16, fp16, tf32 (matrix units) and fp32 (vector units; AMD: matrix units). The first whose
#: words are all in the name. Makers print tensor figures "with sparsity"; these are half of those.
KNOWN = (
    # NVIDIA HGX B200 data sheet (2025): 8 GPUs, 64 TB/s, 36 PFLOPS bf16 and 18 PFLOPS tf32 with sparsity, 600 fp32.
    _known("b200", 8000, 2250, 2250, 1125, 75),
    # NVIDIA H200 data sheet (2024): SXM and NVL.
    _known("h200 nvl", 4800, 835.5, 835.5, 417.5, 60),
    _known("h200", 4800, 989.5, 989.5, 494.5, 67),
    # NVIDIA H100 data sheet (2023, 2024): PCIe, NVL; SXM is called "H100 80GB HBM3".
    _known("h100 pcie", 2000, 756, 756, 378, 51),
    _known("h100 nvl", 3900, 835.5, 835.5, 417.5, 60),
    _known("h100", 3350, 989.5, 989.5, 494.5, 67),
    # NVIDIA A100 data sheet (2021): 80GB PCIe, 80GB SXM; 40GB from the one of 2020.
    _known("a100 pcie 80gb", 1935, 312, 312, 156, 19.5),
    _known("a100 80gb", 2039, 312, 312, 156, 19.5),
    _known("a100 40gb", 1555, 312, 312, 156, 19.5),
    # NVIDIA L4 and L40S data sheets (2023).
    _known("l40s", 864, 362, 362, 183, 91.6),
    _known("l4", 300, 121, 121, 60, 30.3),
    # NVIDIA A10G: AWS G5 and NVIDIA's A10 family brief (2021).
    _known("a10g", 600, 70, 70, 35, 31.5),
    # NVIDIA T4 data sheet (2018), V100 data sheet (2020): neither has bf16 or tf32 matrix units.
    _known("t4", 320, None, 65, None, 8.1),
    _known("v100 pcie", 900, None, 112, None, 14),
    _known("v100", 900, None, 125, None, 15.7),
    # NVIDIA Ada GPU architecture whitepaper (2023), fp32 accumulation.
    _known("rtx 4090", 1008, 165.2, 165.2, 82.6, 82.6),
    # AMD Instinct MI300X data sheet (2023).
    _known("mi300x", 5300, 1307.4, 1307.4, 653.7, 163.4),
)


#: A part of a GPU, or a smaller one of the same number.
OTHER_DEVICES = {"mig", "laptop", "d", "max"}


def peak_of(device: str | None) -> Peak | None:
    """The peak of a device by the name its driver gives it; None for one that is not known."""
    words = set((device or "").lower().replace("-", " ").replace("_", " ").split())
    if words & OTHER_DEVICES:
        return None
    return next((known.peak for known in KNOWN if words.issuperset(known.words)), None)


def peak_of_side(side: Side) -> Peak | None:
    """The peak of the device a side ran on, and how it was told to multiply float32; None for a device that is not
    known."""
    environment = side.environment
    names = [environment.gpu if environment else None, *(device.name for device in side.analysis.devices)]
    peak = next((peak for name in names if (peak := peak_of(name))), None)
    return replace(peak, float32_precision=environment.float32_matmul_precision) if peak and environment else peak
