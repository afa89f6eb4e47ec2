from __future__ import annotations

import gzip
import html
import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.runs import make_run_folder, tracekit
from tests.traces import DATA, make_kernel, make_op, write_trace

from tracekit.cli.main import main

VIT = (DATA / "vit_eager.json.gz", DATA / "vit_default.json.gz")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def compare_json(*arguments: object) -> dict[str, object]:
    result = run(*arguments, "--json", "-")
    assert result.exit_code == 0, result.output
    comparison: dict[str, object] = json.loads(result.stdout)
    return comparison


def labels(comparison: dict[str, object]) -> list[str]:
    return [comparison[side]["label"] for side in "ab"]  # type: ignore[index]


def test_two_trace_files_are_compared_and_reported(folder: Path) -> None:
    result = run(*VIT)
    assert result.exit_code == 0
    assert "written: reports/vit_eager-vs-vit_default.html" in result.stdout
    assert (folder / "reports/vit_eager-vs-vit_default.html").read_text().startswith("<!")
    assert (folder / "reports/vit_eager-vs-vit_default.md").read_text().startswith("# ")


def test_the_page_of_a_run_ends_with_the_command_that_measured_it(folder: Path) -> None:
    made = make_run_folder(folder)
    assert run(made, "--out", "page.html").exit_code == 0
    measured = json.loads((made / "run.json").read_text())["command"]
    assert f"# measures it\n{measured}\n# makes this page\n" in (folder / "page.md").read_text()
    page = (folder / "page.html").read_text()
    assert "The commands that measured it and make this page" in page
    assert f"# measures it\n{html.escape(measured)}\n# makes this page\n" in page


def test_the_next_command_shows_both_sides_as_one_trace(folder: Path) -> None:
    def told(*arguments: object) -> str:
        # Long commands are broken, with a backslash between words.
        return "".join(run(*arguments).stdout.replace("\\\n", "").split())

    made = make_run_folder(folder)
    assert f"tracekitopen{VIT[0]}{VIT[1]}written" in told(*VIT)
    assert f"tracekitopen{made}written" in told(made)
    assert f"tracekitopen{made / 'eager-light.json'}" in told(made, "--form-a", "eager")


def test_traces_alone_give_no_verdict() -> None:
    comparison = compare_json(*VIT)
    assert comparison["schema"] == "tracekit.comparison/1"
    assert comparison["verdict"]["result"] == "not_timed"  # type: ignore[index]
    assert labels(comparison) == ["vit_eager", "vit_default"]


def test_a_run_alone_is_its_eager_form_against_its_compiled_one(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder))
    assert labels(comparison) == ["eager", "compiled"]
    assert comparison["verdict"]["result"] == "faster"  # type: ignore[index]
    assert comparison["deltas"]["kernels"] == -1  # type: ignore[index]
    assert (folder / "reports/flux-compiled.html").is_file()


def test_the_calls_of_one_run_count_as_timed_in_alternation(folder: Path) -> None:
    alone = compare_json(make_run_folder(folder))
    apart = compare_json(folder / "flux-compiled", make_run_folder(folder, "other"))
    assert not any("alternation" in warning for warning in alone["warnings"])  # type: ignore[attr-defined]
    assert any("alternation" in warning for warning in apart["warnings"])  # type: ignore[attr-defined]


def test_the_forms_of_a_run_may_be_named_in_either_order(folder: Path) -> None:
    turned = compare_json(make_run_folder(folder), "--form-a", "compiled", "--form-b", "eager")
    assert turned["verdict"]["result"] == "slower"  # type: ignore[index]
    assert not any("alternation" in warning for warning in turned["warnings"])  # type: ignore[attr-defined]


def test_a_named_span_of_a_run_is_looked_up_in_its_rich_recordings(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder), "--window", "denoise")
    assert comparison["a"]["path"].endswith("eager-rich.json")  # type: ignore[index]
    assert comparison["a"]["analysis"]["window"]["kind"] == "span"  # type: ignore[index]
    assert comparison["a"]["rich"] is None  # type: ignore[index]


def test_a_recording_compared_with_itself_is_noticed() -> None:
    comparison = compare_json(VIT[0], VIT[0])
    assert any("the same recording" in warning for warning in comparison["warnings"])  # type: ignore[attr-defined]


def test_a_step_is_not_subtracted_from_a_whole_recording(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder), VIT[0], "--form-a", "eager")
    assert set(comparison["deltas"].values()) == {None}  # type: ignore[attr-defined]
    assert comparison["waterfall"] is None


def test_a_run_named_after_its_form_is_not_named_twice(folder: Path) -> None:
    other = make_run_folder(folder, "flux-compiled-regional")
    assert labels(compare_json(make_run_folder(folder), other)) == ["flux-compiled", "flux-compiled-regional compiled"]


def test_a_folder_of_runs_names_those_in_it(folder: Path) -> None:
    (folder / "traces").mkdir()
    make_run_folder(folder / "traces")
    result = run("traces", VIT[0])
    assert result.exit_code == 1
    assert "in it are traces/flux-compiled" in result.stderr


def test_a_folder_for_the_json_is_refused_before_anything_is_read(folder: Path) -> None:
    result = run("nowhere.json", VIT[0], "--json", folder)
    assert result.exit_code == 1
    assert "is a folder: name a file" in result.stderr


def test_two_runs_are_compared_by_their_compiled_forms(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder, "before"), make_run_folder(folder, "after"))
    assert labels(comparison) == ["before compiled", "after compiled"]
    assert (folder / "reports/before-compiled-vs-after-compiled.html").is_file()


def test_a_form_can_be_chosen_for_each_side(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder, "before"), make_run_folder(folder, "after"), "--form-a", "eager")
    assert labels(comparison) == ["before eager", "after compiled"]


def test_a_run_can_be_compared_with_a_trace_file(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder), VIT[0], "--form-a", "eager")
    assert labels(comparison) == ["flux-compiled eager", "vit_eager"]


def test_a_runs_rich_recording_is_read_too(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder))
    assert comparison["a"]["rich"]["window"]["steps"] == 1  # type: ignore[index]
    assert comparison["a"]["analysis"]["window"]["steps"] == 2  # type: ignore[index]


def test_files_of_one_name_are_told_apart_by_their_folders(folder: Path) -> None:
    for name in ("old", "new"):
        (folder / name).mkdir()
        write_trace(folder / name, [make_kernel(0, 5)]).rename(folder / name / "trace.json")
    assert labels(compare_json("old/trace.json", "new/trace.json")) == ["old-trace", "new-trace"]


@pytest.mark.parametrize(("out", "page"), [("mine", "mine/vit_eager-vs-vit_default"), ("x/mine.html", "x/mine")])
def test_out_is_a_folder_or_a_page(out: str, page: str, folder: Path) -> None:
    assert run(*VIT, "--out", out).exit_code == 0
    assert (folder / f"{page}.html").is_file()
    assert (folder / f"{page}.md").is_file()


def test_an_inconclusive_gate_says_what_it_was_asked_to_end_as(folder: Path) -> None:
    made = make_run_folder(folder)
    passes = run(made, "--gate", "recompiles<=+0", "--inconclusive", "pass", "--json", "gate.json")
    assert "Gate: inconclusive, which passes here (--inconclusive pass)" in passes.stdout
    gate = json.loads((folder / "gate.json").read_text())["gate"]
    assert (gate["outcome"], gate["ends_as"]) == ("inconclusive", "pass")
    fails = run(made, "--gate", "recompiles<=+0", "--inconclusive", "fail")
    assert "Gate: inconclusive, which fails here (--inconclusive fail)" in fails.stdout
    # Of a gate that was decided there is nothing to take.
    assert "--inconclusive" not in run(made, "--gate", "kernels<=+0", "--inconclusive", "pass").stdout


@pytest.mark.parametrize("options", [(), ("--gate", "kernels<=+0")])
def test_a_place_that_does_not_exist_is_said_not_to_be_there(options: tuple[str, ...]) -> None:
    result = run("nope", *options)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: nope is not there; check the path")


def test_one_trace_file_alone_is_asked_for_a_second() -> None:
    result = run(VIT[0])
    assert result.exit_code == 1
    assert "name a second one" in result.stderr


def test_a_folder_of_traces_that_lost_its_manifest_is_not_called_a_trace(folder: Path) -> None:
    place = make_run_folder(folder)
    (place / "run.json").unlink()
    result = run(place)
    assert result.exit_code == 1
    assert f"{place} is no run folder, it has no run.json: name two of its traces" in result.stderr


def test_a_sweep_s_folder_is_sent_to_the_command_that_shows_it(folder: Path) -> None:
    (folder / "swept" / "cells").mkdir(parents=True)
    (folder / "swept" / "sweep.json").write_text("{}")
    for asked in (("swept",), ("swept", VIT[0]), (VIT[0], "swept")):
        result = run(*asked)
        assert result.exit_code == 1
        assert "swept is a sweep's folder, which holds no traces: tracekit sweep --show swept" in result.stderr


def test_damage_of_the_rich_recording_is_not_said_to_be_the_light_one_s(folder: Path) -> None:
    place = make_run_folder(folder)
    (rich,) = place.glob("compiled-rich.*")
    rich.write_bytes(rich.read_bytes()[:-20])
    result = run(place)
    assert result.exit_code == 1
    assert f"error: {place} is damaged: in the rich recording: " in result.stderr


def test_runs_of_different_models_are_said_to_be_that(folder: Path) -> None:
    one = make_run_folder(folder)
    other = make_run_folder(folder, "vit-compiled")
    manifest = json.loads((other / "run.json").read_text())
    manifest["settings"]["workload"] = "vit"
    (other / "run.json").write_text(json.dumps(manifest))
    result = run(one, other)
    assert result.exit_code == 0
    assert "of different models (flux and vit): which is faster was not judged." in " ".join(result.stdout.split())


def test_a_run_without_a_compiled_form_cannot_be_compared_alone(folder: Path) -> None:
    result = run(make_run_folder(folder, "flux-eager", forms=("eager",)))
    assert result.exit_code == 1
    assert "has no compiled form: it holds eager" in result.stderr


def test_nothing_is_written_when_a_side_cannot_be_read(folder: Path) -> None:
    result = run(VIT[0], "nowhere.json")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: nowhere.json is not there")
    assert not (folder / "reports").exists()


def test_a_trace_has_no_forms(folder: Path) -> None:
    result = run(*VIT, "--form-a", "eager")
    assert result.exit_code == 1
    assert "has no forms" in result.stderr


def test_a_report_says_how_to_make_it_again(folder: Path) -> None:
    done = tracekit("compare", *VIT, folder=folder)
    assert done.returncode == 0
    text = (folder / "reports/vit_eager-vs-vit_default.md").read_text()
    assert shlex.join(["tracekit", "compare", *map(str, VIT)]) in text


def test_what_is_read_is_never_overwritten(folder: Path) -> None:
    for name in ("a", "b"):
        write_trace(folder, [make_kernel(0, 5)]).rename(folder / f"{name}.json")
    before = (folder / "b.json").read_bytes()
    result = run("a.json", "b.json", "--json", "b.json")
    assert (result.exit_code, "would overwrite what is read" in result.stderr) == (1, True)
    assert (folder / "b.json").read_bytes() == before
    runs = make_run_folder(folder)
    manifest = (runs / "run.json").read_bytes()
    assert run(runs, "--json", runs / "run.json").exit_code == 1
    assert (runs / "run.json").read_bytes() == manifest


def test_a_report_of_an_interrupted_run_says_so(folder: Path) -> None:
    runs = make_run_folder(folder).rename(folder / "flux-compiled.incomplete")
    manifest = runs / "run.json"
    manifest.write_text(manifest.read_text().replace('"complete"', '"incomplete"'))
    assert run(runs).exit_code == 0
    assert "was interrupted and is not whole" in (folder / "reports/flux-compiled.incomplete.md").read_text()


def test_sides_of_different_machines_are_both_named(folder: Path) -> None:
    told = " ".join(run(make_run_folder(folder), VIT[0], "--form-a", "eager").stdout.split())
    assert "A: flux · full size" in told
    assert "; B: NVIDIA H200" in told


def test_a_call_s_time_is_called_one_call_s_beside_a_whole_recording(folder: Path) -> None:
    assert run(make_run_folder(folder), "--window", "whole").exit_code == 0
    told = (folder / "reports/flux-compiled.md").read_text()
    assert "unprofiled median of one call" in told
    assert "for want of unprofiled times" not in told
    assert "No steps are marked" not in told


def test_a_step_that_the_rich_recording_lacks_is_read_in_the_light_one(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder), "--window", "tracekit.step#1")
    assert comparison["a"]["path"].endswith("eager-light.json")  # type: ignore[index]
    assert comparison["a"]["analysis"]["window"]["steps"] == 1  # type: ignore[index]


def test_groups_are_matched_by_operators_and_shapes_and_no_activity_is_listed_one_by_one() -> None:
    comparison = compare_json(*VIT)
    largest = comparison["groups"][0]  # type: ignore[index]
    assert (largest["kind"], largest["repeats"], largest["how"]) == ("defused", 24, "anchors")
    assert comparison["a"]["operators"] == "own"  # type: ignore[index]
    assert "sequence" not in comparison["a"]  # type: ignore[operator]


def test_a_cuda_graph_borrows_operators_from_the_trace_that_is_given_for_it() -> None:
    graph = DATA / "vit_reduce-overhead.json.gz"
    assert compare_json(VIT[0], graph)["b"]["operators"] == "none"  # type: ignore[index]
    lent = compare_json(VIT[0], graph, "--ops", VIT[1])
    assert (lent["a"]["operators"], lent["b"]["operators"]) == ("own", "lent")  # type: ignore[index]
    assert lent["groups"][0]["kind"] == "defused"  # type: ignore[index]


def test_a_trace_without_operators_has_none_to_lend(folder: Path) -> None:
    result = run(*VIT, "--ops", write_trace(folder, [make_kernel(0, 5)]))
    assert result.exit_code == 1
    assert "no operators to lend" in result.output


def test_the_light_recording_of_a_run_takes_its_operators_from_the_rich_one(folder: Path) -> None:
    place = make_run_folder(folder)
    rich = place / "eager-rich.json"
    told = json.loads(rich.read_text())
    told["traceEvents"] += [make_op(5, 200, name="aten::gelu", **{"Input Dims": [[8]], "Input type": ["float"]})]
    rich.write_text(json.dumps(told))
    comparison = compare_json(place)
    assert (comparison["a"]["operators"], comparison["b"]["operators"]) == ("rich", "none")  # type: ignore[index]


def test_the_report_says_what_shows_that_a_library_kernel_was_exchanged(folder: Path) -> None:
    assert run(*VIT).exit_code == 0
    report = (folder / "reports/vit_eager-vs-vit_default.md").read_text()
    assert "2 matrix products are computed in float32, before in bfloat16" in report
    page = (folder / "reports/vit_eager-vs-vit_default.html").read_text()
    assert "2 matrix products are computed in float32, before in bfloat16" in page


def test_a_lender_of_other_sizes_is_refused_with_the_reason(folder: Path) -> None:
    # The same model over a batch of four: the kernels have the same names.
    lender = json.loads(gzip.decompress(VIT[1].read_bytes()))
    for event in lender["traceEvents"]:
        dims = event.get("args", {}).get("Input Dims", [])
        event.get("args", {}).update({"Input Dims": [[4 * each[0], *each[1:]] if each else each for each in dims]})
    path = folder / "batch4.json"
    path.write_text(json.dumps(lender))
    result = run(VIT[0], DATA / "vit_reduce-overhead.json.gz", "--ops", path)
    assert result.exit_code == 1
    assert "products have other sizes than any of vit_eager's; pass one of the same sizes" in result.stderr


def test_a_lender_of_another_model_is_refused() -> None:
    result = run(VIT[0], DATA / "vit_reduce-overhead.json.gz", "--ops", DATA / "flux_default.json.gz")
    assert result.exit_code == 1
    assert "lends operators to few of vit_reduce-overhead's kernels" in result.stderr


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


def test_a_gate_on_other_work_is_refused_and_writes_no_report(folder: Path) -> None:
    traces = Path(__file__).parents[2] / "traces"
    result = run(traces / "h200-vit", traces / "h200-qwen2.5-vl-decode", "--gate", "kernels<=+0")
    assert result.exit_code == 1
    assert "--gate compares like with like" in result.stderr
    assert not list(folder.iterdir())


def test_an_empty_place_is_no_place(tmp_path: Path) -> None:
    told = run(make_run_folder(tmp_path), "--out", "")
    assert told.exit_code == 2
    assert "it names no place" in told.stderr


def test_the_json_does_not_replace_the_page_or_its_twin(folder: Path) -> None:
    made = make_run_folder(folder, "base")
    for name in ("base.html", "base.md"):
        result = run(made, "--json", f"reports/{name}")
        assert (result.exit_code, "would both be written to" in result.stderr) == (1, True)
        assert not (folder / "reports").exists()
    assert run(made, "--json", "reports/base.json").exit_code == 0
    assert (folder / "reports/base.html").is_file() and (folder / "reports/base.json").is_file()


def test_what_is_to_become_of_a_gate_is_not_said_without_one(folder: Path) -> None:
    result = run(make_run_folder(folder), "--inconclusive", "fail")
    assert (result.exit_code, "--inconclusive says what to do about a --gate" in result.stderr) == (2, True)


def changed(folder: Path, **settings: object) -> Path:
    manifest = folder / "run.json"
    told = json.loads(manifest.read_text())
    told["settings"].update(settings)
    manifest.write_text(json.dumps(told))
    return folder


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    modes = ("default", "reduce-overhead", "max-autotune")
    return [changed(make_run_folder(tmp_path, f"flux-{mode}"), mode=mode) for mode in modes]


def test_three_runs_stand_side_by_side_in_a_page_its_twin_and_json(three: list[Path], tmp_path: Path) -> None:
    result = run(*three, "--out", tmp_path / "forms.html", "--json", "-")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["schema"] == "tracekit.comparisons/1"
    assert told["names"] == ["default", "reduce-overhead", "max-autotune"]
    assert [each["verdict"]["speedup"] for each in told["comparisons"]] == [pytest.approx(2)] * 3
    assert "B: default" in result.stderr.replace("\n", "")
    page = (tmp_path / "forms.html").read_text()
    assert "C: reduce-overhead" in page
    assert "Speed-up over that" in (tmp_path / "forms.md").read_text()


def test_without_a_place_it_lies_among_the_reports(three: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(three[0].parent)
    assert run(*three).exit_code == 0
    assert (three[0].parent / "reports" / "flux-default-and-2-more.html").is_file()


def test_other_work_is_refused(three: list[Path], tmp_path: Path) -> None:
    result = run(*three[:2], changed(three[2], batch_size=8), "--out", tmp_path / "x.html")
    assert (result.exit_code, "differ in batch size" in result.stderr) == (1, True)
    assert not (tmp_path / "x.html").exists()


def test_a_trace_among_them_and_a_run_of_one_form_are_refused(three: list[Path], tmp_path: Path) -> None:
    eager = make_run_folder(tmp_path, "eager-only", forms=("eager",))
    for other in (DATA / "vit_eager.json.gz", eager):
        result = run(*three, other)
        assert (result.exit_code, "is no run with both forms" in result.stderr) == (1, True)


def test_a_run_that_is_named_twice_is_refused(three: list[Path]) -> None:
    result = run(*three, three[0])
    assert (result.exit_code, "is named twice" in result.stderr) == (1, True)


@pytest.mark.parametrize("option", [("--gate", "wall<=+3%"), ("--form-a", "eager"), ("--ops", "x.json")])
def test_what_is_asked_of_two_sides_is_not_asked_of_three(three: list[Path], option: tuple[str, str]) -> None:
    result = run(*three, *option)
    assert (result.exit_code, f"{option[0]} is for two sides" in result.stderr) == (2, True)


def test_an_interrupted_run_is_refused(three: list[Path]) -> None:
    manifest = three[1] / "run.json"
    manifest.write_text(manifest.read_text().replace('"complete"', '"incomplete"'))
    result = run(*three)
    assert (result.exit_code, "was interrupted and is not whole" in result.stderr) == (1, True)


def test_runs_of_one_folder_name_are_told_apart_by_the_folders_they_lie_in(tmp_path: Path) -> None:
    runs = [make_run_folder(tmp_path / name, "vit") for name in ("before", "after", "later")]
    result = run(*runs, "--out", tmp_path / "x.html", "--json", "-")
    assert json.loads(result.stdout)["names"] == ["before/vit", "after/vit", "later/vit"]


def test_the_json_of_several_does_not_replace_their_page(three: list[Path], tmp_path: Path) -> None:
    result = run(*three, "--out", tmp_path / "x.html", "--json", tmp_path / "x.html")
    assert (result.exit_code, "would both be written to" in result.stderr) == (1, True)
    assert not (tmp_path / "x.html").exists()
