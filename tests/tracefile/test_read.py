import gzip
import time
from pathlib import Path

import polars as pl
import pytest
from tests.traces import (
    DATA,
    Json,
    analyze,
    make_call,
    make_event,
    make_kernel,
    make_op,
    make_trace,
    recording,
    write_trace,
)

from tracekit.errors import TracekitError
from tracekit.model.trace import INPUT_COLUMNS
from tracekit.tracefile import cache
from tracekit.tracefile.read import read_trace

from .test_cache import no_reading, read_and_keep, same

LATE = 4377057133204.634


def test_nanoseconds_survive_microseconds_counted_since_boot(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, [make_kernel(LATE, LATE + 1.5), {**make_kernel(LATE + 2, LATE + 3), "dur": 0.333}])
    assert (trace.activities["end_ns"] - trace.activities["start_ns"]).to_list() == [1500, 333]
    assert (trace.activities["start_ns"].diff().drop_nulls()).to_list() == [2000]


def test_an_event_at_zero_is_set_aside_and_costs_the_others_nothing(tmp_path: Path) -> None:
    late = 4999999999999.0
    kernels = [make_kernel(0, 1), *({**make_kernel(0, 0), "ts": late + i / 1000, "dur": 0.001} for i in range(1000))]
    trace = make_trace(tmp_path, kernels)
    starts = trace.activities["start_ns"].to_list()
    assert [start - starts[0] for start in starts] == list(range(1000))
    assert trace.skipped == {"time far from all others": 1}


def test_a_long_pause_that_an_event_fills_is_no_silence(tmp_path: Path) -> None:
    hour = 3600e6
    events = [make_op(0, 2 * hour, name="wait"), make_kernel(1, 2), make_kernel(2 * hour, 2 * hour + 1)]
    trace = make_trace(tmp_path, events)
    assert (trace.activities.height, trace.skipped) == (2, {})


def test_a_bad_argument_costs_itself_and_not_its_event(tmp_path: Path) -> None:
    kernel = make_kernel(0, 1, correlation=3)
    events = [{**kernel, "args": {**kernel["args"], "bytes": [1]}}, {**make_kernel(2, 3), "args": []}]
    trace = make_trace(tmp_path, events)
    assert trace.activities["correlation"].to_list() == [3, None]
    assert trace.skipped == {}


def test_triton_host_events_are_not_gpu_work(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, [make_op(0, 5, name="triton_poi_fused_add_0", stream=7, kernel_file="x.py")])
    assert trace.activities.height == 0
    assert trace.host["kind"].to_list() == ["op"]


def test_words_may_stand_where_numbers_are_expected(tmp_path: Path) -> None:
    events = [
        {**make_call(0, 1, correlation=5), "pid": "Spans", "tid": "main thread"},
        {**make_kernel(2, 3), "pid": "GPU", "tid": "stream 7", "args": {"correlation": "5", "stream": "seven"}},
    ]
    trace = make_trace(tmp_path, events)
    assert trace.threads[0].pid == "Spans"
    assert trace.activities["correlation"].to_list() == [5]
    assert trace.activities["stream"].to_list() == [7]


@pytest.mark.parametrize(
    ("sound", "broken", "reason"),
    [
        ('"ts": 20', '"ts": null', "no time"),
        ('"ts": 20', '"ts": 2e17', "no time"),
        ('"ts": 20', '"ts": NaN', "no time"),
        ('"ts": 20', '"ts": "noon"', "no time"),
        ('"ts": 20', '"ts": [20]', "wrong type"),
        ('"dur": 5,', '"dur": null,', "no duration"),
        ('"dur": 5,', '"dur": Infinity,', "no duration"),
        ('"dur": 5,', '"dur": -1,', "negative duration"),
        ('"dur": 5,', '"dur": 1e300,', "absurd duration"),
        ('"B"', "null", "no name"),
        ('"B"', '"B\\x"', "invalid JSON"),
    ],
)
def test_one_broken_event_costs_only_itself(tmp_path: Path, sound: str, broken: str, reason: str) -> None:
    kernels = [make_kernel(0, 5.5, name="A"), make_kernel(20, 25, name="B"), make_kernel(40, 45.5, name="C")]
    path = write_trace(tmp_path, kernels)
    assert path.read_text().count(sound) == 1
    path.write_text(path.read_text().replace(sound, broken))
    trace = read_trace(path)
    assert trace.activities["name"].to_list() == ["A", "C"]
    assert (trace.skipped, trace.truncated) == ({reason: 1}, False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello", "is not a trace"),
        (b'{"a": 1}', 'no "traceEvents"'),
        (b'{"a": ', "is not a trace"),
        (b'{"traceEvents": []}', "has no events"),
        (b'{"traceEvents": [{"ph": "X", "na', "no event can be read"),
        (b"\x1f\x8b\x08\x00garbage", "nothing can be read"),
        (gzip.compress(b"{}", mtime=0)[:11], "damaged gzip"),
        (b"\x28\xb5\x2f\xfd\x00", "zstd"),
        (b"\xff\xfe\x00\x01", "is not a trace"),
        (b"[1, 2, 3]", "no event can be read"),
        (None, "check the path"),
    ],
)
def test_what_is_no_trace_is_one_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TracekitError, match=f"^[^\n]*{message}[^\n]*$"):
        read_trace(path)


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = recording("flux_eager")
    read_trace(path, on_bytes=lambda done, total: told.append((done, total)))
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    assert len(told) > 1


def test_what_the_recording_says_of_itself_is_kept_also_of_a_damaged_file(tmp_path: Path) -> None:
    trace = read_trace(DATA / "vit_eager.json.zst")
    assert trace.devices[0].name == "NVIDIA H200"
    assert (trace.record_flags["record_shapes"], trace.record_flags["with_stack"]) == (True, False)
    path = write_trace(tmp_path, [make_kernel(0, 1), make_kernel(2, 3)], tracekit={"form": "eager"})
    assert read_trace(path).metadata == {"form": "eager"}
    path.write_text(path.read_text().replace('"ts": 2', '"ts": NaN'))
    assert read_trace(path).metadata == {"form": "eager"}


#: Of each: the categories of a kernel, a copy, a launching call and a waiting call, and the calls' names.
VENDORS = {
    "NVIDIA": ("kernel", "gpu_memcpy", "cuda_runtime", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize"),
    "CUDA driver": ("kernel", "gpu_memcpy", "cuda_driver", "cuLaunchKernelEx", "cuMemcpyAsync", "cuStreamSynchronize"),
    "AMD": ("kernel", "gpu_memcpy", "hip_runtime", "hipModuleLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize"),
    "AMD, newer": ("kernel", "gpu_memcpy", "runtime", "hipExtLaunchKernel", "hipMemcpyAsync", "hipStreamSynchronize"),
    "Intel": ("kernel", "gpu_memcpy", "xpu_runtime", "urEnqueueKernelLaunch", "urEnqueueUSMMemcpy", "urQueueFinish"),
    "Meta MTIA": ("mtia_ccp_events", "gpu_memcpy", "mtia_runtime", "runFunction", "copy", "mtiaSynchronize"),
    "Enflame": ("kernel", "GCU_MEMCPY", "gcu_runtime", "topsLaunchKernel", "topsMemcpyAsync", "topsStreamSynchronize"),
    "other": ("kernel", "gpu_memcpy", "privateuse1_runtime", "launch", "copy", "deviceSynchronize"),
    "torch 1.8": ("Kernel", "Memcpy", "Runtime", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize"),
}


def trace_of(vendor: str) -> list[Json]:
    kernel, copy, call, launch, copying, waiting = VENDORS[vendor]
    operator = "Operator" if kernel == "Kernel" else "cpu_op"
    device = {"device": 0, "stream": 7}
    return [
        make_event(operator, 0, 30, name="aten::add"),
        {**make_event(call, 2, 4, name=launch), "args": {"correlation": 1, "external id": 5}},
        {**make_event(call, 6, 8, name=copying), "args": {"correlation": 2}},
        make_event(call, 20, 29, name=waiting),
        {**make_event(kernel, 10, 14, name="add_kernel"), "pid": 0, "tid": 7, "args": {**device, "correlation": 1}},
        {**make_event(copy, 16, 18, name="Memcpy DtoH"), "pid": 0, "tid": 7, "args": {**device, "correlation": 2}},
        {**make_event(kernel, 25, 26, name="late"), "pid": 0, "tid": 7, "args": {**device, "correlation": 1}},
    ]


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_vendor_s_trace_is_understood(vendor: str, tmp_path: Path) -> None:
    found = analyze(make_trace(tmp_path, trace_of(vendor)))
    assert (found.kernels.count, found.copies.memcpy_count) == (2, 1)
    assert (found.launches.count, found.launches.unlinked_kernels) == (1, 0)
    assert (found.gpu.busy_us, found.gpu.idle_us) == (7, 9)
    assert [sync.count for sync in found.idle.syncs] == [1]


@pytest.mark.parametrize("base", [None, 1_700_000_000_000_000_000])
@pytest.mark.parametrize("whole", [True, False])
def test_times_of_any_origin_whole_or_not(tmp_path: Path, base: int | None, whole: bool) -> None:
    events = trace_of("NVIDIA")
    for event in events:
        event["ts"] = int(event["ts"] + 5e9) if whole else event["ts"] + 5e9 + 0.25
        event["dur"] = int(event["dur"]) if whole else event["dur"]
    top = {"baseTimeNanoseconds": base} if base else {}
    found = analyze(make_trace(tmp_path, events, schemaVersion=1, **top))
    assert (found.gpu.busy_us, found.gpu.idle_us) == (7, 9)


def test_beginnings_and_ends_are_events_too(tmp_path: Path) -> None:
    split: list[Json] = []
    for event in trace_of("NVIDIA"):
        rest = {key: value for key, value in event.items() if key not in ("dur", "ph", "args")}
        split.append({**rest, "ph": "B", "args": event.get("args", {})})
        split.append({"ph": "E", "ts": event["ts"] + event["dur"], "pid": event["pid"], "tid": event["tid"]})
    split.sort(key=lambda event: (event["ts"], event["ph"] == "B"))
    trace = make_trace(tmp_path, split)
    found = analyze(trace)
    assert (found.gpu.busy_us, found.gpu.idle_us) == (7, 9)
    assert trace.skipped == {}


def begun(at: float, name: str, thread: int = 1) -> Json:
    return {"ph": "B", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": at}


def ended(at: float, name: str | None = None, thread: int = 1, **more: str) -> Json:
    event: Json = {"ph": "E", "pid": 1, "tid": thread, "ts": at, **more}
    return event if name is None else {**event, "name": name}


ENDLESS, BEGINNINGLESS = "begun and never ended", "an end without a beginning"


@pytest.mark.parametrize(
    ("events", "lengths", "skipped"),
    [
        # The last that began ends first.
        (
            [begun(0, "a"), begun(1, "b"), begun(1, "c", thread=2), ended(3), ended(9), ended(5, thread=2)],
            *({"a": 9, "b": 2, "c": 4}, {}),
        ),
        # An end with a name belongs to the last beginning of that name; what overlaps instead of nesting is counted,
        # not given another's length.
        (
            [begun(0, "a"), begun(5, "b"), ended(10, "a"), ended(15, "b", cat="cpu_op")],
            *({"a": 10}, {ENDLESS: 1, BEGINNINGLESS: 1}),
        ),
        # It need not name its category; one that is of no use is passed over, as its beginning is.
        ([make_op(0, 9, name="a"), ended(5)], {"a": 9}, {BEGINNINGLESS: 1}),
        ([make_op(0, 9, name="a"), ended(5, cat="ac2g"), {**begun(6, "b"), "cat": "ac2g"}, ended(7)], {"a": 9}, {}),
        # What began in one piece of the file may end in another.
        (
            [begun(0, "a"), *(make_op(2, 3, name="x" * 100) for _ in range(7000)), ended(9, "a")],
            {"a": 9, "x" * 100: 1},
            {},
        ),
    ],
)
def test_beginnings_and_ends_of_a_thread_belong_together_as_brackets_do(
    tmp_path: Path, events: list[Json], lengths: dict[str, float], skipped: dict[str, int]
) -> None:
    trace = make_trace(tmp_path, events)
    host = trace.host.select("name", us=(pl.col("end_ns") - pl.col("start_ns")) / 1e3)
    assert (dict(host.iter_rows()), trace.skipped) == (lengths, skipped)
    assert len(events) < 1000 or (tmp_path / "trace.json").stat().st_size > 1 << 20


def test_ends_of_what_never_began_are_passed_over_in_no_time_to_speak_of(tmp_path: Path) -> None:
    count = 30_000
    events = [*(begun(at, "a") for at in range(count)), *(ended(count + at, "b") for at in range(count))]
    seconds = time.process_time()
    trace = make_trace(tmp_path, events)
    assert trace.skipped["begun and never ended"] == count
    # A second for each thousand beginnings that were looked through for each end.
    assert time.process_time() - seconds < 10


def inputs_of(folder: Path, events: list[Json], *damage: tuple[str, str]) -> list[tuple[str | None, ...]]:
    """Of each operator, as read with shapes from a file whose text was damaged."""
    path = write_trace(folder, events)
    for old, new in damage:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    trace = read_trace(path, shapes=True)
    assert (trace.skipped == {}) or damage
    assert trace.host.columns == ["kind", "name", "start_ns", "end_ns", "thread", *INPUT_COLUMNS]
    return trace.host.select(INPUT_COLUMNS).rows()


TOLD: Json = {"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"]}
VALUED: Json = {**TOLD, "Concrete Inputs": ["", "[2, 2]"], "Input Strides": [[3, 1], []]}
DIMS, TYPES, VALUES, STRIDES = "[[2, 3], []]", '["float", "Scalar"]', '["", "[2, 2]"]', "[[3, 1], []]"


def test_operators_have_their_inputs_as_the_file_writes_them(tmp_path: Path) -> None:
    found = inputs_of(tmp_path, [make_op(0, 1, **TOLD), make_op(2, 3), make_kernel(4, 5)])
    assert found == [(DIMS, TYPES, None, None), (None,) * 4]


@pytest.mark.parametrize("name", ["aten::_scaled_dot_product_flash_attention", "aten::cudnn_convolution"])
def test_values_and_strides_are_kept_of_attention_and_convolutions_alone(tmp_path: Path, name: str) -> None:
    found = inputs_of(tmp_path, [make_op(0, 1, name=name, **VALUED), make_op(2, 3, **VALUED)])
    assert found == [(DIMS, TYPES, VALUES, STRIDES), (DIMS, TYPES, None, None)]


@pytest.mark.parametrize(
    ("strides", "kept"),
    [([[3, 0], []], True), ([[[0, 1], [1]], [1]], True), ([[0], [10]], True), ([[30, 1], [100]], False), ([], False)],
)
def test_strides_of_what_is_repeated_are_kept_of_any_operator(tmp_path: Path, strides: Json, kept: bool) -> None:
    (found,) = inputs_of(tmp_path, [make_op(0, 1, **{**VALUED, "Input Strides": strides})])
    assert found == (DIMS, TYPES, None, str(strides) if kept else None)


@pytest.mark.parametrize("dims", ["text", 7, None, {"a": 1}, True, 1.5])
def test_what_is_no_list_is_none(tmp_path: Path, dims: object) -> None:
    assert inputs_of(tmp_path, [make_op(0, 1, **{"Input Dims": dims})]) == [(None,) * 4]


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        # Cut off, behind an event without a time.
        ([('"ts": 2', '"ts": NaN'), ('"args": {"odd": 7.5}}]}', "")], 1),
        # A value that is no JSON, in the event itself.
        ([('"odd": 7.5', '"odd": NaN')], 2),
    ],
)
def test_in_a_damaged_file_what_is_left_has_its_inputs(
    tmp_path: Path, damage: list[tuple[str, str]], left: int
) -> None:
    events = [make_op(0, 1, name="aten::convolution", odd=7.5, **VALUED), make_op(2, 3, odd=7.5)]
    assert inputs_of(tmp_path, events, *damage) == [(DIMS, TYPES, VALUES, STRIDES), (None,) * 4][:left]


def test_all_else_is_read_alike() -> None:
    path = DATA / "vit_default.json.gz"
    plain, shaped = read_trace(path), read_trace(path, shapes=True)
    assert shaped.host.drop(INPUT_COLUMNS).equals(plain.host)
    assert shaped.activities.equals(plain.activities) and shaped.calls.equals(plain.calls)
    assert shaped.skipped == plain.skipped


def test_readings_with_and_without_shapes_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SMALLEST_BYTES", 0)
    path = write_trace(tmp_path, [make_op(0, 1, **{"Input Dims": [[2]]}), make_kernel(0, 1)])
    folder = tmp_path / "cache"
    plain, shaped = read_and_keep(path, folder), read_and_keep(path, folder, shapes=True)
    no_reading(monkeypatch)
    assert same(read_trace(path, cache_folder=folder), plain)
    assert same(read_trace(path, cache_folder=folder, shapes=True), shaped)
    assert plain.host.columns != shaped.host.columns
