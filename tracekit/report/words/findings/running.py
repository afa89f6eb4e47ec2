"""Findings on what runs: kernels that were lost or take longer, outputs, and waits of the GPU for the host."""

from __future__ import annotations

from typing import Any

from tracekit.model.analysis import Place
from tracekit.model.groups import Evidence
from tracekit.numbers import count, counted, duration, duration_change, percent, times
from tracekit.report.words.common import made_at_words
from tracekit.report.words.groups import evidence_sentence
from tracekit.report.words.reasons import accuracy_because
from tracekit.report.words.saying import Sentence

#: The reason known; `comparison/layers.py` tells what it was measured on.
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


def slower_attention_title(*, before_us: float, after_us: float, **_: Any) -> str:
    return f"Attention takes {after_us / before_us:.1f} times as long"


def slower_attention(*, before_us: float, after_us: float, shown_by: list[dict[str, Any]], **_: Any) -> str:
    shown = (evidence_sentence(Evidence(**each)) for each in shown_by)
    return " ".join((f"It took {duration(before_us)} and takes {duration(after_us)}.", *shown, PRICE))


def slower_convolutions_title(*, convolutions: int, before_us: float, after_us: float, **_: Any) -> str:
    take = "takes" if convolutions == 1 else "take"
    return f"{counted(convolutions, 'convolution')} {take} {after_us / before_us:.1f} times as long"


def slower_convolutions(*, before_us: float, after_us: float, shown_by: list[dict[str, Any]], **facts: Any) -> str:
    told = [f"From {duration(before_us)} to {duration(after_us)}."]
    told += (evidence_sentence(Evidence(**each)) for each in shown_by)
    if facts["laid_out_by_inductor"]:
        told.append("Inductor lays out convolutions so where it expects that to pay.")
        gained_us = facts["others_gained_us"]
        if gained_us > 0:
            end = (
                ", which they would lose again without"
                if after_us - before_us > gained_us
                else ": more than these lost"
            )
            told.append(f"Other convolutions that lie so too take {duration(gained_us)} less{end}.")
        elif gained_us < 0:
            told.append(f"Other convolutions that lie so too take {duration(-gained_us)} more.")
    return " ".join(told)


def more_gpu_time_title(*, side: str, a_busy_us: float, b_busy_us: float, **_: Any) -> str:
    return f"The kernels of {side} take longer: GPU busy time grew by {percent(b_busy_us / a_busy_us - 1, 0)}"


def fewer_kernels_title(*, a_kernels: float, b_kernels: float, **_: Any) -> str:
    return f"{count(a_kernels - b_kernels)} fewer kernels"


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


def launch_bound(*, idle_us: float, wall_us: float, host_share: float, **_: Any) -> str:
    return (
        f"{percent(idle_us / wall_us, 0)} of the unprofiled call ({duration(idle_us)} of {duration(wall_us)}) the GPU "
        f"is idle; dispatch, launch calls, guards and Python explain {percent(host_share, 0)} of what is known of it. "
        "No CUDA graph was launched."
    )


def graphed_launches(*, a_launches: float, b_launches: float, idle_change_us: float | None, **_: Any) -> str:
    change = f" GPU idle time changed by {duration_change(idle_change_us)}." if idle_change_us is not None else ""
    return f"{count(a_launches)} launches became {count(b_launches)}.{change}"


def _made_at(facts: dict[str, Any]) -> str:
    if "called_at" in facts:
        return f"{facts['operator']} at {facts['called_at']}"
    place = Place(**facts["place"]) if facts["place"] else None
    return made_at_words(place, facts["lines"], in_eager_code=facts["in_eager_code"])


def synchronising_calls(
    *, idle_us: float, call_us: float, calls: list[str], made_by: list[dict[str, Any]], **facts: Any
) -> str:
    where = f" Made by {', '.join(map(_made_at, made_by))}." if made_by else " Where from was not recorded."
    return (
        f"{count(facts['times'])} times a call the GPU runs dry because the host waits in {', '.join(calls)}, and is "
        f"then idle for {duration(idle_us)} in all, {percent(idle_us / call_us, 0)} of the call.{where}"
    )


def pageable_copies(
    *, copies: float, copy_us: float, idle_us: float, call_us: float, made_by: list[dict[str, Any]], **_: Any
) -> str:
    where = f" Made by {'; '.join(map(_made_at, made_by))}." if made_by else ""
    return (
        f"{count(copies)} copies from or to pageable memory take {duration(copy_us)} a call; the host waits for them, "
        f"and the GPU is idle for {duration(idle_us)} behind them, {percent(idle_us / call_us, 0)} of the call.{where}"
    )


def profiler_distortion(*, slowed: list[dict[str, Any]], on_gpu: bool) -> str:
    told = "; ".join(
        f"{each['side']}: a recorded step took {times(each['slowdown'])} as long as an unprofiled call"
        for each in slowed
    )
    return f"{told}. {TAKEN_ON_GPU if on_gpu else TAKEN_ON_CPU}"


#: Title and evidence by the finding's code.
WORDS: dict[str, tuple[Sentence, Sentence]] = {
    "fewer_kernels": (
        fewer_kernels_title,
        (
            "{a_kernels:count} kernels became {b_kernels:count}; GPU busy time went from {a_busy_us:duration} to "
            "{b_busy_us:duration}."
        ),
    ),
    "graphed_launches": ("CUDA graphs start {graphed_share:percent 0} of the kernels of {side}", graphed_launches),
    "launch_bound": ("The GPU waits for the host", launch_bound),
    "lost_attention": ("The fused attention kernel is lost", lost_attention),
    "more_gpu_time": (
        more_gpu_time_title,
        (
            "GPU busy time went from {a_busy_us:duration} to {b_busy_us:duration}, kernels from {a_kernels:count} to "
            "{b_kernels:count}."
        ),
    ),
    "outputs_differ": ("{b} computes something else than {a}", lambda reason, **_: accuracy_because(**reason)),
    "pageable_copies": ("Copies of pageable memory hold {side} up", pageable_copies),
    "profiler_distortion": ("Recording slowed the calls it recorded", profiler_distortion),
    "single_precision": ("{side} multiplies in float32", single_precision),
    "slower_attention": (slower_attention_title, slower_attention),
    "slower_convolutions": (slower_convolutions_title, slower_convolutions),
    "synchronising_calls": ("{side} waits for the GPU in the middle of a call", synchronising_calls),
}
