import csv
import gzip
import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.runs import ROOT, assert_refused, invoke, make_run_folder
from tests.traces import DATA, make_call, make_kernel, make_op, make_span, recording, write_trace

from tracekit.analysis import analyze
from tracekit.analysis.listing import ACTIVITY_SCHEMA, GAP_SCHEMA, list_activities, list_idle
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.report.exports import GROUP_COLUMNS
from tracekit.tracefile.read import read_trace

FLUX = recording("flux_default")
WORK = "vit, full size, bfloat16, batch 1"
COMPILED = f"{WORK}, compiled (default, scope model)"
VIT = ROOT / "traces" / "h100-vit"
TWO = (DATA / "vit_eager.json.zst", DATA / "vit_default.json.gz")
run = partial(invoke, "export")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def unpacked(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def test_every_activity_of_the_window_is_a_line() -> None:
    rows = rows_of(run(FLUX, "--csv", "-").stdout)
    assert len([row for row in rows if row["kind"] == "kernel"]) == 2390
    assert sum(float(row["duration_us"]) for row in rows) > 97_000
    assert {row["launched_by"] for row in rows} >= {"cudaLaunchKernel", "cuLaunchKernel"}


def test_a_line_says_its_step_and_its_launch(tmp_path: Path) -> None:
    events = [
        make_span(0, 10, name="ProfilerStep#4"),
        make_call(1, 2, correlation=1),
        make_kernel(3, 5, name="flash_fwd", correlation=1),
        make_kernel(50, 60),
    ]
    (row,) = rows_of(run(write_trace(tmp_path, events), "--csv", "-").stdout)
    assert (row["step"], row["family"], row["start_us"], row["duration_us"]) == ("4", "attention", "3.000", "2.000")
    assert (row["launched_by"], row["launched_us"]) == ("cudaLaunchKernel", "1.000")


HOSTILE = ['a "quoted", name', "two\nlines", "<script>alert(1)</script>", "x" * 100_000, "\x1b[31mred", "🎉, é", "a\\b"]


def test_names_of_any_kind_survive(tmp_path: Path) -> None:
    kernels = [make_kernel(i, i + 0.5, name=name) for i, name in enumerate(HOSTILE)]
    out = tmp_path / "k.csv"
    assert run(write_trace(tmp_path, kernels), "--csv", out).exit_code == 0
    assert [row["name"] for row in rows_of(out.read_text(encoding="utf-8"))] == HOSTILE


FORMULAS = ("=HYPERLINK(1)", "+1", "-1", "@x", "\tx", "\rx", "\nx", *"＝＋－＠﹦﹢﹣﹫−")
UNSEEN = ("\t=1", " =1", "\u3000＝1", "\ufeff=1", "\x01@x", "\xa0+1", "\u200b=1")


@pytest.mark.parametrize("name", [*FORMULAS, *UNSEEN])
def test_no_name_becomes_a_formula_in_a_spreadsheet(tmp_path: Path, name: str) -> None:
    (row,) = rows_of(run(write_trace(tmp_path, [make_kernel(0, 1, name=name)]), "--csv", "-").stdout)
    assert row["name"] == "'" + name
    events = [make_call(0, 1, name=name, correlation=1), make_kernel(0, 1, correlation=1)]
    (row,) = rows_of(run(write_trace(tmp_path, events), "--csv", "-").stdout)
    assert row["launched_by"] == "'" + name


def test_for_hta_launch_events_have_no_stream_and_steps_have_its_name(tmp_path: Path) -> None:
    events = [
        make_span(0, 10),
        make_op(1, 2, name="triton_poi_fused_0", stream=7, kernel_file="x.py"),
        make_call(1, 2, correlation=1),
        make_kernel(3, 4, correlation=1),
    ]
    result = run(write_trace(tmp_path, events), "--hta", tmp_path / "out")
    assert result.exit_code == 0
    written = unpacked(tmp_path / "out" / "rank0.pt.trace.json.gz")
    step, triton, _, kernel = written["traceEvents"]
    assert step["name"] == "ProfilerStep#0"
    assert triton["args"] == {"kernel_file": "x.py", "launched on stream": 7}
    assert kernel["args"]["stream"] == 7
    assert written["distributedInfo"] == {"rank": 0}


def test_a_damaged_trace_is_written_as_far_as_it_goes_and_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    whole = write_trace(tmp_path, [make_kernel(0, 1), make_kernel(2, 3)]).read_text()
    broken.write_text(whole[: whole.rindex("{")])
    result = run(broken, "--csv", "-")
    assert (result.exit_code, len(rows_of(result.stdout))) == (1, 1)
    assert "is damaged" in result.stderr


def test_the_trace_itself_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "rank0.pt.trace.json.gz"
    path.write_bytes(gzip.compress(write_trace(tmp_path, [make_kernel(0, 1)]).read_bytes()))
    before = path.read_bytes()
    assert_refused(run(path, "--hta", tmp_path), "would overwrite")
    assert path.read_bytes() == before
    assert run(path, "--hta", tmp_path, "--rank", 3).exit_code == 0
    assert (tmp_path / "rank3.pt.trace.json.gz").exists()


def test_kernels_of_every_age_and_vendor_are_gpu_work_for_hta(tmp_path: Path) -> None:
    kernels = [{**make_kernel(i, i + 0.5), "cat": cat} for i, cat in enumerate(["Kernel", "Memcpy", "mtia_ccp_events"])]
    assert run(write_trace(tmp_path, kernels), "--hta", tmp_path / "out").exit_code == 0
    written = unpacked(tmp_path / "out" / "rank0.pt.trace.json.gz")["traceEvents"]
    assert [each["cat"] for each in written] == ["kernel", "gpu_memcpy", "kernel"]
    assert [each["args"]["stream"] for each in written] == [7, 7, 7]


def test_only_the_steps_asked_for_are_listed(tmp_path: Path) -> None:
    events = [make_span(0, 10, name="ProfilerStep#1"), make_span(10, 20, name="ProfilerStep#2")]
    events += [make_kernel(1, 2), make_kernel(11, 12)]
    (row,) = rows_of(run(write_trace(tmp_path, events), "--csv", "-", "--steps", "2").stdout)
    assert row["step"] == "2"


def test_of_a_run_folder_hta_gets_the_light_recording_of_a_form_beside_tables(tmp_path: Path) -> None:
    folder, out = make_run_folder(tmp_path), tmp_path / "out"
    result = run(folder, "--hta", out, "--form", "eager", "--kernels", tmp_path / "kernels.csv")
    assert result.exit_code == 0, result.output
    written = unpacked(out / "rank0.pt.trace.json.gz")["traceEvents"]
    light = json.loads((folder / "eager-light.json").read_text())["traceEvents"]
    assert len(written) == len(light)
    names = [row["name"] for row in rows_of((tmp_path / "kernels.csv").read_text())]
    assert names == [each["name"] for each in light if each.get("cat") == "kernel"]
    # Unless asked for another, tables are of the compiled form.
    assert (len(names), len(rows_of(run(folder, "--kernels", "-").stdout))) == (4, 2)


def test_every_idle_gap_is_a_line_whose_causes_add_up() -> None:
    rows = rows_of(run(FLUX, "--gaps", "-").stdout)
    idle = analyze(read_trace(FLUX)).idle
    assert idle is not None
    assert len(rows) == idle.gap_count
    for row in rows:
        assert sum(float(row[f"{cause}_us"]) for cause in IDLE_CAUSES) == pytest.approx(
            float(row["duration_us"]), abs=0.01
        )
        assert float(row[f"{row['cause']}_us"]) == max(float(row[f"{cause}_us"]) for cause in IDLE_CAUSES)
    for each in idle.causes:
        assert sum(float(row[f"{each.cause}_us"]) for row in rows) == pytest.approx(each.us, abs=0.1)


def test_groups_add_up_to_the_gpu_time_of_both_sides() -> None:
    rows = rows_of(run(VIT, "--groups", "-").stdout)
    for side, form in (("a", "eager"), ("b", "compiled")):
        analysis = analyze(read_trace(VIT / f"{form}-light.json.zst"))
        assert analysis.kernels is not None
        assert analysis.copies is not None
        total = (analysis.kernels.total_us + analysis.copies.total_us) / 7
        assert sum(float(row[f"{side}_us"]) for row in rows) == pytest.approx(total, abs=0.1)
    (lost,) = [row for row in rows if row["kind"] == "defused"]
    assert (lost["group"], float(lost["a_count"]), float(lost["b_count"])) == ("1", 24, 84)
    assert "attention" in lost["where"]


@pytest.mark.parametrize("places", [(VIT,), TWO, "hand-made"])
def test_a_parquet_file_has_numbers_and_the_same_columns_whatever_is_known(places: Any, tmp_path: Path) -> None:
    if places == "hand-made":
        # Nothing says what bytes its kernels move.
        places = (make_run_folder(tmp_path),)
    tables = {}
    for table in ("kernels", "gaps", "groups"):
        out = tmp_path / f"{table}.parquet"
        assert run(*(places if table == "groups" else places[:1]), f"--{table}", out).exit_code == 0
        tables[table] = pl.read_parquet(out)
        schema = tables[table].schema
        assert pl.Null not in schema.values()
        assert all(schema[name] == pl.Float64 for name in schema if name.endswith("_us"))
    schema = dict(tables["groups"].schema)
    assert (schema["a_bytes"], schema["b_bytes"], schema["group"]) == (pl.Float64, pl.Float64, pl.Int64)
    assert list(schema) == list(GROUP_COLUMNS)
    if places == (VIT,):
        assert min(frame.height for frame in tables.values()) > 10
        # Nothing in the place of what is not known.
        assert tables["kernels"].filter(kind="kernel")["bytes"].null_count() > 0


def test_a_benchmark_has_the_entries_that_actions_read() -> None:
    entries = json.loads(run(VIT, "--benchmark", "-").stdout)
    by_name = {each["name"]: each for each in entries}
    assert len(by_name) == len(entries)
    assert all(
        {"name", "unit", "value"} <= set(each) <= {"name", "unit", "value", "range", "extra"} for each in entries
    )
    assert all(isinstance(each["value"], float | int) for each in entries)
    assert by_name[f"{COMPILED}: call"]["value"] == pytest.approx(4.093708)
    assert by_name[f"{COMPILED}: call"]["unit"] == "ms"
    assert by_name[f"{COMPILED}: call"]["range"].startswith("± 0.2")
    assert by_name[f"{COMPILED}: kernels"]["value"] == 200
    assert by_name[f"{WORK}, eager: call"]["extra"].startswith("NVIDIA H100 80GB HBM3\ntorch 2.11")
    assert f"{WORK}, eager: compiling" not in by_name
    others = json.loads(run(VIT.with_name("h100-vit-reduce-overhead"), "--benchmark", "-").stdout)
    assert f"{WORK}, compiled (reduce-overhead, scope model): call" in {each["name"] for each in others}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FLUX,), "pass --hta FOLDER"),
        (("broken.json", "--hta", "out"), "is damaged or"),
        (("cut-off", "--kernels", "-"), "cut-off/run.json cannot be read"),
        (("cut-off", "--groups", "-"), "cut-off/run.json cannot be read"),
        (("nowhere.json", "--csv", "-"), "check the path"),
        ((VIT, VIT, "--kernels", "-"), "--kernels takes one trace: leave"),
        ((FLUX, FLUX, "--hta", "out"), "--hta takes one trace: leave"),
        ((VIT, "--groups", "-", "--form", "eager"), "--kernels, --gaps, --hta and ranks: leave it out"),
        ((VIT, "--groups", "-", "--rank", "1"), "--hta: leave it out"),
        ((FLUX, "--hta", "out", "--window", "whole"), "tables: leave it out"),
        ((FLUX, "--hta", "out", "--steps", "1"), "tables: leave it out"),
        ((FLUX, "--hta", "out", "--form", "eager"), "leave --form out"),
        ((FLUX, "--kernels", "-", "--form", "eager"), "leave --form out"),
        ((VIT, "--gaps", "-", "--groups", "-"), "takes one table"),
        ((FLUX, "--groups", "-"), "one trace"),
    ],
)
def test_what_cannot_be_exported_or_would_be_ignored_is_refused(
    arguments: tuple[object, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (make_run_folder(tmp_path, "cut-off") / "run.json").write_text("")
    (tmp_path / "broken.json").write_text('{"traceEvents": [{"ph": "X"')
    assert_refused(run(*arguments), message)


@pytest.mark.parametrize("table", ["--kernels", "--gaps"])
@pytest.mark.parametrize("window", [[], ["--window", "whole"], ["--window", "steps"], ["--steps", "0"]])
def test_tables_of_a_trace_without_gpu_work_have_columns_and_no_rows(
    tmp_path: Path, table: str, window: list[str]
) -> None:
    path = write_trace(tmp_path, [make_span(0, 10), make_op(1, 5), make_call(2, 3)], tracekit={"device": "cpu"})
    result = run(path, table, "-", *window)
    assert (result.exit_code, "has no GPU activity" in result.stderr) == (0, True)
    names = ACTIVITY_SCHEMA if table == "--kernels" else GAP_SCHEMA
    assert result.stdout == ",".join(names) + "\n"


def test_columns_are_the_same_with_rows_and_without() -> None:
    trace = read_trace(FLUX)
    assert list_activities(trace).schema == pl.Schema(ACTIVITY_SCHEMA)
    assert list_idle(trace).schema == pl.Schema(GAP_SCHEMA)


@pytest.mark.hta
@pytest.mark.parametrize("name", ["flux_default", "vit_eager", "vit_reduce-overhead"])
def test_hta_counts_what_we_count(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An independent referee, with its rounding to whole microseconds switched off."""
    monkeypatch.setenv("HTA_DISABLE_NS_ROUNDING", "1")
    hta = pytest.importorskip("hta.trace_analysis")

    path = recording(name)
    assert run(path, "--hta", tmp_path).exit_code == 0
    ours = analyze(read_trace(path), window="whole")
    theirs = hta.TraceAnalysis(trace_files={0: str(tmp_path / "rank0.pt.trace.json.gz")}, trace_dir=str(tmp_path))
    told = theirs.get_temporal_breakdown(visualize=False).iloc[0]
    assert ours.gpu is not None
    assert told["idle_time(us)"] == pytest.approx(ours.gpu.idle_us, abs=1)
    assert told["kernel_time(us)"] == pytest.approx(ours.gpu.span_us, abs=1)
    idle = theirs.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    if ours.devices[0].streams == 1:
        assert idle["idle_time"].sum() == pytest.approx(ours.gpu.idle_us, rel=0.001)
