import html
import json
import re
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runs import ROOT, assert_refused, edited, interrupted, invoke, make_run_folder
from tests.report.showing import unpacked
from tests.traces import DATA, make_kernel, make_op, recording, write_trace

VIT = (DATA / "vit_eager.json.zst", DATA / "vit_default.json.gz")
GRAPH = DATA / "vit_reduce-overhead.json.gz"
RUNS = ROOT / "traces"
run = partial(invoke, "compare")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compare_json(*arguments: object) -> Any:
    result = run(*arguments, "--json", "-")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def labels(comparison: Any) -> list[str]:
    return [comparison[side]["label"] for side in "ab"]


def test_two_trace_files_are_compared_and_reported_without_a_verdict(folder: Path) -> None:
    result = run(*VIT)
    assert result.exit_code == 0
    assert "Report reports/vit_eager-vs-vit_default.html" in result.stdout
    page, twin = ((folder / f"reports/vit_eager-vs-vit_default.{kind}").read_text() for kind in ("html", "md"))
    assert page.startswith("<!") and twin.startswith("# ")
    # What shows that a library's kernel was exchanged.
    exchanged = "2 matmuls in float32, before in bfloat16"
    assert exchanged in unpacked(page) and exchanged in twin
    comparison = compare_json(*VIT)
    assert (comparison["schema"], comparison["verdict"]["result"]) == ("tracekit.comparison/1", "not_timed")
    assert labels(comparison) == ["vit_eager", "vit_default"]
    # Groups are matched by operators and shapes, and no activity is listed one by one.
    largest = comparison["groups"][0]
    assert (largest["kind"], largest["repeats"], largest["how"]) == ("defused", 24, "anchors")
    assert comparison["a"]["operators"] == "own" and "sequence" not in comparison["a"]


def test_the_page_of_a_run_ends_with_the_command_that_measured_it(folder: Path) -> None:
    made = make_run_folder(folder)
    assert run(made, "--out", "page.html").exit_code == 0
    measured = json.loads((made / "run.json").read_text())["command"]
    assert re.search(rf"\n# .*\n{re.escape(measured)}\n# .*\n", (folder / "page.md").read_text())
    page = (folder / "page.html").read_text()
    assert 'id="command"' in page
    # Each option is in an element of its own, that keeps it on one line.
    assert re.search(rf"# .*\n{re.escape(html.escape(measured))}\n# .*\n", re.sub("</?span[^>]*>", "", page))


def test_the_next_command_shows_both_sides_as_one_trace(folder: Path) -> None:
    def told(*arguments: object) -> str:
        return run(*arguments).stdout.replace("\n", " ")

    made = make_run_folder(folder)
    assert f"Timeline: {shlex.join(['tracekit', 'open', *map(str, VIT)])} " in told(*VIT)
    assert f"Timeline: tracekit open {made} " in told(made)
    assert f"Timeline: tracekit open {made / 'compiled-light.json'} " in told(made, "--form-a", "eager")


def test_a_run_alone_is_its_eager_form_against_its_compiled_one(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder))
    assert labels(comparison) == ["eager", "compiled"]
    assert comparison["verdict"]["result"] == "faster"
    assert comparison["deltas"]["kernels"] == -1
    assert (comparison["a"]["rich"]["window"]["steps"], comparison["a"]["analysis"]["window"]["steps"]) == (1, 2)
    assert (folder / "reports/flux-compiled.html").is_file()
    turned = compare_json(folder / "flux-compiled", "--form-a", "compiled", "--form-b", "eager", "--out", "x.html")
    assert turned["verdict"]["result"] == "slower"
    apart = compare_json(folder / "flux-compiled", make_run_folder(folder, "other"))
    in_alternation = [
        "not_alternated" in {each["code"] for each in told["notes"]} for told in (comparison, turned, apart)
    ]
    assert in_alternation == [False, False, True], "the calls of one run are timed in alternation"


@pytest.mark.parametrize(("window", "recording"), [("denoise", "rich"), ("tracekit.step#1", "light")])
def test_a_window_is_read_in_the_recording_that_has_it(folder: Path, window: str, recording: str) -> None:
    comparison = compare_json(make_run_folder(folder), "--window", window)
    assert comparison["a"]["path"].endswith(f"eager-{recording}.json")
    told = comparison["a"]["analysis"]["window"]
    assert told["steps"] == 1 and (recording == "light" or (told["kind"], comparison["a"]["rich"]) == ("span", None))


def test_what_two_sides_have_in_common_or_differ_in_is_said(folder: Path) -> None:
    one, other = make_run_folder(folder), make_run_folder(folder, "vit-compiled")
    with edited(other) as manifest:
        manifest["settings"]["workload"] = "vit"
    for arguments, *said in (
        ((VIT[0], VIT[0]), "the same trace"),
        ((one, other), "different models (flux and vit): no verdict."),
        ((one, VIT[0], "--form-a", "eager"), "A: flux · full size", "; B: "),
    ):
        result = run(*arguments)
        told = " ".join(result.stdout.split())
        assert (result.exit_code, [words for words in said if words not in told]) == (0, []), told


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("flux-compiled", "flux-compiled-regional"), ["flux-compiled", "flux-compiled-regional compiled"]),
        (("flux-compiled", "before"), ["flux-compiled", "before compiled"]),
        (("before", "flux-compiled", "--form-a", "eager"), ["before eager", "flux-compiled"]),
        (("before", VIT[0], "--form-a", "eager"), ["before eager", "vit_eager"]),
        (("old/trace.json", "new/trace.json"), ["old-trace", "new-trace"]),
    ],
)
def test_sides_are_named_by_what_differs(folder: Path, arguments: tuple[object, ...], names: list[str]) -> None:
    for name in ("flux-compiled", "flux-compiled-regional", "before"):
        make_run_folder(folder, name)
    for name in ("old", "new"):
        (folder / name).mkdir()
        write_trace(folder / name, [make_kernel(0, 5)]).rename(folder / name / "trace.json")
    assert labels(compare_json(*arguments)) == names


def test_a_step_is_not_subtracted_from_a_whole_recording(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder), VIT[0], "--form-a", "eager")
    assert set(comparison["deltas"].values()) == {None}
    assert comparison["waterfall"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("traces", VIT[0]), 1, "it contains traces/flux-compiled"),
        (("nowhere.json", VIT[0], "--json", "."), 1, "is a folder"),
        (("nope",), 1, "check the path"),
        (("nope", "--gate", "kernels<=+0"), 1, "check the path"),
        ((VIT[0],), 1, "one trace"),
        (("lost",), 1, "pass two traces, two recordings, or a run folder"),
        (("cut-off",), 1, "cut-off/run.json cannot be read (Input data was truncated); record the run again"),
        (("flux-eager",), 1, "has no compiled variant, only eager"),
        ((VIT[0], "nowhere.json"), 1, "nowhere.json"),
        ((*VIT, "--form-a", "eager"), 1, "leave --form out"),
        ((VIT[0], GRAPH, "--ops", recording("flux_default")), 1, "vit_reduce-overhead"),
        ((RUNS / "h100-vit", RUNS / "h100-qwen2.5-vl-decode", "--gate", "kernels<=+0"), 1, "--gate"),
        (("traces/flux-compiled", "--inconclusive", "fail"), 2, "--gate"),
        (("traces/flux-compiled", "--out", ""), 2, "--out"),
        (("traces/flux-compiled", "--out", "x", "--html", "y"), 1, "leave --out out"),
        (("--html", VIT[0], "traces/flux-compiled"), 1, "put --html last"),
    ],
)
def test_what_cannot_be_compared_is_refused_and_nothing_is_written(
    folder: Path, arguments: tuple[object, ...], code: int, message: str
) -> None:
    make_run_folder(folder / "traces")
    make_run_folder(folder, "flux-eager", forms=("eager",))
    (make_run_folder(folder, "lost") / "run.json").unlink()
    (make_run_folder(folder, "cut-off") / "run.json").write_text("")
    result = run(*arguments)
    assert (result.exit_code, message in result.stderr) == (code, True), result.output
    assert not (folder / "reports").exists()


@pytest.mark.parametrize(
    ("option", "place", "page"),
    [
        ("--html", "mine", "mine/vit_eager-vs-vit_default"),
        ("--html", "x/mine.html", "x/mine"),
        ("--out", "x/mine.html", "x/mine"),
        ("--html", None, "reports/vit_eager-vs-vit_default"),
    ],
)
def test_html_is_a_folder_or_a_page(option: str, place: str | None, page: str, folder: Path) -> None:
    assert run(*VIT, option, *([place] if place else [])).exit_code == 0
    assert (folder / f"{page}.html").is_file()
    assert (folder / f"{page}.md").is_file()


def test_damage_of_the_rich_recording_is_not_said_to_be_the_light_one_s(folder: Path) -> None:
    place = make_run_folder(folder)
    (rich,) = place.glob("compiled-rich.*")
    rich.write_bytes(rich.read_bytes()[:-20])
    result = run(place)
    assert result.exit_code == 1
    assert f"error: {place} is damaged: in the full trace: " in result.stderr


def test_what_is_read_is_never_overwritten(folder: Path) -> None:
    traces = [write_trace(folder, [make_kernel(0, 5)]).rename(folder / f"{name}.json") for name in ("a", "b")]
    made = make_run_folder(folder)
    for places, read in ((traces, traces[1]), ([made], made / "run.json")):
        before = read.read_bytes()
        assert_refused(run(*places, "--json", read), "would overwrite")
        assert_refused(run(*places, "--json", "-q"), "--json -q")
        assert_refused(run(*places, "--out", "-q"), "--out -q")
        assert read.read_bytes() == before
    assert_refused(run(made, made, "--gate", "wall<=+3%"), "twice")


def test_a_report_of_an_interrupted_run_says_so(folder: Path) -> None:
    assert run(interrupted(make_run_folder(folder))).exit_code == 0
    assert "run was interrupted" in (folder / "reports/flux-compiled.incomplete.md").read_text()


def test_a_call_s_time_is_called_one_call_s_beside_a_whole_recording(folder: Path) -> None:
    assert run(make_run_folder(folder), "--window", "whole").exit_code == 0
    told = (folder / "reports/flux-compiled.md").read_text()
    assert "Wall time, median call" in told
    assert "for want of unprofiled times" not in told
    assert "No steps are marked" not in told


def test_a_cuda_graph_borrows_operators_from_the_trace_that_is_given_for_it() -> None:
    assert compare_json(VIT[0], GRAPH)["b"]["operators"] == "none"
    lent = compare_json(VIT[0], GRAPH, "--ops", VIT[1])
    assert (lent["a"]["operators"], lent["b"]["operators"]) == ("own", "lent")
    assert lent["groups"][0]["kind"] == "defused"


def test_a_trace_without_operators_has_none_to_lend(folder: Path) -> None:
    assert_refused(run(*VIT, "--ops", write_trace(folder, [make_kernel(0, 5)])), "--ops")


def test_the_light_recording_of_a_run_takes_its_operators_from_the_rich_one(folder: Path) -> None:
    place = make_run_folder(folder)
    with edited(place / "eager-rich.json") as told:
        told["traceEvents"] += [make_op(5, 200, name="aten::gelu", **{"Input Dims": [[8]], "Input type": ["float"]})]
    comparison = compare_json(place)
    assert (comparison["a"]["operators"], comparison["b"]["operators"]) == ("rich", "none")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--gate", "kernels<=+0"), 0),
        (("--gate", "wall<=+3%", "--gate", "kernels<=-5"), 3),
        (("--gate", "recompiles<=+0"), 4),
        (("--gate", "recompiles<=+0", "--inconclusive", "pass"), 0),
        (("--gate", "recompiles<=+0", "--inconclusive", "fail"), 3),
        (("--gate", "recompiles<0"), 2),
        (("--gate", "kernels<=+0", "--gate", ""), 2),
        (("--gate", "breaks<=0"), 0),
    ],
)
def test_a_gate_ends_with_its_outcome(folder: Path, options: tuple[str, ...], code: int) -> None:
    result = run(make_run_folder(folder), *options)
    assert result.exit_code == code, result.output
    if code == 2:
        assert "Invalid value for '--gate'" in result.stderr
    else:
        # The report is written whatever comes of the gate.
        assert (folder / "reports/flux-compiled.html").is_file()
        assert "Gate: " in (folder / "reports/flux-compiled.md").read_text()


def changed(folder: Path, **settings: object) -> Path:
    with edited(folder) as told:
        told["settings"].update(settings)
    return folder


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    modes = ("default", "reduce-overhead", "max-autotune")
    return [changed(make_run_folder(tmp_path, f"flux-{mode}"), mode=mode) for mode in modes]


def test_three_runs_stand_side_by_side_in_a_page_its_twin_and_json(three: list[Path], folder: Path) -> None:
    result = run(*three, "--json", "-")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["schema"] == "tracekit.comparisons/1"
    assert told["names"] == ["default", "reduce-overhead", "max-autotune"]
    assert [each["verdict"]["speedup"] for each in told["comparisons"]] == [pytest.approx(2)] * 3
    assert " default " in result.stderr
    place = folder / "reports" / "flux-default-and-2-more.html"
    assert "C: reduce-overhead" in place.read_text()
    assert "Speed-up" in place.with_suffix(".md").read_text()


def test_what_cannot_stand_side_by_side_is_refused(three: list[Path], tmp_path: Path) -> None:
    other = changed(make_run_folder(tmp_path, "other"), batch_size=8)
    broken = interrupted(make_run_folder(tmp_path, "broken"))
    for arguments, message in (
        ((*three[:2], other), "differ in batch size"),
        ((*three, VIT[0]), "tracekit profile ... --compiled"),
        ((*three, make_run_folder(tmp_path, "eager-only", forms=("eager",))), "tracekit profile ... --compiled"),
        ((*three, three[0]), "twice"),
        ((*three, broken), "was interrupted"),
        ((*three, "--json", tmp_path / "x.html"), "would both be written to"),
    ):
        assert_refused(run(*arguments, "--out", tmp_path / "x.html"), message)
        assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("option", [("--gate", "wall<=+3%"), ("--form-a", "eager"), ("--ops", "x.json")])
def test_what_is_asked_of_two_sides_is_not_asked_of_three(three: list[Path], option: tuple[str, str]) -> None:
    result = run(*three, *option)
    assert (result.exit_code, option[0] in result.stderr) == (2, True)


def test_runs_of_one_folder_name_are_told_apart_by_the_folders_they_lie_in(tmp_path: Path) -> None:
    runs = [make_run_folder(tmp_path / name, "vit") for name in ("before", "after", "later")]
    result = run(*runs, "--out", tmp_path / "x.html", "--json", "-")
    assert json.loads(result.stdout)["names"] == ["before/vit", "after/vit", "later/vit"]


def test_a_folder_of_ranks_is_no_side_but_one_rank_of_it_is(folder: Path) -> None:
    ranks = DATA / "ranks"
    assert_refused(run(ranks), "tracekit ranks")
    assert_refused(run(ranks, ranks), "tracekit ranks")
    comparison = compare_json(ranks, DATA / "ranks" / "tp_reduce-overhead.rank1.json.gz", "--rank", 0)
    told = [comparison[side]["analysis"]["communication"]["rank"] for side in "ab"]
    assert told == [0, 1]
    assert [note["code"] for note in comparison["notes"] if note["grave"]] == ["communication_not_judged"]
    assert_refused(run(ranks, "--rank", 0), "second one")
