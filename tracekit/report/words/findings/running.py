"""Findings on what runs: kernels that were lost or take longer, outputs, and waits of the GPU for the host."""

from collections.abc import Sequence
from typing import Any

from tracekit.model.analysis import Place
from tracekit.model.groups import Evidence
from tracekit.numbers import count, counted, duration, duration_change, percent, times
from tracekit.report.words.common import made_at_words
from tracekit.report.words.saying import Sentence

#: The reason known; `comparison/findings/slower_kernels.py` tells what it was measured on.
MASKS = "Possible cause: a mask made inside compiled code, which fused kernels do not accept."
#: What is said beside the advice to compile layers one by one.
PRICE = "Layers compiled one by one keep eager's attention, but each checks guards: slower if host-bound."
TAKEN_ON_GPU = "Wall times are unprofiled; traces give GPU busy time and the causes of idle time."
TAKEN_ON_CPU = "Wall times are unprofiled; operator times are profiled, so overstated."


def _gpu_time(*, without_communication: bool = False, **_: Any) -> str:
    return "GPU busy without communication" if without_communication else "GPU busy"


def lost_attention(*, a: str, b: str, products_more_us: float, in_float32: bool, **facts: Any) -> str:
    products = f", matmuls {duration(products_more_us)} more" if products_more_us > 0 else ""
    types = " in float32" if in_float32 else ""
    return (
        f"Attention kernels: {duration(facts['attention_before_us'])} {a}, {duration(facts['attention_after_us'])}"
        f" {b}{products}: likely unfused into matmuls{types} and a softmax. {MASKS} {PRICE}"
    )


def _evidence(shown_by: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(each.long() for each in shown_by)


def slower_convolutions(*, before_us: float, after_us: float, shown_by: Sequence[Evidence], **facts: Any) -> str:
    told = [f"{duration(before_us)} -> {duration(after_us)}.", *_evidence(shown_by)]
    if facts["laid_out_by_inductor"]:
        told.append("Inductor chose this layout.")
        gained_us = facts["others_gained_us"]
        if gained_us:
            told.append(f"Other convolutions with this layout: {duration_change(-gained_us)}.")
    return " ".join(told)


def single_precision(*, products: float, products_us: float, busy_us: float, before: str | None, **facts: Any) -> str:
    if facts["read_before"] < facts["read"]:
        why = f"Compiling added them: {before} has {facts['read_before']} in its trace."
    elif before is None:
        why = "Look for .float() and float32 buffers."
    else:
        why = f"{before} has them too: look for .float() and float32 buffers."
    return (
        f"{count(products)} matmuls per call ({', '.join(facts['operators'])}) have float32 inputs in a 16-bit model:"
        f" {duration(products_us)}, {percent(products_us / busy_us, 0)} of GPU time. {why}"
    )


def _made_by(callers: list[dict[str, Any]], between: str) -> str:
    told = []
    for each in callers:
        place = Place(**each["place"]) if each.get("place") else None
        told.append(
            f"{each['operator']} at {each['called_at']}"
            if "called_at" in each
            else made_at_words(place, each["lines"], in_eager_code=each["in_eager_code"])
        )
    return f" From {between.join(told)}." if told else ""


def profiler_distortion(*, slowed: list[dict[str, Any]], on_gpu: bool) -> str:
    told = "; ".join(f"{each['side']} {times(each['slowdown'])}" for each in slowed)
    return f"{told}. {TAKEN_ON_GPU if on_gpu else TAKEN_ON_CPU}"


#: Title and evidence by the finding's code.
WORDS: dict[str, tuple[Sentence, Sentence]] = {
    "fewer_kernels": (
        lambda a_kernels, b_kernels, **_: f"{count(a_kernels - b_kernels)} fewer kernels",
        lambda a_kernels, b_kernels, a_busy_us, b_busy_us, **facts: (
            f"{count(a_kernels)} -> {count(b_kernels)} kernels, {_gpu_time(**facts)} {duration(a_busy_us)} ->"
            f" {duration(b_busy_us)}."
        ),
    ),
    "graphed_launches": (
        "CUDA graphs run {graphed_share:percent 0} of the kernels of {side}",
        lambda a_launches, b_launches, idle_change_us, **_: (
            f"{count(a_launches)} -> {count(b_launches)} launches"
            f"{'' if idle_change_us is None else f', GPU idle {duration_change(idle_change_us)}'}."
        ),
    ),
    "launch_bound": (
        "Launch-bound: the GPU waits for the host",
        lambda idle_us, wall_us, launching_share, **_: (
            f"GPU idle {percent(idle_us / wall_us, 0)} of the unprofiled call ({duration(idle_us)} of"
            f" {duration(wall_us)}), {percent(launching_share, 0)} of it behind operator dispatch, launch calls, the"
            " compiled wrapper and launch latency. No CUDA graph."
        ),
    ),
    "lost_attention": ("Fused attention lost", lost_attention),
    "more_gpu_time": (
        lambda side, a_busy_us, b_busy_us, **facts: (
            f"{'Compute' if 'without_communication' in facts else 'GPU busy'} time of {side} is"
            f" {percent(b_busy_us / a_busy_us - 1, 0)} longer"
        ),
        lambda a_kernels, b_kernels, a_busy_us, b_busy_us, **facts: (
            f"{_gpu_time(**facts)} {duration(a_busy_us)} -> {duration(b_busy_us)}, {count(a_kernels)} ->"
            f" {count(b_kernels)} kernels."
            f"{' Kernels run slower beside communication.' if 'without_communication' in facts else ''}"
        ),
    ),
    "outputs_differ": ("{b} outputs differ from {a}'s", lambda reason, **_: reason.long()),
    "pageable_copies": (
        "Pageable copies block the host of {side}",
        lambda copies, copy_us, idle_us, call_us, made_by, **_: (
            f"{count(copies)} copies from or to pageable memory per call: {duration(copy_us)}, and the GPU is idle for"
            f" {duration(idle_us)} behind them, {percent(idle_us / call_us, 0)} of the call.{_made_by(made_by, '; ')}"
        ),
    ),
    "profiler_distortion": ("Profiler overhead", profiler_distortion),
    "single_precision": ("{side} has float32 matmuls", single_precision),
    "slower_attention": (
        lambda before_us, after_us, **_: f"Attention takes {after_us / before_us:.1f}x as long",
        lambda before_us, after_us, shown_by, **_: " ".join(
            (f"{duration(before_us)} -> {duration(after_us)}.", *_evidence(shown_by), PRICE)
        ),
    ),
    "slower_convolutions": (
        lambda convolutions, before_us, after_us, **_: (
            f"{counted(convolutions, 'convolution')} {'takes' if convolutions == 1 else 'take'}"
            f" {after_us / before_us:.1f}x as long"
        ),
        slower_convolutions,
    ),
    "small_kernels": (
        "Latency-bound: kernels of {side} are too small to fill the GPU",
        lambda small_us, whole_us, **_: (
            f"{percent(small_us / whole_us, 0)} of the call ({duration(small_us)} of {duration(whole_us)}) are kernels"
            " below 20 us and 30 % of both rooflines (est.). Larger batches and fusion fill the GPU."
        ),
    ),
    "synchronising_calls": (
        "{side} synchronises inside a call",
        lambda idle_us, call_us, calls, made_by, times, **_: (
            f"{', '.join(calls)} drained the queue {count(times)}x per call: {duration(idle_us)} idle,"
            f" {percent(idle_us / call_us, 0)} of the call.{_made_by(made_by, ', ') or ' Call site not recorded.'}"
        ),
    ),
}
