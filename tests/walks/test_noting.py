from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.cli.runs import make_run_folder

from tracekit import store
from tracekit.model.note import Noted
from tracekit.model.numerics import FormNumerics, OutputDifference, TensorDifference
from tracekit.report.words.noted import noted_sentence
from tracekit.walks.noting import numerics_in_words, with_notes

NOTED = Noted("never_called", {"parts": ("model.spare",), "more": 0})


def test_a_run_keeps_a_note_as_facts_and_in_words(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path)
    run = replace(store.load(folder), notes=("of the workload",))
    store.save(with_notes(run, NOTED, Noted("no_advice")), folder)
    found = store.load(folder)
    assert found.noted == (NOTED, Noted("no_advice"))
    assert found.notes == ("of the workload", noted_sentence(NOTED), noted_sentence(Noted("no_advice")))


def test_what_could_not_be_compared_is_kept_as_facts_and_in_words() -> None:
    missing, mismatch = Noted("modules_not_named"), Noted("in_one_output_only")
    tensors = (
        TensorDifference("[0]", "float32", (2,), 2, mismatch=mismatch),
        TensorDifference("[1]", "float32", (), 1),
    )
    told = FormNumerics(
        "float32", None, OutputDifference("eager", tensors), None, None, None, reference_missing=missing
    )
    found = numerics_in_words(told)
    assert (found.no_reference, found.reference_missing) == (noted_sentence(missing), missing)
    assert found.against_eager is not None
    assert [each.problem for each in found.against_eager.tensors] == [noted_sentence(mismatch), None]
