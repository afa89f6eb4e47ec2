from __future__ import annotations

from tracekit.doctor.check import ok, problem, skipped, warning


def test_only_what_can_be_mended_has_a_fix() -> None:
    assert ok("gpu", "there").fix is None
    assert skipped("gpu", "no torch").fix is None
    assert warning("gpu", "busy", "nvidia-smi").fix == "nvidia-smi"
    assert problem("gpu", "gone", "nvidia-smi").status == "problem"
