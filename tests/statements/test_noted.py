import functools
import json
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.errors import TracekitError
from tracekit.model.note import Noted, WrittenNoted
from tracekit.statements.noted import GraphWithoutSites, ProvenanceIncomplete, UnknownNoted
from tracekit.statements.rank_differences import RankDifference
from tracekit.wire import decode, encode

#: Facts of each note, as `measure` gives them; the others have none.
FACTS: dict[str, tuple[dict[str, Any], ...]] = {
    "unknown": ({"as_read": WrittenNoted("of_tomorrow", {"share": 0.5})},),
    "warned": ({"line": "UserWarning: old"},),
    "no_cuda_graphs_on_cpu": ({"mode": "reduce-overhead"},),
    "never_called": ({"parts": ("model.spare",), "more": 0}, {"parts": ("a", "b"), "more": 3}),
    "outputs_not_compared": ({"error": "ValueError: an output of a new kind"},),
    "no_digest": ({"error": "rank0.json.digest: Permission denied"},),
    "advice_failed": ({"error": "no GPU memory"},),
    "provenance_failed": ({"form": "eager", "error": "RuntimeError: gone"},),
    "provenance_incomplete": ({"what": GraphWithoutSites(0, "cached_without_provenance")},),
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
    "callable_alone": tuple(
        {
            "label": "Net (a.py:1)",
            "result": result,
            "speedup": speedup,
            "ci95": ci95,
            "with_outliers": every,
            "is_tie": is_tie,
        }
        for result, speedup, ci95, every, is_tie in (
            ("faster", 1.3, (1.2, 1.4), None, False),
            ("faster", 1.3, (1.2, 1.4), 1.6, False),
            ("slower", 0.8, (0.7, 0.9), None, False),
            ("inconclusive", 1.0, (0.9, 1.1), None, False),
            ("inconclusive", 1.0, (0.99, 1.01), None, True),
            ("inconclusive", 1.0, (0.99, 1.01), 1.3, False),
            ("inconclusive", None, None, None, False),
        )
    ),
    "callables_not_looked_at": ({"number": 3},),
    "shapes_differ": ({"shape": (2, 3), "other_shape": (3,)},),
}


#: A comparison's notes say those of ranks.
SAID = [code for code in Noted.classes if code not in RankDifference.classes]


def made(code: str) -> list[Noted]:
    of_code: Any = Noted.classes[code]
    return [of_code(**facts) for facts in FACTS.get(code, ({},))]


@pytest.mark.parametrize("code", SAID)
def test_every_note_is_said_in_a_sentence(code: str, snapshot: SnapshotAssertion) -> None:
    assert [each.long() for each in made(code)] == snapshot


def test_what_is_said_where_there_is_little_room(snapshot: SnapshotAssertion) -> None:
    noted = [each for code in SAID for each in made(code)]
    assert {each.code: each.short() for each in noted if each.short() != each.long()} == snapshot


@pytest.mark.parametrize("code", SAID)
def test_every_note_is_read_as_it_was_written(code: str) -> None:
    for noted in made(code):
        assert decode(encode(noted), Noted) == noted


def test_what_another_version_noted_is_written_as_it_was_read() -> None:
    told = {"code": "of_tomorrow", "facts": {"share": 0.5, "by": [1, None], "why": {"code": "warned", "facts": {}}}}
    for each in (told, {"code": "unknown", "facts": {"as_read": "x"}}):
        noted = decode(json.dumps(each).encode(), Noted)
        assert isinstance(noted, UnknownNoted) and each["code"] in noted.long()
        assert json.loads(encode(noted)) == each
        inside = decode(json.dumps({"code": "provenance_incomplete", "facts": {"what": each}}).encode(), Noted)
        assert inside == ProvenanceIncomplete(noted)


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("warned", {}),
        ("warned", {"line": None}),
        ("warned", "line"),
        ("reference_does_not_fit", {"dtype": "float32", "needs_bytes": "a", "free_bytes": 1}),
        ("reference_does_not_fit", {"dtype": "float32", "needs_bytes": 1e301, "free_bytes": 1}),
        ("shapes_differ", {"shape": 3, "other_shape": ()}),
        ("fewer_steps", {"recorded": -1, "steps": 1, "folder": "b"}),
        ("provenance_incomplete", {"what": "a sentence"}),
        ("provenance_incomplete", {"what": {"code": "warned"}}),
        ("graph_without_sites", {"graph": 0, "why": ("a",)}),
        ("graph_without_sites", {"graph": 0, "why": "a"}),
        ("never_called", {"parts": (1, None), "more": 0}),
        ("rank_memory", {"peak_bytes": 1}),
        (
            "provenance_incomplete",
            functools.reduce(
                lambda what, _: {"what": {"code": "provenance_incomplete", "facts": what}}, range(400), {}
            ),
        ),
    ],
)
def test_facts_that_no_run_has_are_refused_in_one_line(code: str, facts: object) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        decode(json.dumps({"code": code, "facts": facts}).encode(), Noted)
    assert len(str(error.value)) < 300 and "\n" not in str(error.value)


@pytest.mark.parametrize("told", ["warned", {}, {"code": 1}, {"code": ["warned"]}, {"code": "x", "facts": [1]}])
def test_what_is_no_note_is_refused(told: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(json.dumps(told).encode(), Noted)


def test_what_a_rank_did_alone_is_said_of_no_run() -> None:
    noted = decode(b'{"code": "rank_memory", "facts": {"peak_bytes": 2, "least_bytes": 1}}', Noted)
    with pytest.raises(TracekitError, match="rank_memory"):
        noted.long()


def test_what_a_later_version_noted_is_kept_as_it_is_whatever_it_holds() -> None:
    reason = {"result": "undecided", "basis": "bits", "reason": "of_a_later_version", "path": "", "more": {"a": [1]}}
    for told in ({"code": "later", "facts": {"a": {"b": [1, {"c": None}]}}}, {"code": "rank_outputs", "facts": reason}):
        noted = decode(json.dumps(told).encode(), Noted)
        assert isinstance(noted, UnknownNoted) and told["code"] in noted.long()
        assert json.loads(encode(noted)) == told
