"""Findings on ranks that communicate, eager and compiled."""

from typing import Any

from tracekit.model.advice import ActionCode
from tracekit.numbers import count, duration, duration_change, percent, size, times
from tracekit.report.words.saying import Sentence

#: Lines to write, where the advice is an order of calls.
LINES: dict[ActionCode, str] = {
    "shard_then_compile": (
        "for block in model.blocks:\n"
        "    fully_shard(block)\n"
        "    block.compile()  # in place, not torch.compile(block)\n"
        "fully_shard(model)"
    ),
    "wrap_then_compile": "model = DistributedDataParallel(model, bucket_cap_mb=25)\nmodel = torch.compile(model)",
    "prefetch_weights": (
        "for block, following in zip(model.blocks, model.blocks[1:]):\n"
        "    block.set_modules_to_forward_prefetch([following])\n"
        "    following.set_modules_to_backward_prefetch([block])"
    ),
}


def _of(bytes_: float | None) -> str:
    return f" of {size(bytes_)}" if bytes_ is not None else ""


def fewer_gathers(
    *,
    a_gathers: float,
    b_gathers: float,
    a_each_bytes: float | None,
    b_each_bytes: float | None,
    a_exposed_us: float,
    b_exposed_us: float,
    **_: Any,
) -> str:
    return (
        f"{count(a_gathers)} all-gathers{_of(a_each_bytes)} became {count(b_gathers)}{_of(b_each_bytes)}. Their exposed"
        f" transfer: {duration(a_exposed_us)} -> {duration(b_exposed_us)}. Hooks of fully_shard gather a block's"
        " weights before it runs. A block wrapped by torch.compile before it is sharded is called past its hooks."
    )


def ddp_buckets(
    *,
    a_buckets: float,
    b_buckets: float,
    a_each_bytes: float | None,
    b_each_bytes: float | None,
    a_overlapped_share: float | None,
    b_overlapped_share: float | None,
    **_: Any,
) -> str:
    text = f"{count(a_buckets)} all-reduces{_of(a_each_bytes)} became {count(b_buckets)}{_of(b_each_bytes)}."
    if a_overlapped_share is None or b_overlapped_share is None:
        return text
    text += f" Compute covers {percent(a_overlapped_share, 0)} -> {percent(b_overlapped_share, 0)} of their transfer."
    if a_overlapped_share > b_overlapped_share:
        text += " If a graph is not split at DDP's buckets, all gradients are reduced after backward."
    return text


def moved(*, changes: list[dict[str, Any]], exposed_change_us: float, **_: Any) -> str:
    told = []
    for each in changes:
        bytes_ = ""
        if each["same_bytes"] and each["a_bytes"]:
            bytes_ = ", as many bytes"
        elif each["a_bytes"] is not None and each["b_bytes"] is not None:
            bytes_ = f", {size(each['a_bytes'])} -> {size(each['b_bytes'])}"
        told.append(f"{each['name']} {count(each['a_count'])} -> {count(each['b_count'])}{bytes_}")
    return f"{'; '.join(told)}. Their exposed transfer: {duration_change(exposed_change_us)}."


#: Title and evidence by the finding's code.
WORDS: dict[str, tuple[Sentence, Sentence]] = {
    "communication_limits": (
        "Communication limits what compiling gains",
        lambda rank, compute_us, gained_us, exposed_us, exposed_waiting_us, a_us, b_us, speedup_at_most, **_: (
            f"Kernels of rank {rank} take {duration(gained_us)} less, and {duration(exposed_us)} of communication stays"
            f" exposed, {percent(exposed_us / b_us, 0)} of the call"
            + (f" ({duration(exposed_waiting_us)} waiting)" if exposed_waiting_us else "")
            + f". Without any compute the speed-up over eager would be {times(speedup_at_most)}."
        ),
    ),
    "ddp_buckets": ("DDP's buckets differ in {side}", ddp_buckets),
    "fewer_gathers": ("{side} gathers weights in {b_gathers:count} pieces, not {a_gathers:count}", fewer_gathers),
    "less_overlap": (
        "Less transfer is overlapped in {side}: {lost_us:duration}",
        lambda rank, a_overlapped_share, b_overlapped_share, compute_us, **_: (
            f"Compute of rank {rank} covers {percent(a_overlapped_share, 0)} -> {percent(b_overlapped_share, 0)} of its"
            f" transfer. Compute itself: {duration_change(compute_us)}."
        ),
    ),
    "moved_collectives": ("{side} has other collectives", moved),
}
#: Why their advice is worth trying, on the first screen.
WHY: dict[str, Sentence] = {
    "ddp_buckets": "buckets are reduced during backward",
    "fewer_gathers": "hooks gather block by block",
    "less_overlap": "gathers overlap more compute",
}
#: What is to be changed, in few words.
IN_CODE: dict[ActionCode, str] = {
    "shard_then_compile": "shard blocks, then compile them in place",
    "wrap_then_compile": "wrap with DDP, then compile",
    "prefetch_weights": "prefetch weights",
}
