"""`tracekit sweep` as it is typed; cells are run by stand-ins, but for one that is real."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.cli.runs import assert_refused, invoke
from tests.sweep.sweeps import Children, answered, eager_cell, make_result

from tracekit.measure.processes import Ended
from tracekit.model.cell import Source
from tracekit.shell import steering_variables
from tracekit.sweep.cells import CheckAnswer
from tracekit.sweep.running.folder import SweepFolder
from tracekit.sweep.suites import SUITES


@pytest.fixture
def children(children: Children) -> Children:
    children.no_memory = "reduce-overhead"
    return children


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Variables that steer torch are a part of what a sweep says, and the tests have some of their own.
    for name in steering_variables(os.environ):
        monkeypatch.delenv(name)
    with contextlib.chdir(tmp_path):
        yield


sweep = partial(invoke, "sweep")
PLACE, TWIN = Path("sweeps/vit"), Path("reports/sweep-vit.md")


def eager_file() -> Path:
    """That of a sweep's eager cell."""
    return next((PLACE / "cells").glob("*eager*.json"))


def test_one_process_imports_what_all_cells_need_and_the_look_at_them(children: Children) -> None:
    assert sweep("vit", "bert", "--mode", "eager").exit_code == 0
    assert len(children.more) == 3
    (server,) = {each["start"].__self__ for each in children.more}
    assert server._modules == ("tracekit.workloads.transformers_forward",)


def test_a_sweep_starts_its_ranks_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    assert_refused(sweep("vit"), "a launcher has started this process as rank 1")


def test_a_matrix_is_run_told_and_written(children: Children) -> None:
    result = sweep("vit", "--mode", "eager,default,reduce-overhead", "--batch-size", "1,4", "--iterations", "40")
    assert result.exit_code == 0, result.output
    assert len(children.jobs) == 6
    assert re.search(r"6 cells in sweeps/vit: 2 eager, 4 compiled.*; 6 to run", result.stderr)
    assert "vit batch 4, reduce-overhead of model: out of memory after" in result.stderr
    assert "2.00×" in result.stderr
    assert "2 of 2 configs faster" in result.stdout
    assert "out of memory" in TWIN.with_suffix(".html").read_text() and "2.00" in TWIN.read_text()
    asked = json.loads(Path("sweeps/vit/sweep.json").read_text())
    assert (asked["schema"], len(asked["cells"]), asked["calls"][0]["iterations"]) == ("tracekit.sweep-asked/1", 6, 40)


def test_the_same_command_runs_what_is_left_and_then_shows(children: Children) -> None:
    command = ("vit", "--batch-size", "1,4")
    children.interrupt_at = 0
    sweep(*command)
    assert_refused(sweep("--show", PLACE), "tracekit sweep --resume sweeps/vit")
    children.interrupt_at = 2
    stopped = sweep(*command)
    assert stopped.exit_code == 130
    assert "tracekit sweep --resume sweeps/vit" in stopped.stderr
    assert len(list(Path("sweeps/vit/cells").iterdir())) == 2
    children.interrupt_at = None
    assert sweep(*command).exit_code == 0
    assert len(children.jobs) == 4
    again = sweep(*command)
    assert (again.exit_code, len(children.jobs)) == (0, 4)
    assert "0 to run" in again.stderr
    shown = sweep("--show", PLACE)
    assert shown.exit_code == 0
    assert shown.stdout == again.stdout


def test_the_best_of_three_modes_is_measured_again_also_after_an_interrupt(children: Children) -> None:
    children.no_memory = None
    command = ("vit", "--mode", "eager,default,reduce-overhead,max-autotune")
    children.interrupt_at = 4
    assert sweep(*command).exit_code == 130
    assert "not measured again" in " ".join(sweep("--show", PLACE, "--verbose").stdout.split())
    assert "tracekit sweep --resume sweeps/vit" in TWIN.read_text()
    children.interrupt_at = None
    resumed = sweep("--resume", PLACE, "--verbose")
    assert resumed.exit_code == 0 and len(children.jobs) == 5
    assert "1 best mode to measure again" in resumed.stderr
    assert re.search(r"1/1 vit batch 1, \S+ of model, measured again: \S+ ms, 2.00", resumed.stderr)
    assert "measured again: " in " ".join(resumed.stdout.split()) and "measured again: " in TWIN.read_text()
    assert [path.name.endswith(".confirm.json") for path in (PLACE / "cells").iterdir()].count(True) == 1
    assert sweep(*command).exit_code == 0 and len(children.jobs) == 5
    children.ends = [answered(CheckAnswer()), Ended(-9, None, ())]
    next((PLACE / "cells").glob("*.confirm.json")).unlink()
    failed = sweep(*command, "--verbose")
    assert failed.exit_code == 0 and "measuring it again: killed" in " ".join(failed.stdout.split())
    assert "--retry-failed" in TWIN.read_text()


def test_several_processes_are_resumed_and_more_of_them_measure_what_is_missing(children: Children) -> None:
    command = ("vit", "--repeat-process")
    children.interrupt_at = 2
    assert sweep(*command, "3").exit_code == 130
    shown = json.loads(sweep("--show", PLACE, "--json", "-").stdout)
    assert (shown["missing"], shown["processes_missing"]) == (0, 4)
    assert "tracekit sweep --resume sweeps/vit" in TWIN.read_text()
    children.interrupt_at = None
    assert sweep("--resume", PLACE).exit_code == 0
    assert len(children.jobs) == 6
    told = json.loads(sweep(*command, "5", "--json", "-").stdout)
    assert len(children.jobs) == 10
    eager, compiled = told["works"][0]["cells"]
    assert (told["processes_missing"], eager["verdict"], told["works"][0]["eager"]["processes"]) == (0, None, 10)
    assert (compiled["verdict"]["processes"], compiled["verdict"]["basis"]) == (5, "processes")
    calls = json.loads((PLACE / "sweep.json").read_text())["calls"]
    assert [each["processes"] for each in calls] == [3, None, 5]
    assert "10 processes to run (5 a cell)" in sweep(*command, "3", "--again").stderr, (
        "those that are there, all of them"
    )


def test_a_process_without_times_is_said_where_its_cell_has_others(children: Children) -> None:
    children.ends = [answered(CheckAnswer()), Ended(-9, None, ())]
    result = sweep("vit", "--mode", "eager", "--repeat-process", "2")
    assert result.exit_code == 0
    assert "tracekit sweep --resume sweeps/vit --retry-failed" in result.stderr.splitlines()[-1]


def test_resume_goes_on_by_the_rule_of_the_last_call(children: Children) -> None:
    children.interrupt_at = 1
    sweep("vit", *"--batch-size 1,4 --target 2 --time-budget 7 --seed 3 --cell-timeout 90 --timeout 40".split())
    children.interrupt_at = None
    result = sweep("--resume", PLACE)
    assert result.exit_code == 0, result.output
    assert {(job.target_percent, job.budget_seconds, job.request.seed) for job in children.jobs} == {(2.0, 7.0, 3)}
    last = json.loads(Path("sweeps/vit/sweep.json").read_text())["calls"][-1]
    assert (last["cell_timeout_seconds"], last["rank_timeout_seconds"], last["target_percent"]) == (90.0, 40.0, 2.0)


def test_failed_cells_stop_nothing_and_are_tried_again_when_asked(children: Children) -> None:
    command = ("vit", "--mode", "default,reduce-overhead")
    result = sweep(*command, "--json", "-", "--calls", "50")
    assert (result.exit_code, len(children.jobs)) == (0, 2)
    told = json.loads(result.stdout)
    assert (told["schema"], told["name"], told["calls"]) == ("tracekit.sweep/1", "vit", 50)
    again = "tracekit sweep --resume sweeps/vit --retry-failed"
    assert f"1 cell without times; retry: {again}" in result.stderr
    assert f"\n{again}\n" in TWIN.read_text()
    # What is there already is shown without a look whether it could be run.
    children.found = CheckAnswer("vit needs the package torch")
    assert (sweep(*command).exit_code, len(children.jobs)) == (0, 2)
    assert sweep(*command, "--again").exit_code == 1
    children.found = CheckAnswer()
    sweep(*command, "--retry-failed")
    assert [job.request.mode for job in children.jobs[2:]] == ["reduce-overhead"]
    sweep(*command, "--again")
    assert len(children.jobs) == 5
    assert "leave --batch-size out" in sweep("--resume", PLACE, "--batch-size", "2").stderr


def test_all_anew_that_was_interrupted_goes_on(children: Children) -> None:
    command = ("vit", "--batch-size", "1,4")
    sweep(*command)
    children.jobs.clear()
    children.interrupt_at = 1
    assert sweep(*command, "--again").exit_code == 130
    children.interrupt_at = None
    shown = sweep("--show", PLACE)
    assert "3 cells of 4 predate --again" in " ".join(shown.stdout.split())
    result = sweep("--resume", PLACE)
    assert "3 to run" in result.stderr
    assert re.search(r"3 cells .*--again", result.stderr)
    assert len(children.jobs) == 4
    assert "before --again began" not in result.stdout
    assert "0 to run" in sweep(*command).stderr


def test_a_file_that_cannot_be_read_is_said_and_its_cell_run_anew(children: Children) -> None:
    sweep("vit")
    path = eager_file()
    path.write_text("{")
    shown = sweep("--show", PLACE)
    assert shown.exit_code == 0, shown.output
    assert f"{path.name} cannot be read" in "".join(shown.stdout.split("\n"))
    assert path.name in TWIN.read_text().replace("\\", "")
    result = sweep("vit")
    assert f"{path} cannot be read" in result.stderr
    assert len(children.jobs) == 3
    assert "cannot be read" not in result.stdout


def test_another_version_of_an_own_model_is_said_and_run_anew(children: Children) -> None:
    text = "def build(layers: int = 2): ..."
    Path("my_model.py").write_text(text)
    children.sources = (Source("my_model.py", hashlib.sha256(text.encode()).hexdigest()),)
    command = ("my_model.py:build", "--", "layers=3")
    assert sweep(*command).exit_code == 0
    assert {job.request.options for job in children.jobs} == {("layers=3",)}
    assert "0 to run" in sweep(*command).stderr
    Path("my_model.py").write_text(f"{text}  # mended")
    said = "2 cells of my_model.py:build are of another version (my_model.py changed)"
    assert said in " ".join(sweep("--show", "sweeps/my_model-build").stdout.split())
    result = sweep(*command)
    assert "2 to run" in result.stderr and said in result.stderr
    assert len(children.jobs) == 4


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (("--target", "2"), ("--target", "1"), "another timing rule"),
        (("--time-budget", "9"), (), "another timing rule"),
        (("--iterations", "40"), ("--iterations", "40"), None),
        ((), (), None),
        (("--iterations", "40"), ("--iterations", "80"), "another timing rule"),
        (("--seed", "3"), (), "another --seed"),
    ],
)
def test_what_was_measured_otherwise_than_is_asked_for_now_is_said(
    children: Children, first: tuple[str, ...], second: tuple[str, ...], said: str | None
) -> None:
    sweep("vit", *first)
    result = sweep("vit", *second)
    assert len(children.jobs) == 2
    if said is None:
        assert "--again" not in result.stderr
    else:
        assert re.search(rf"2 cells .*{said}.*--again", result.stderr)


def test_cells_that_were_measured_with_other_variables_are_said_to_be_so(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep("vit")
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    told = sweep("vit").stderr
    assert re.search(r"2 cells .*--again .*CUDA_LAUNCH", told)
    monkeypatch.setattr("sys.argv", ["tracekit", "sweep", "vit"])
    assert sweep("vit").exit_code == 0
    assert "\nCUDA_LAUNCH_BLOCKING=1 tracekit sweep vit\n" in TWIN.read_text()
    eager_file().unlink()
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING")
    assert sweep("--show", PLACE).exit_code == 0
    go_on = "\nCUDA_LAUNCH_BLOCKING=1 tracekit sweep --resume sweeps/vit\n"
    assert go_on in TWIN.read_text(), "as it was last asked for"


def test_what_keeps_every_cell_from_running_is_said_before_anything_is_written(children: Children) -> None:
    children.found = CheckAnswer("vit needs the package torch", ("below",))
    result = sweep("vit", "--batch-size", "1,4")
    assert (result.exit_code, children.jobs) == (1, [])
    assert "error: vit needs the package torch\nbelow" in result.stderr
    assert not Path("sweeps").exists()
    assert [request.workload for request in children.checked[0].requests] == ["vit"]


def test_a_sweep_of_which_nothing_has_times_fails_at_its_end(children: Children) -> None:
    result = sweep("vit", "--mode", "reduce-overhead", "--batch-size", "1,4")
    assert result.exit_code == 1
    assert len(children.jobs) == 2
    assert Path("reports/sweep-vit.html").is_file()
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert "tracekit sweep --resume sweeps/vit --retry-failed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        # Each by itself, and with a plus together.
        (
            ("flux", "--mode", "default", "--scope", "transformer,vae,transformer+vae"),
            {"transformer", "transformer,vae", "vae"},
        ),
        (("hf:a/b", "--seq-length", "8,16", "--download", "--mode", "eager"), {(8, True), (16, True)}),
    ],
)
def test_every_setting_of_a_model_can_be_swept(
    children: Children, arguments: tuple[str, ...], asked: set[object]
) -> None:
    pytest.importorskip("huggingface_hub")
    assert sweep(*arguments).exit_code == 0
    requests = [job.request for job in children.jobs]
    assert {each.scope if each.workload == "flux" else (each.seq_length, each.download) for each in requests} == asked


def test_folders_have_names_that_tell_models_apart_and_that_a_file_system_takes(children: Children) -> None:
    pytest.importorskip("huggingface_hub")
    for name in ("hf:google/vit", "hf:facebook/vit", "vit"):
        assert sweep(name, "--mode", "eager").exit_code == 0
    short = {"hf-google-vit", "hf-facebook-vit", "vit"}
    assert {path.name for path in Path("sweeps").iterdir()} == short
    assert len(list(Path("reports").glob("*.html"))) == 3
    workloads = SUITES["vision"].workloads
    for many in (workloads, workloads[::-1]):
        sweep(*many, "--mode", "eager")
    names = {path.name for path in Path("sweeps").iterdir()} - short
    assert len(names) == 2 and max(map(len, names)) < 100


def test_reports_of_folders_of_one_name_do_not_replace_each_other(children: Children) -> None:
    for place in ("a/vit", "b/vit", "c/sweeps/vit"):
        sweep("vit", "--out", place)
    sweep("vit")
    folders = {str(path.parent) for path in Path().rglob("sweep-vit.html")}
    assert folders == {"a/vit", "b/vit", "c/reports", "reports"}
    sweep("--show", "a/vit", "--out", "elsewhere")
    assert Path("elsewhere/sweep-vit.html").is_file()


def test_the_report_names_the_commands_that_measured_it_and_what_goes_on(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["vit"], ["vit", "--batch-size", "4"], ["--resume", "sweeps/vit"], ["vit"]):
        monkeypatch.setattr("sys.argv", ["tracekit", "sweep", *words])
        assert sweep(*words).exit_code == 0
    measure, show = ["tracekit sweep vit", "tracekit sweep vit --batch-size 4"], ["tracekit sweep --show sweeps/vit"]

    def commands() -> list[str]:
        text = Path("reports/sweep-vit.md").read_text()
        (block,) = [each.partition("```")[0] for each in text.split("```sh\n")[1:] if measure[1] in each]
        return [line for line in block.splitlines() if not line.startswith("#")]

    # Nothing is missing, so that nothing goes on.
    assert commands() == [*measure, *show]
    eager_file().unlink()
    assert sweep("--show", PLACE).exit_code == 0
    assert commands() == [*measure, "tracekit sweep --resume sweeps/vit", *show]


def test_show_takes_nothing_that_would_run(children: Children) -> None:
    sweep("vit")
    for words in (["--retry-failed"], ["--again"], ["--batch-size", "4"], ["--seed", "0"]):
        assert_refused(sweep("--show", PLACE, *words), f"--show runs nothing: leave {words[0]} out")
    assert_refused(sweep("--show", PLACE, "--repeat-process", "3"), "leave --repeat-process out")
    assert_refused(sweep("--show", PLACE, "--", "layers=3"), "leave -- layers=3 out")
    assert sweep("--show", PLACE, "--suite", "vision", "--calls", "10").exit_code == 0
    assert "Compared with 2023" in TWIN.read_text()


def test_where_nothing_can_be_locked_it_is_said(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    result = sweep("vit")
    assert (result.exit_code, len(children.jobs)) == (0, 2)
    assert "sweeps/vit" in result.stderr and "(No locks available)" in result.stderr


def test_a_suite_is_run_in_parts_into_one_folder(children: Children) -> None:
    first = sweep("--suite", "vision", "--only", "vit,beit")
    assert first.exit_code == 0, first.output
    assert {job.request.workload for job in children.jobs} == {"vit", "beit"}
    assert len(children.jobs) == 2 * 3 * 3
    assert {(job.request.iterations, job.request.size) for job in children.jobs} == {(300, "auto")}
    assert "90 to run" in first.stdout
    other = ("--batch-size", "2", "--dtype", "float16", "--time-budget", "4", "--out", "other")
    assert sweep("--suite", "vision", "--only", "vit", *other).exit_code == 0
    asked = {(job.request.batch_size, job.request.dtype, job.request.iterations) for job in children.jobs[18:]}
    assert asked == {(2, "float16", None)}
    children.jobs.clear()
    second = sweep("--suite", "vision", "--only", "resnet")
    assert len(children.jobs) == 3 * 3
    assert "81 to run" in second.stdout
    page = Path("reports/sweep-vision.md").read_text()
    assert "Compared with 2023" in page
    assert "| beit | bfloat16 | 11.282 | 8.448 |" in page


def test_every_workload_of_a_suite_exists_and_vision_has_the_users_table() -> None:
    for name, suite in SUITES.items():
        cells = sweep("--suite", name, "--only", "nothing")
        assert f"one of {', '.join(suite.workloads)}" in cells.stderr
    vision = SUITES["vision"]
    assert (len(vision.workloads), vision.batch_sizes, vision.iterations) == (12, (1, 4, 16), 300)
    assert {each.workload for each in vision.published} == set(vision.workloads)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--suite NAME"),
        (("vit", "--", "layers=3"), "leave out layers=3"),
        (("vit", "--scope", "model+,heads"), "'model+'"),
        (("vit", "--seq-length", "8"), "vit has no --seq-length"),
        (("vit", "--download"), "vit has no --download"),
        (("vit", "--mode", "eager", "--scope", "heads"), "'heads'"),
        (("vit", "--suite", "vision"), "one of: "),
        (("--suite", "visoin"), "did you mean vision?"),
        (("vit", "--height", "224"), "vit has no --height"),
        (("vti",), "did you mean vit?"),
        (("vit", "--only", "beit"), "pass one of vit"),
        (("vit", "--iterations", "5", "--target", "1"), "leave out --target"),
        (("--resume", "nowhere"), "nowhere holds no sweep.json"),
        (("--show", "nowhere"), "nowhere is not a sweep folder"),
    ],
)
def test_what_cannot_be_is_said_in_a_line_before_anything_runs(
    children: Children, arguments: tuple[str, ...], message: str
) -> None:
    result = sweep(*arguments)
    assert (result.exit_code, message in result.stderr, children.jobs) == (1, True, [])
    assert result.stderr.startswith("error: ")
    assert not Path("sweeps").exists()


def test_a_folder_of_something_else_is_refused_before_anything_runs(children: Children) -> None:
    Path("other").mkdir()
    Path("other/notes.txt").touch()
    result = sweep("vit", "--out", "other")
    assert (result.exit_code, children.jobs) == (1, [])
    assert "other exists and is not a sweep folder" in result.stderr
    assert "checking" not in result.stderr
    assert [each.name for each in Path("other").iterdir()] == ["notes.txt"]
    assert_refused(sweep("vit", "--out", "other/notes.txt"), "other/notes.txt is a file")


@pytest.mark.parametrize(("option", "value"), [("--batch-size", "1,none"), ("--mode", "eager,fast"), ("--height", "0")])
def test_a_list_with_a_wrong_value_is_a_wrong_option(option: str, value: str) -> None:
    assert sweep("vit", option, value).exit_code == 2


def test_cells_without_what_was_asked_are_shown(children: Children) -> None:
    folder = SweepFolder(Path("merged"))
    folder.check()
    folder.save(make_result(eager_cell()))
    result = sweep("--show", "merged")
    assert result.exit_code == 0, result.output
    assert Path("merged/sweep-merged.html").is_file()


@pytest.mark.slow
def test_a_real_sweep_of_a_small_model_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "0")
    asked = ("--mode", "default", "--batch-size", "1,200000000000", "--iterations", "10")
    result = sweep("mlp", "--size", "tiny", *asked, "--json", "out.json")
    assert result.exit_code == 0, result.output
    told = json.loads(Path("out.json").read_text())
    small, large = told["works"]
    (compiled,) = small["cells"]
    assert compiled["outcome"] == "done"
    assert (compiled["compiled"]["calls"], compiled["graphs"], compiled["graph_breaks"]) == (10, 1, 0)
    assert compiled["verdict"]["ci95"][0] < compiled["verdict"]["speedup"] < compiled["verdict"]["ci95"][1]
    assert compiled["compile_seconds"] > 0
    # Input for so many at once takes more than a process can address, on a machine that promises any memory too: a
    # result, and the other cells have theirs.
    assert [cell["outcome"] for cell in large["cells"]] == ["out_of_memory"]
