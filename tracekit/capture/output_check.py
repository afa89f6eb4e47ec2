"""What each form returns, held against the others and against a higher precision: calls of their own, never timed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch

from tracekit.capture import pictures
from tracekit.capture.forms import Form
from tracekit.capture.numerics import compare_outputs
from tracekit.capture.outputs import Output, keep_output
from tracekit.capture.reference import call_reference, reference_dtype
from tracekit.capture.weights import keep_weights
from tracekit.model.noted import Noted
from tracekit.model.numerics import FormNumerics, PictureFile
from tracekit.model.progress import Progress
from tracekit.model.run import FormName
from tracekit.model.workload import BuiltWorkload


@dataclass(frozen=True)
class Drawing:
    """A PNG of an output, or of its difference to eager's; `scale` is by what the values were multiplied."""

    kind: Literal["output", "difference"]
    png: bytes
    scale: float


@dataclass(frozen=True)
class Checked:
    """One form's outputs, judged by nobody yet, and its images."""

    numerics: FormNumerics
    drawings: tuple[Drawing, ...]


def check_outputs(
    workload: BuiltWorkload, forms: tuple[Form, ...], calling_bytes: int, progress: Progress
) -> dict[FormName, Checked]:
    """Calls each form twice with the same seeds and the model once in a higher precision, and compares what comes back.

    `calling_bytes` is what one eager call allocates beside the weights; 0 if not known.
    """
    progress.phase("comparing outputs")
    outputs: dict[FormName, tuple[Output, Output]] = {}
    put_back = keep_weights(workload)
    for form in forms:
        progress.detail(f"{form.name}, twice")
        put_back()
        once = _called(form, workload.settings.seed)
        put_back()
        outputs[form.name] = (once, _called(form, workload.settings.seed))
    put_back()
    reference = _reference(workload, calling_bytes, progress)
    eager = outputs["eager"][0] if "eager" in outputs else None
    return {name: _checked(workload, name, pair, eager, reference) for name, pair in outputs.items()}


def _called(form: Form, seed: int) -> Output:
    with form.ready():
        torch.manual_seed(seed)
        return keep_output(form.call())


@dataclass(frozen=True)
class _Reference:
    dtype: torch.dtype | None
    output: Output | Noted


def _reference(workload: BuiltWorkload, calling_bytes: int, progress: Progress) -> _Reference:
    high = reference_dtype(getattr(torch, workload.settings.dtype))
    if high is None:
        return _Reference(None, Noted("no_higher_precision", {"dtype": workload.settings.dtype}))
    progress.detail(f"the model in {_name(high)}")
    return _Reference(high, call_reference(workload, high, calling_bytes))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _checked(
    workload: BuiltWorkload, name: FormName, pair: tuple[Output, Output], eager: Output | None, reference: _Reference
) -> Checked:
    device, (output, again) = workload.settings.device, pair
    beside = eager if name != "eager" else None
    truth = reference.output if isinstance(reference.output, Output) else None
    found = FormNumerics(
        dtype=workload.settings.dtype,
        against_itself=compare_outputs(again, output, "itself", device),
        against_eager=compare_outputs(output, beside, "eager", device) if beside else None,
        against_reference=compare_outputs(output, truth, "reference", device) if truth else None,
        reference_dtype=_name(reference.dtype) if truth and reference.dtype else None,
        no_reference=None,
        skipped=output.skipped,
        reference_missing=reference.output if isinstance(reference.output, Noted) else None,
    )
    return Checked(found, _drawings(output, beside))


def _drawings(output: Output, eager: Output | None) -> tuple[Drawing, ...]:
    images = pictures.find_images(output)
    if images is None:
        return ()
    drawn = (Drawing("output", pictures.draw_image(images), 1.0),)
    others = pictures.find_images(eager) if eager else None
    if others is None or others.shape != images.shape:
        return drawn
    png, scale = pictures.draw_difference(images, others)
    return (*drawn, Drawing("difference", png, scale))


def with_files(checked: Checked, paths: tuple[str, ...]) -> FormNumerics:
    """The figures, with the names of the files that the drawings were written to, in their order."""
    files = (PictureFile(each.kind, path, each.scale) for each, path in zip(checked.drawings, paths, strict=True))
    return replace(checked.numerics, pictures=tuple(files))
