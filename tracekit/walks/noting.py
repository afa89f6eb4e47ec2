"""What is noted while a run is made: its manifest keeps the facts, and beside them the sentences that older versions
read."""

from __future__ import annotations

from dataclasses import replace

from tracekit.model.compilation import Diagnostics
from tracekit.model.note import Noted
from tracekit.model.numerics import FormNumerics, OutputDifference
from tracekit.model.provenance import CompiledSites
from tracekit.model.run import Run
from tracekit.report.words.noted import noted_sentence, noted_sentences


def with_notes(run: Run, *noted: Noted) -> Run:
    """The run, with these behind whatever it notes already."""
    return replace(run, notes=(*run.notes, *noted_sentences(noted)), noted=(*run.noted, *noted))


def diagnostics_in_words(found: Diagnostics) -> Diagnostics:
    return replace(found, notes=noted_sentences(found.noted))


def sites_in_words(found: CompiledSites) -> CompiledSites:
    """Each note once, and of each graph without sites why it has none."""
    graphs = (
        replace(each, without=noted_sentence(Noted(each.without))) if each.without else each for each in found.graphs
    )
    return replace(found, graphs=tuple(graphs), notes=tuple(dict.fromkeys(noted_sentences(found.noted))))


def numerics_in_words(found: FormNumerics) -> FormNumerics:
    """What one form returns, with what could not be compared and why also in words."""
    missing = found.reference_missing
    return replace(
        found,
        against_itself=_difference_in_words(found.against_itself),
        against_eager=_difference_in_words(found.against_eager),
        against_reference=_difference_in_words(found.against_reference),
        no_reference=noted_sentence(missing) if missing else None,
    )


def _difference_in_words(found: OutputDifference | None) -> OutputDifference | None:
    if found is None:
        return None
    told = (replace(each, problem=noted_sentence(each.mismatch)) if each.mismatch else each for each in found.tensors)
    return replace(found, tensors=tuple(told))
