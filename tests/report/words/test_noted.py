import functools

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.errors import TracekitError
from tracekit.model.note import Facts, Noted
from tracekit.report.words.noted import SENTENCES, noted_sentence

#: Facts of each note, as `measure` gives them; the others have none.
FACTS: dict[str, tuple[Facts, ...]] = {
    "warned": ({"line": "UserWarning: old"},),
    "no_cuda_graphs_on_cpu": ({"mode": "reduce-overhead"},),
    "never_called": ({"parts": ("model.spare",), "more": 0}, {"parts": ("a", "b"), "more": 3}),
    "outputs_not_compared": ({"error": "ValueError: an output of a new kind"},),
    "no_digest": ({"error": "rank0.json.digest: Permission denied"},),
    "advice_failed": ({"error": "no GPU memory"},),
    "provenance_failed": ({"form": "eager", "error": "RuntimeError: gone"},),
    "provenance_incomplete": (
        {"what": Noted("graph_without_sites", {"graph": 0, "why": "cached_without_provenance"})},
    ),
    "graph_calls_differ": ({"recorded": 3, "made": 4},),
    "provenance_unreadable": ({"what": "a graph", "error": "KeyError: 'postToPre'"},),
    "graph_without_sites": ({"graph": 0, "why": "no_launches_marked"},),
    "profiler_did_not_start": ({"error": "RuntimeError: no"},),
    "fewer_steps": ({"recorded": 1, "steps": 10, "folder": "traces/mine"},),
    "ended_by_another": ({"steps": 2},),
    "profiler_did_not_stop": ({"error": "RuntimeError: no"},),
    "trace_not_written": ({"folder": "traces/mine", "error": "No space left on device"},),
    "loop_too_short": ({"steps": 2, "skip": 4},),
    "torch_import_failed": ({"torch": "9.9", "error": "cannot import name 'CompiledFxGraph'"},),
    "torch_lacks": ({"torch": "9.9", "names": ("CompiledFxGraph.post_compile", "torch.gone")},),
    "torch_makes_graphs_otherwise": ({"torch": "9.9", "arguments": ("self", "lowering"), "known": ("self", "gm")},),
    "no_compile_log": ({"torch": "9.9"},),
    "compile_log_unreadable": ({"error": "KeyError: 'fail_type'"},),
    "compile_log_line_unreadable": ({"error": "TypeError: no"},),
    "compile_log_silent": ({"torch": "9.9", "compilations": 2},),
    "no_higher_precision": ({"dtype": "float64"},),
    "reference_does_not_fit": ({"dtype": "float32", "needs_bytes": 10 * 2**30, "free_bytes": 2**30},),
    "reference_ran_out_of_memory": ({"needs_bytes": 10 * 2**30},),
    "reference_failed": ({"error": "TypeError: no"},),
    "shapes_differ": ({"shape": (2, 3), "other_shape": (3,)},),
}


@pytest.mark.parametrize("code", SENTENCES)
def test_every_note_is_said_in_a_sentence(code: str, snapshot: SnapshotAssertion) -> None:
    assert [noted_sentence(Noted(code, facts)) for facts in FACTS.get(code, ({},))] == snapshot


@pytest.mark.parametrize(
    "noted",
    [
        Noted("\x1b[2Jnone"),
        Noted("warned"),
        Noted("reference_does_not_fit", {"dtype": "float32", "needs_bytes": "a", "free_bytes": 1}),
        Noted("shapes_differ", {"shape": 3, "other_shape": ()}),
        Noted("fewer_steps", {"recorded": 1, "steps": "a", "folder": "b"}),
        Noted("provenance_incomplete", {"what": "a sentence"}),
        Noted("graph_without_sites", {"graph": 0, "why": ("a",)}),
        Noted("never_called", {"parts": (1, None), "more": 0}),
        functools.reduce(lambda noted, _: Noted("provenance_incomplete", {"what": noted}), range(900), Noted("warned")),
    ],
    ids=lambda noted: noted.code,
)
def test_a_note_that_no_run_has_is_one_line(noted: Noted) -> None:
    with pytest.raises(TracekitError, match="record the run again") as error:
        noted_sentence(noted)
    assert len(str(error.value)) < 200


def test_a_note_may_hold_another_one() -> None:
    noted = Noted("rank_outputs", {"path": "", "no_reference": Noted("reference_of_ranks"), "allowed": 0.5})
    assert msgspec.json.decode(msgspec.json.encode(noted), type=Noted) == noted
