"""The same convolutions take longer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracekit.model.evidence import Evidence
from tracekit.numbers import counted, duration
from tracekit.report.words.evidence import evidence_sentence


def title(facts: dict[str, Any]) -> str:
    number = facts["convolutions"]
    factor = facts["after_us"] / facts["before_us"]
    return f"{counted(number, 'convolution')} {'takes' if number == 1 else 'take'} {factor:.1f} times as long"


def evidence(facts: dict[str, Any]) -> str:
    took = f"From {duration(facts['before_us'])} to {duration(facts['after_us'])}."
    shown = (evidence_sentence(Evidence(**each)) for each in facts["shown_by"])
    return " ".join((took, *shown, *_layout(facts)))


def _layout(facts: dict[str, Any]) -> Iterator[str]:
    """What laid them out so, and what that does to the others."""
    if not facts["laid_out_by_inductor"]:
        return
    yield "Inductor lays out convolutions so where it expects that to pay."
    gained_us = facts["others_gained_us"]
    if gained_us > 0:
        lost_us = facts["after_us"] - facts["before_us"]
        end = ", which they would lose again without" if lost_us > gained_us else ": more than these lost"
        yield f"Other convolutions that lie so too take {duration(gained_us)} less{end}."
    elif gained_us < 0:
        yield f"Other convolutions that lie so too take {duration(-gained_us)} more."
