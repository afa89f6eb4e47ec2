"""What each form returns, held against the others and against a higher precision: calls of their own, never timed."""

from collections.abc import Callable
from io import BytesIO
from typing import Literal

import torch
from msgspec import Struct
from msgspec.structs import replace
from torch import nn

from tracekit.measure.compilation import drawing_as_eager
from tracekit.measure.device import synchronize
from tracekit.measure.forms import Form, compiled_form
from tracekit.measure.outputs import Output, compare_outputs, keep_output
from tracekit.measure.ranks import ALONE, Ranks
from tracekit.measure.reference import HIGHER, call_reference, tensors_of
from tracekit.model.note import Noted
from tracekit.model.numerics import FormNumerics
from tracekit.model.progress import Progress
from tracekit.model.run import FormName
from tracekit.model.workload import BuiltWorkload
from tracekit.statements.noted import NoHigherPrecision, ReferenceOfRanks

#: Longest side of a picture in pixels: enough to see whether two images are the same, small enough for a page.
PIXELS = 192
#: More than so many times a difference shows the rounding of the picture itself.
MOST_SCALE = 64.0


class Drawing(Struct, frozen=True):
    """A PNG of an output, or of its difference to eager's; `scale` is by what the values were multiplied."""

    kind: Literal["output", "difference"]
    png: bytes
    scale: float


def check_outputs(
    workload: BuiltWorkload,
    forms: tuple[Form, ...],
    calling_bytes: int,
    progress: Progress,
    ranks: Ranks = ALONE,
) -> tuple[dict[FormName, FormNumerics], dict[FormName, list[Drawing]]]:
    """Calls each form twice with the same seeds and the model once in a higher precision, and compares what comes back;
    with images of it. `calling_bytes` is what one eager call allocates beside the weights; 0 if not known. `ranks` make
    the same calls; of several, none is made in a higher precision.

    A model that draws random numbers is called once under another seed too, and where compiled code draws others than
    eager code, code that draws the same is compiled and compared in its place: what was compiled before is forgotten.
    """
    progress.phase("comparing outputs")
    put_back = keep_weights(workload)
    settings = workload.settings

    def called(form: Form, seed: int = settings.seed) -> Output:
        put_back()
        with form.ready():
            torch.manual_seed(seed)
            return keep_output(form.call())

    def differs(output: Output, other: Output) -> bool:
        return any(each.equal_share != 1 for each in compare_outputs(output, other, "eager", settings.device).tensors)

    outputs: dict[FormName, tuple[Output, Output]] = {}
    another_seed: Output | None = None
    drawn_as_eager: tuple[Output, Output] | None = None
    for form in forms:
        progress.detail(f"{form.name}, twice")
        outputs[form.name] = (called(form), called(form))
        # What one rank calls, all do.
        if form.name == "eager" and ranks.most(_has_drawn(settings.device, settings.seed))[0]:
            progress.detail("eager, another seed")
            another_seed = called(form, settings.seed ^ 1)
    eager = outputs["eager"][0] if "eager" in outputs else None
    if another_seed and eager and "compiled" in outputs and ranks.most(differs(outputs["compiled"][0], eager))[0]:
        progress.detail("compiled, random numbers drawn as in eager")
        drawn_as_eager = _drawn_as_eager(workload, called)
        outputs["compiled"] = drawn_as_eager or outputs["compiled"]
    put_back()
    high = HIGHER.get(getattr(torch, settings.dtype))
    reference: Output | Noted = NoHigherPrecision(settings.dtype)
    if ranks.size > 1:
        reference = ReferenceOfRanks()
    elif high is not None:
        progress.detail(f"the model in {str(high).removeprefix('torch.')}")
        reference = call_reference(workload, high, calling_bytes)
    checked = {name: _checked(workload, name, pair, eager, reference, high) for name, pair in outputs.items()}
    if another_seed and eager:
        apart = compare_outputs(another_seed, eager, "another_seed", settings.device)
        checked["eager"] = replace(checked["eager"], against_another_seed=apart)
    if drawn_as_eager:
        checked["compiled"] = replace(checked["compiled"], drawn_as_eager=True)
    drawings = {name: _draw(output, eager if name != "eager" else None) for name, (output, _again) in outputs.items()}
    return checked, drawings


def _has_drawn(device: str, seed: int) -> bool:
    """Whether random numbers were drawn of torch's own generators since they were seeded so. Seeds them again."""

    def states() -> tuple[torch.Tensor, ...]:
        return (torch.get_rng_state(), *([] if device == "cpu" else [torch.cuda.get_rng_state()]))

    drawn = states()
    torch.manual_seed(seed)
    return not all(map(torch.equal, drawn, states()))


def _drawn_as_eager(workload: BuiltWorkload, called: Callable[[Form], Output]) -> tuple[Output, Output] | None:
    """What two calls of compiled code return that draws random numbers as eager code does; None where this torch makes
    none of the workload."""
    instead = drawing_as_eager(workload.settings)
    if instead is None:
        return None
    try:
        form = compiled_form(workload, instead)
        # The first call compiles, and may draw for that.
        called(form)
        return called(form), called(form)
    except Exception:  # noqa: BLE001 - what was compiled before can still be compared.
        return None


def _checked(
    workload: BuiltWorkload,
    name: FormName,
    pair: tuple[Output, Output],
    eager: Output | None,
    reference: Output | Noted,
    high: torch.dtype | None,
) -> FormNumerics:
    device, (output, again) = workload.settings.device, pair
    beside = eager if name != "eager" else None
    truth, missing = (reference, None) if isinstance(reference, Output) else (None, reference)
    return FormNumerics(
        dtype=workload.settings.dtype,
        against_itself=compare_outputs(again, output, "itself", device),
        against_eager=compare_outputs(output, beside, "eager", device) if beside else None,
        against_reference=compare_outputs(output, truth, "reference", device) if truth else None,
        reference_dtype=str(high).removeprefix("torch.") if truth else None,
        skipped=output.skipped,
        reference_missing=missing,
    )


def _draw(output: Output, beside: Output | None) -> list[Drawing]:
    """The output's images, and their difference to those of the other; none where it has none."""
    images = find_images(output)
    if images is None:
        return []
    drawings = [Drawing("output", draw_image(images), 1.0)]
    others = find_images(beside) if beside else None
    if others is not None and others.shape == images.shape:
        drawings.append(Drawing("difference", *draw_difference(images, others)))
    return drawings


def keep_weights(workload: BuiltWorkload) -> Callable[[], None]:
    """What puts every parameter and buffer back as it is when this returns: nothing at all, unless calls change some,
    as training steps do. One eager call of a model of the user's own tells; tracekit's do not learn. The copies lie on
    the CPU. What an optimizer keeps for itself is not put back."""
    changed: list[torch.Tensor] = []
    if workload.settings.own is not None:
        tensors = tensors_of(module for _name, module in workload.modules)
        versions = [getattr(each, "_version", None) for each in tensors]
        # Of a buffer, which is small, its values too: batch norm writes its averages without a word.
        values = [
            None if isinstance(each, nn.Parameter) and version is not None else each.detach().clone()
            for each, version in zip(tensors, versions, strict=True)
        ]
        workload.call()
        synchronize(workload.settings.device)
        changed = [
            tensor
            for tensor, version, value in zip(tensors, versions, values, strict=True)
            if getattr(tensor, "_version", None) != version or (value is not None and not torch.equal(tensor, value))
        ]
    kept = [tensor.detach().to("cpu", copy=True) for tensor in changed]

    def put_back() -> None:
        with torch.no_grad():
            for tensor, value in zip(changed, kept, strict=True):
                tensor.copy_(value)

    return put_back


def find_images(output: Output) -> torch.Tensor | None:
    """The first tensor of an output that looks like images: [N, 3, height, width] with values from 0 to 1."""
    for tensor in output.tensors.values():
        if tensor.ndim != 4 or tensor.shape[1] != 3 or min(tensor.shape[2:]) < 16 or not tensor.is_floating_point():
            continue
        images = tensor.float()
        if bool(torch.isfinite(images).all()) and images.min() >= -1e-3 and images.max() <= 1.001:
            return images
    return None


def draw_image(images: torch.Tensor) -> bytes:
    """The first image as PNG, made smaller if it is larger than 192 pixels."""
    from PIL import Image

    image = images[:1]
    shrinking = PIXELS / max(image.shape[2:])
    if shrinking < 1:
        size = [max(round(side * shrinking), 1) for side in image.shape[2:]]
        image = nn.functional.interpolate(image, size=size, mode="area")
    pixels = (image[0].clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous()
    file = BytesIO()
    Image.fromarray(pixels.numpy()).save(file, format="PNG", optimize=True)
    return file.getvalue()


def draw_difference(images: torch.Tensor, others: torch.Tensor) -> tuple[bytes, float]:
    """The difference of the first images as PNG, and by what it was multiplied so that its largest value is white."""
    difference = (images[:1] - others[:1]).abs()
    largest = float(difference.max())
    scale = min(1 / largest, MOST_SCALE) if largest else 1.0
    return draw_image(difference * scale), scale
