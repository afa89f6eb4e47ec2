"""Findings on what runs: kernels that were lost or take longer, outputs, and waits of the GPU for the host."""

from typing import Any

from tracekit.model.analysis import Place
from tracekit.model.groups import Evidence
from tracekit.numbers import count, counted, duration, duration_change, percent, times
from tracekit.report.words.common import made_at_words
from tracekit.report.words.groups import evidence_sentences
from tracekit.report.words.reasons import accuracy_because
from tracekit.report.words.saying import Sentence

#: The reason known; `comparison/findings/slower_kernels.py` tells what it was measured on.
MASKS = "A mask that only the compiled model makes can do this: fused kernels do not take every mask."
#: What is said beside the advice to compile layers one by one.
PRICE = (
    "Compiled one by one, layers keep the attention that eager code asks for, but each checks its guards: that pays "
    "where the GPU is the slower one, and costs where it waits for the host."
)
TAKEN_ON_GPU = (
    "Wall times here are unprofiled ones; the recordings give GPU busy time, which hardly changes, and how idle time "
    "divides into causes."
)
TAKEN_ON_CPU = "Wall times here are unprofiled ones; operator times are as recorded, and longer than the true ones."


def lost_attention(*, a: str, b: str, products_more_us: float, in_float32: bool, **facts: Any) -> str:
    products = f", where matrix products take {duration(products_more_us)} more" if products_more_us > 0 else ""
    types = " The products are of float32." if in_float32 else ""
    return (
        f"Attention kernels took {duration(facts['attention_before_us'])} in {a} and take "
        f"{duration(facts['attention_after_us'])} in {b}{products}: attention is likely computed as matrix products "
        f"and a softmax.{types} {MASKS} {PRICE}"
    )


def _evidence(shown_by: list[dict[str, Any]]) -> tuple[str, ...]:
    return evidence_sentences([Evidence(**each) for each in shown_by])


def slower_convolutions(*, before_us: float, after_us: float, shown_by: list[dict[str, Any]], **facts: Any) -> str:
    told = [f"From {duration(before_us)} to {duration(after_us)}.", *_evidence(shown_by)]
    if facts["laid_out_by_inductor"]:
        told.append("Inductor lays out convolutions so where it expects that to pay.")
        gained_us = facts["others_gained_us"]
        if gained_us > 0:
            lost_us = after_us - before_us
            end = ", which they would lose again without" if lost_us > gained_us else ": more than these lost"
            told.append(f"Other convolutions that lie so too take {duration(gained_us)} less{end}.")
        elif gained_us < 0:
            told.append(f"Other convolutions that lie so too take {duration(-gained_us)} more.")
    return " ".join(told)


def single_precision(*, products: float, products_us: float, busy_us: float, before: str | None, **facts: Any) -> str:
    if facts["read_before"] < facts["read"]:
        why = f"Compiling brought them: {before} has {facts['read_before']} of them in all that was read."
    elif before is None:
        why = "Look for .float() and for buffers of float32."
    else:
        why = f"{before} has them too: look for .float() and for buffers of float32."
    return (
        f"{count(products)} products a call have float32 inputs ({', '.join(facts['operators'])}) and take "
        f"{duration(products_us)}, {percent(products_us / busy_us, 0)} of GPU time, where the model is of 16 bits. "
        f"{why}"
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
    return f" Made by {between.join(told)}." if told else ""


def profiler_distortion(*, slowed: list[dict[str, Any]], on_gpu: bool) -> str:
    told = "; ".join(
        f"{each['side']}: a recorded step took {times(each['slowdown'])} as long as an unprofiled call"
        for each in slowed
    )
    return f"{told}. {TAKEN_ON_GPU if on_gpu else TAKEN_ON_CPU}"


#: Title and evidence by the finding's code.
WORDS: dict[str, tuple[Sentence, Sentence]] = {
    "fewer_kernels": (
        lambda a_kernels, b_kernels, **_: f"{count(a_kernels - b_kernels)} fewer kernels",
        (
            "{a_kernels:count} kernels became {b_kernels:count}; GPU busy time went from {a_busy_us:duration} to "
            "{b_busy_us:duration}."
        ),
    ),
    "graphed_launches": (
        "CUDA graphs start {graphed_share:percent 0} of the kernels of {side}",
        lambda a_launches, b_launches, idle_change_us, **_: (
            f"{count(a_launches)} launches became {count(b_launches)}."
            f"{'' if idle_change_us is None else f' GPU idle time changed by {duration_change(idle_change_us)}.'}"
        ),
    ),
    "launch_bound": (
        "The GPU waits for the host",
        lambda idle_us, wall_us, host_share, **_: (
            f"{percent(idle_us / wall_us, 0)} of the unprofiled call ({duration(idle_us)} of {duration(wall_us)}) the"
            f" GPU is idle; dispatch, launch calls, guards and Python explain {percent(host_share, 0)} of what is known"
            " of it. No CUDA graph was launched."
        ),
    ),
    "lost_attention": ("The fused attention kernel is lost", lost_attention),
    "more_gpu_time": (
        lambda side, a_busy_us, b_busy_us, **_: (
            f"The kernels of {side} take longer: GPU busy time grew by {percent(b_busy_us / a_busy_us - 1, 0)}"
        ),
        (
            "GPU busy time went from {a_busy_us:duration} to {b_busy_us:duration}, kernels from {a_kernels:count} to "
            "{b_kernels:count}."
        ),
    ),
    "outputs_differ": ("{b} computes something else than {a}", lambda reason, **_: accuracy_because(**reason)),
    "pageable_copies": (
        "Copies of pageable memory hold {side} up",
        lambda copies, copy_us, idle_us, call_us, made_by, **_: (
            f"{count(copies)} copies from or to pageable memory take {duration(copy_us)} a call; the host waits for"
            f" them, and the GPU is idle for {duration(idle_us)} behind them, {percent(idle_us / call_us, 0)} of the"
            f" call.{_made_by(made_by, '; ')}"
        ),
    ),
    "profiler_distortion": ("Recording slowed the calls it recorded", profiler_distortion),
    "single_precision": ("{side} multiplies in float32", single_precision),
    "slower_attention": (
        lambda before_us, after_us, **_: f"Attention takes {after_us / before_us:.1f} times as long",
        lambda before_us, after_us, shown_by, **_: " ".join(
            (f"It took {duration(before_us)} and takes {duration(after_us)}.", *_evidence(shown_by), PRICE)
        ),
    ),
    "slower_convolutions": (
        lambda convolutions, before_us, after_us, **_: (
            f"{counted(convolutions, 'convolution')} {'takes' if convolutions == 1 else 'take'}"
            f" {after_us / before_us:.1f} times as long"
        ),
        slower_convolutions,
    ),
    "synchronising_calls": (
        "{side} waits for the GPU in the middle of a call",
        lambda idle_us, call_us, calls, made_by, times, **_: (
            f"{count(times)} times a call the GPU runs dry because the host waits in {', '.join(calls)}, and is then"
            f" idle for {duration(idle_us)} in all, {percent(idle_us / call_us, 0)} of the call."
            f"{_made_by(made_by, ', ') or ' Where from was not recorded.'}"
        ),
    ),
}
