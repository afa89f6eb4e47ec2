"""Attention that was kept takes longer."""

from __future__ import annotations

from typing import Any

from tracekit.model.evidence import Evidence
from tracekit.numbers import duration
from tracekit.report.words.evidence import evidence_sentence
from tracekit.report.words.findings.attention import PRICE


def title(facts: dict[str, Any]) -> str:
    return f"Attention takes {facts['after_us'] / facts['before_us']:.1f} times as long"


def evidence(facts: dict[str, Any]) -> str:
    took = f"It took {duration(facts['before_us'])} and takes {duration(facts['after_us'])}."
    shown = (evidence_sentence(Evidence(**each)) for each in facts["shown_by"])
    return " ".join((took, *shown, PRICE))
