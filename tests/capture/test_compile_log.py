"""Records of torch's compile log by hand: what a small model on the CPU does not say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tracekit.capture.compile_log import BREAK, METRICS, RECOMPILE, SKIPS, LogEntry, read_log
from tracekit.model.compilation import CudaGraphSkip, Diagnostics


def metrics(id_: str | None = "0/0", **content: Any) -> LogEntry:
    content = {"co_name": "forward", "co_filename": "model.py", "co_firstlineno": 12, **content}
    return LogEntry(METRICS, id_, content, "warm-up", 1)


def found_in(*entries: LogEntry, **counted: int) -> Diagnostics:
    return read_log(list(entries), Counter(counted))


def test_backward_graphs_and_what_runs_later_are_no_frames_of_their_own():
    found = found_in(metrics(), metrics(is_forward=False), metrics(is_runtime=True), metrics(None))
    assert [frame.id for frame in found.frames] == ["0/0"]


def test_a_version_that_tells_little_leaves_the_rest_unknown():
    (frame,) = read_log([LogEntry(METRICS, "3/1", {}, "timed", 2)], Counter()).frames
    assert (frame.id, frame.phase, frame.call) == ("3/1", "timed", 2)
    assert (frame.function, frame.where, frame.seconds, frame.guards, frame.inputs) == (None,) * 5
    assert frame.because == ()


def test_the_limit_is_told_with_the_name_that_the_first_compilation_has():
    limit = metrics(
        "0/8",
        co_name=None,
        co_filename=None,
        fail_type="torch._dynamo.exc.FailOnRecompileLimitHit",
        fail_reason="recompile_limit reached with fullgraph=True",
    )
    found = found_in(metrics(), limit)
    (fallback,) = found.fallbacks
    assert (fallback.kind, fallback.function, fallback.where) == ("recompile_limit", "forward", "model.py:12")
    assert found.limit_reached
    assert [frame.id for frame in found.frames] == ["0/0"]


def test_a_frame_without_anything_to_compile_is_no_fallback():
    assert found_in(metrics(fail_type="torch._dynamo.exc.SkipFrame")).fallbacks == ()


def test_a_break_of_a_frame_that_was_given_up_is_no_break():
    stop = LogEntry(BREAK, "0/0", "Graph Break Reason: a loop\n", "warm-up", 1)
    assert len(found_in(metrics(), stop).breaks) == 1
    given_up = found_in(metrics(fail_type="torch._dynamo.exc.Unsupported", fail_reason="a loop"), stop)
    assert given_up.breaks == ()
    assert [each.kind for each in given_up.fallbacks] == ["skipped"]


@pytest.mark.parametrize(
    "payload", ['["0/0: tensor \'x\' rank mismatch", "0/0: ___check_obj_id(y)"]', ["0/0: a", "0/0: b"], "0/0: one\n"]
)
def test_checks_that_failed_are_read_from_a_list_or_a_line(payload: Any):
    found = found_in(metrics(), metrics("0/1"), LogEntry(RECOMPILE, "0/1", payload, "warm-up", 2))
    (again,) = found.recompiles
    assert again.id == "0/1"
    assert {guard.version for guard in again.because} == {"0/0"}
    assert not any(guard.text.startswith("0/0") for guard in again.because)
    assert len(again.because) == (1 if payload == "0/0: one\n" else 2)


def test_a_reason_that_the_logger_and_the_metrics_tell_is_counted_once():
    skip = LogEntry("skip", None, "mutated inputs", "warm-up", 1)
    also = metrics(cudagraph_skip_reason="skipping cudagraphs due to mutated inputs")
    assert found_in(skip, skip, also, **{SKIPS: 2}).cuda_graph_skips == (CudaGraphSkip("mutated inputs", 2),)
    assert found_in(also, **{SKIPS: 1}).cuda_graph_skips == (CudaGraphSkip("mutated inputs", 1),)
    assert found_in(**{SKIPS: 3}).cuda_graph_skips == (CudaGraphSkip(None, 3),)


def test_phases_hold_nothing_twice():
    found = found_in(
        metrics(
            dynamo_cumulative_compile_time_us=10e6,
            aot_autograd_cumulative_compile_time_us=8e6,
            inductor_cumulative_compile_time_us=5e6,
            triton_compile_time_us=2e6,
            compile_time_autotune_time_us=1e6,
        ),
        # A backward graph is compiled when it first runs, outside of Dynamo.
        metrics(is_forward=False, backward_cumulative_compile_time_us=3e6, triton_compile_time_us=1e6),
    )
    seconds = {each.phase: each.seconds for each in found.phases}
    assert seconds == {"aot_autograd": 3.0, "triton": 3.0, "inductor": 4.0, "dynamo": 2.0, "autotune": 1.0}
    assert [each.seconds for each in found.phases] == sorted(seconds.values(), reverse=True)


def test_a_failed_check_keeps_paths_within_a_package_whole():
    line = "0/0: len(args) == 2  # output = func()  # transformers/utils/generic.py:939 in wrapper"
    (frame,) = found_in(LogEntry(RECOMPILE, "0/1", f'["{line}"]', "warm-up", 1), metrics("0/1")).frames
    assert "# transformers/utils/generic.py:939" in frame.because[0].text
    line = "0/0: len(args) == 2  # at /usr/lib/python3/dist-packages/some/model.py:9"
    (frame,) = found_in(LogEntry(RECOMPILE, "0/1", f'["{line}"]', "warm-up", 1), metrics("0/1")).frames
    assert frame.because[0].text.endswith("# at some/model.py:9")
