"""Why one side is faster, in one sentence."""

from __future__ import annotations

from tracekit.model.comparison import NAMED_SHARE, Comparison, ReasonShare, WaterfallPart
from tracekit.model.groups import GroupLabel
from tracekit.names import short_kernel_name
from tracekit.numbers import duration, duration_change, percent
from tracekit.report.words.common import cause_words
from tracekit.report.words.groups import label_words, operators_word, repeats_word, work_words

#: A label is told whole up to so many characters, which is no limit to those that tracekit writes.
LONGEST = 120


def reason_sentence(comparison: Comparison) -> str | None:
    """`Why: the GPU waits 2.69 ms less (...); its work takes 125.4 µs longer (...).`; None where no difference of
    unprofiled times was established, or none of its sign was recorded."""
    reason = comparison.reason
    if reason is None:
        return None
    told = [_share(share) for share in reason.shares]
    if reason.unexplained_us:
        told.append(f"another {duration_change(reason.unexplained_us)} is not explained")
    of = f" in the recorded process ({duration_change(reason.change_us)} a call)" if reason.of_one_process else ""
    return f"Why{of}: {'; '.join(told)}."


def _share(share: ReasonShare) -> str:
    subject, verb = ("the GPU", "waits") if share.kind == "idle" else ("GPU work", "takes")
    less, more = ("less", "more") if share.kind == "idle" else ("less", "longer")
    said = f"{subject} {verb} {duration(abs(share.delta_us))} {less if share.delta_us < 0 else more}"
    named = [f"{_words(part)} {duration_change(part.delta_us)}" for part in share.parts]
    named += [f"all else {duration_change(share.rest_us)}"] if share.rest_us else []
    if not named and share.kind == "gpu":
        named = [f"no one group of kernels makes {percent(NAMED_SHARE, 0)} of it"]
    return f"{said} ({'; '.join(named)})" if named else said


def _words(part: WaterfallPart) -> str:
    """A part in words: of a group `152 times 20 kernels became 1 Triton (...)`, or `3 times another product kernel`."""
    if part.kind == "idle":
        return cause_words(label_words(part.label))
    if isinstance(part.label, str):
        return short_kernel_name(label_words(part.label), LONGEST)
    times, work = repeats_word(part.label.repeats), _became(part.label)
    return f"{times} times {work}" if times else work


def _became(label: GroupLabel) -> str:
    """Where one library kernel took another's place that is said of it."""
    before, after = label.before, label.after
    if before and before == after and before.count == 1 and before.libraries:
        operators = f" ({operators_word(label)})" if label.operators else ""
        return f"another {before.libraries[0][0]} kernel{operators}"
    return short_kernel_name(work_words(label, " became "), LONGEST)
