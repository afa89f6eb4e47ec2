"""Sweeps with a name: what they run, and what was published of the same."""

import difflib

from tracekit.errors import TracekitError
from tracekit.sweep.cells import Published, Suite

#: 2023, torch 2.0.1, one A100, batch 1, mean of 300 calls: off and on. Order and checkpoints as in the users' table.
VISION_2023 = (
    Published("vit", "google/vit-base-patch16-224", 1, 9.325, 7.584),
    Published("beit", "microsoft/beit-base-patch16-224-pt22k-ft22k", 1, 11.282, 8.448),
    Published("convnext", "facebook/convnext-large-224", 1, 10.410, 10.208),
    Published("resnet", "microsoft/resnet-50", 1, 6.531, 4.124),
    Published("segformer", "nvidia/segformer-b0-finetuned-ade-512-512", 1, 11.759, 10.500),
    Published("mask2former", "facebook/mask2former-swin-tiny-coco-panoptic", 1, 60.188, 49.117),
    Published("maskformer", "facebook/maskformer-swin-base-ade", 1, 75.764, 59.487),
    Published("deeplabv3-mobilenet", "google/deeplabv3_mobilenet_v2_1.0_513", 1, 8.583, 3.974),
    Published("owlvit", "google/owlvit-base-patch32", 1, 24.978, 18.420),
    Published("detr", None, 1, 34.619, 19.040),
    Published("detr-resnet-101", "facebook/detr-resnet-101", 1, 36.276, 18.197),
    Published("conditional-detr", "microsoft/conditional-detr-resnet-50", 1, 31.219, 17.993),
)

VISION = Suite(
    name="vision",
    workloads=tuple(each.workload for each in VISION_2023),
    modes=("eager", "default", "reduce-overhead"),
    batch_sizes=(1, 4, 16),
    iterations=300,
    published=VISION_2023,
    source="2023, torch 2.0.1, one A100, batch 1, mean of 300 calls",
)

QUICK = Suite(
    name="quick",
    workloads=("mlp", "vit"),
    modes=("eager", "default"),
    batch_sizes=(1, 4),
    iterations=30,
    size="tiny",
)

SUITES = {suite.name: suite for suite in (VISION, QUICK)}


def find_suite(name: str) -> Suite:
    """The suite of that name. Raises TracekitError with the nearest name."""
    if name in SUITES:
        return SUITES[name]
    near = difflib.get_close_matches(name.lower(), SUITES, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"pass one of {', '.join(SUITES)}"
    raise TracekitError(f"no suite named {name!r}: {hint}")
