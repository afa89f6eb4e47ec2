"""`tracekit sweep` as it is typed; cells are run by stand-ins, but for one that is real."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.sweeps import eager_cell, make_result

from tracekit.cli.main import main
from tracekit.model.sweep import CellAnswer, CellFailure, CellJob, CheckAnswer, CheckJob
from tracekit.walks import sweep_check, sweeping
from tracekit.walks.matrix import make_cell
from tracekit.walks.processes import Ended
from tracekit.workloads.suites import SUITES


class Children:
    """Stands for `run_module`: twice as fast by default, no memory for CUDA graphs; may be interrupted."""

    def __init__(self) -> None:
        self.jobs: list[CellJob] = []
        self.checked: list[CheckJob] = []
        self.found = CheckAnswer()
        self.interrupt_at: int | None = None

    def __call__(self, module: str, job: bytes, draft: Path, environment: dict[str, str], **_: Any) -> Ended:
        if module == sweep_check.CHECK:
            self.checked.append(msgspec.json.decode(job, type=CheckJob))
            return Ended(0, msgspec.json.encode(self.found), ())
        asked = msgspec.json.decode(job, type=CellJob)
        if len(self.jobs) == self.interrupt_at:
            raise KeyboardInterrupt
        self.jobs.append(asked)
        answer = CellAnswer(make_result(make_cell(asked.forms[-1], asked.request)).run, None)
        if asked.request.mode == "reduce-overhead":
            answer = CellAnswer(None, CellFailure("out_of_memory", "not enough GPU memory", "building"))
        return Ended(0, msgspec.json.encode(answer), ())


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    fake = Children()
    monkeypatch.setattr(sweeping, "run_module", fake)
    monkeypatch.setattr(sweep_check, "run_module", fake)
    return fake


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path) -> Iterator[None]:
    with contextlib.chdir(tmp_path):
        yield


def sweep(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["sweep", *arguments])


def test_a_matrix_is_run_told_and_written(children: Children) -> None:
    result = sweep("vit", "--mode", "eager,default,reduce-overhead", "--batch-size", "1,4", "--iterations", "40")
    assert result.exit_code == 0, result.output
    assert len(children.jobs) == 6
    assert "6 cells in sweeps/vit: 2 eager, 4 compiled with eager beside it; 6 to run" in result.stderr
    assert "vit batch 4, reduce-overhead of model: out of memory after" in result.stderr
    assert "2.00×" in result.stderr
    assert "compiling made 2 of 2 compiled cells faster" in result.stdout
    page, twin = Path("reports/sweep-vit.html"), Path("reports/sweep-vit.md")
    assert "out of memory" in page.read_text() and "2.00" in twin.read_text()
    asked = json.loads(Path("sweeps/vit/sweep.json").read_text())
    assert (asked["schema"], len(asked["cells"]), asked["calls"][0]["iterations"]) == ("tracekit.sweep-asked/1", 6, 40)


def test_the_same_command_runs_what_is_left_and_then_shows(children: Children) -> None:
    command = ("vit", "--batch-size", "1,4")
    children.interrupt_at = 2
    stopped = sweep(*command)
    assert stopped.exit_code == 130
    assert "to go on: tracekit sweep --resume sweeps/vit" in stopped.stderr.lower()
    assert len(list(Path("sweeps/vit/cells").iterdir())) == 2
    children.interrupt_at = None
    assert sweep(*command).exit_code == 0
    assert len(children.jobs) == 4
    again = sweep(*command)
    assert (again.exit_code, len(children.jobs)) == (0, 4)
    assert "0 to run" in again.stderr
    shown = sweep("--show", "sweeps/vit")
    assert shown.exit_code == 0
    assert shown.stdout == again.stdout


def test_resume_goes_on_by_the_rule_of_the_last_call(children: Children) -> None:
    children.interrupt_at = 1
    sweep("vit", "--batch-size", "1,4", "--target", "2", "--time-budget", "7", "--seed", "3", "--cell-timeout", "90")
    children.interrupt_at = None
    result = sweep("--resume", "sweeps/vit")
    assert result.exit_code == 0, result.output
    assert {(job.target_percent, job.budget_seconds, job.request.seed) for job in children.jobs} == {(2.0, 7.0, 3)}
    last = json.loads(Path("sweeps/vit/sweep.json").read_text())["calls"][-1]
    assert (last["cell_timeout_seconds"], last["target_percent"]) == (90.0, 2.0)


def test_failed_cells_are_tried_again_when_asked(children: Children) -> None:
    command = ("vit", "--mode", "default,reduce-overhead")
    sweep(*command)
    assert len(children.jobs) == 2
    sweep(*command)
    assert len(children.jobs) == 2
    sweep(*command, "--retry-failed")
    assert [job.request.mode for job in children.jobs[2:]] == ["reduce-overhead"]
    sweep(*command, "--again")
    assert len(children.jobs) == 5


def test_a_suite_is_run_in_parts_into_one_folder(children: Children) -> None:
    first = sweep("--suite", "vision", "--only", "vit,beit")
    assert first.exit_code == 0, first.output
    assert {job.request.workload for job in children.jobs} == {"vit", "beit"}
    assert len(children.jobs) == 2 * 3 * 3
    assert {(job.request.iterations, job.request.size) for job in children.jobs} == {(300, "auto")}
    assert "90 to run" in first.stdout
    second = sweep("--suite", "vision", "--only", "resnet")
    assert len(children.jobs) == 3 * 3 * 3
    assert "81 to run" in second.stdout
    page = Path("reports/sweep-vision.md").read_text()
    assert "Beside the figures of 2023" in page
    assert "| beit | bfloat16, NVIDIA H200 | 11.282 | 8.448 |" in page


def test_every_workload_of_a_suite_exists_and_vision_has_the_users_table() -> None:
    for name, suite in SUITES.items():
        cells = sweep("--suite", name, "--only", "nothing")
        assert f"it has {', '.join(suite.workloads)}" in cells.stderr
    vision = SUITES["vision"]
    assert (len(vision.workloads), vision.batch_sizes, vision.iterations) == (12, (1, 4, 16), 300)
    assert {each.workload for each in vision.published} == set(vision.workloads)


def test_a_suite_may_be_of_other_sizes_and_types(children: Children) -> None:
    result = sweep(
        "--suite", "vision", "--only", "vit", "--batch-size", "2", "--dtype", "float16", "--time-budget", "4"
    )
    assert result.exit_code == 0, result.output
    assert {(job.request.batch_size, job.request.dtype, job.request.iterations) for job in children.jobs} == {
        (2, "float16", None)
    }


def test_json_has_standard_output_to_itself(children: Children) -> None:
    result = sweep("vit", "--json", "-", "--calls", "50")
    told = json.loads(result.stdout)
    assert (told["schema"], told["name"], told["calls"]) == ("tracekit.sweep/1", "vit", 50)
    assert "compiling made" in result.stderr


def test_cells_timed_by_another_rule_are_kept_and_said(children: Children) -> None:
    sweep("vit", "--iterations", "40")
    result = sweep("vit", "--iterations", "80")
    assert "2 cells of these were timed by another rule before; --again runs them by this one" in result.stderr
    assert len(children.jobs) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name workloads to sweep, or --suite NAME"),
        (("vit", "--suite", "vision"), "one of them"),
        (("--suite", "visoin"), "did you mean vision?"),
        (("vit", "--height", "224"), "vit has no --height"),
        (("vit", "--batch-size", "1,4", "--scope", "model,heads"), "nothing called 'heads'"),
        (("vti",), "did you mean vit?"),
        (("vit", "--only", "beit"), "this sweep has no such workload; it has vit"),
        (("vit", "--iterations", "5", "--target", "1"), "--iterations is a fixed number"),
        (("--resume", "nowhere"), "nowhere holds no sweep.json"),
        (("--show", "nowhere"), "nowhere is no sweep's folder"),
    ],
)
def test_what_cannot_be_is_said_in_a_line_before_anything_runs(
    children: Children, arguments: tuple[str, ...], message: str
) -> None:
    result = sweep(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert children.jobs == []
    assert not Path("sweeps").exists()


@pytest.mark.parametrize(("option", "value"), [("--batch-size", "1,none"), ("--mode", "eager,fast"), ("--height", "0")])
def test_a_list_with_a_wrong_value_is_a_wrong_option(option: str, value: str) -> None:
    assert sweep("vit", option, value).exit_code == 2


def test_resume_takes_no_other_settings(children: Children) -> None:
    sweep("vit")
    result = sweep("--resume", "sweeps/vit", "--batch-size", "2")
    assert (result.exit_code, "leave --batch-size out" in result.stderr) == (1, True)


def test_an_empty_folder_says_how_to_fill_it(children: Children) -> None:
    children.interrupt_at = 0
    sweep("vit")
    result = sweep("--show", "sweeps/vit")
    assert "holds no cells yet: tracekit sweep --resume sweeps/vit runs them" in result.stderr


def test_cells_without_what_was_asked_are_shown(children: Children) -> None:
    from tracekit.walks.sweep_folder import SweepFolder

    folder = SweepFolder(Path("merged"))
    folder.check()
    folder.save(make_result(eager_cell()))
    result = sweep("--show", "merged")
    assert result.exit_code == 0, result.output
    assert Path("merged/sweep-merged.html").is_file()


@pytest.mark.slow
def test_a_real_sweep_of_a_small_model_on_a_cpu() -> None:
    pytest.importorskip("torch")
    result = sweep("mlp", "--size", "tiny", "--iterations", "20", "--batch-size", "1,2000000000", "--json", "out.json")
    assert result.exit_code == 0, result.output
    told = json.loads(Path("out.json").read_text())
    small, large = told["works"]
    eager, compiled = small["cells"]
    assert (eager["outcome"], compiled["outcome"]) == ("done", "done")
    assert (compiled["compiled"]["calls"], compiled["graphs"], compiled["graph_breaks"]) == (20, 1, 0)
    assert compiled["verdict"]["ci95"][0] < compiled["verdict"]["speedup"] < compiled["verdict"]["ci95"][1]
    assert compiled["compile_seconds"] > 0
    assert small["eager"]["processes"] == 2
    # Input for so many at once has no memory on this machine: a result, and the other cells have theirs.
    assert [cell["outcome"] for cell in large["cells"]] == ["out_of_memory"] * 2
