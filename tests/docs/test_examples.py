"""What pages show is run as printed: README, getting-started.md and export.md on the committed runs, the example of a
workflow, own-models.md."""

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from click.testing import Result
from tests.cli.runs import invoke

from tracekit import store

from .texts import DOCS, ROOT, blocks

VIT, GRAPHS = (ROOT / "traces" / name for name in ("h100-vit", "h100-vit-reduce-overhead"))
OWN = DOCS / "own-models.md"
WORKFLOW = DOCS / "examples" / "performance.yml"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the committed runs, and `tracekit` as a program."""
    (tmp_path / "traces").mkdir()
    for run in (VIT, GRAPHS):
        (tmp_path / "traces" / run.name).symlink_to(run)
    program = tmp_path / "bin" / "tracekit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tracekit "$@"\n')
    program.chmod(0o755)
    return tmp_path


def shell(place: Path, command: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "HOME": str(place), **more}
    environment["PATH"] = f"{place / 'bin'}:{environment['PATH']}"
    return subprocess.run(
        ["bash", "-c", command], cwd=place, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def typed(place: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Result]:
    """A command of tracekit as it is typed in that folder, in this process: a process of its own imports it anew."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("COLUMNS", "100")

    def run(command: str) -> Result:
        program, *words = shlex.split(command, comments=True)
        assert program == "tracekit"
        return invoke(*(Path(word).expanduser() if word.startswith("~") else word for word in words))

    return run


def unlike(page: Path, block: str, output: str) -> list[str]:
    """The lines of a block that the output has not. `...` stands for any number of lines."""
    printed = {line.strip() for line in output.splitlines()}
    return [line for line in map(str.strip, block.splitlines()) if line != "..." and line not in printed]


def test_the_tour_prints_what_it_says(place: Path, typed: Callable[[str], Result]) -> None:
    page, readme = DOCS / "getting-started.md", ROOT / "README.md"
    compared = typed("tracekit compare traces/h100-vit")
    assert compared.exit_code == 0, compared.stderr
    (shortened,), (whole, gate) = (blocks(each, "text") for each in (readme, page))
    assert unlike(readme, shortened, compared.stdout) == []
    assert len(shortened.splitlines()) <= 12
    assert [line.rstrip() for line in compared.stdout.strip("\n").splitlines()] == whole.splitlines()
    assert len(whole.splitlines()) <= 30
    assert (place / "reports" / "h100-vit.html").is_file() and (place / "reports" / "h100-vit.md").is_file()
    commands = blocks(page, "sh")[2].splitlines()
    assert len(commands) == 4
    for command in commands:
        done = typed(command)
        assert done.exit_code == 0, (command, done.stderr)
        if "--gate" in command:
            assert unlike(page, gate, done.stdout) == []


#: The committed runs are of one process each, without --repeat-process: too little to tell 3 % from nothing.
OUTCOMES = [(VIT, 4, "inconclusive"), (GRAPHS, 3, "failed")]


@pytest.mark.parametrize(("new", "code", "word"), OUTCOMES, ids=["the same times", "three kernels more"])
def test_the_workflow_of_the_gate_does_what_its_page_says(
    place: Path, typed: Callable[[str], Result], new: Path, code: int, word: str
) -> None:
    steps = workflow_steps("measure")
    profiled, compared, told = [step["run"] for step in steps if "run" in step][1:]
    out, base = re.search(r"--out (\S+)", profiled), re.search(r"compare ~/(\S+)", compared)
    assert out is not None and base is not None
    # The committed runs stand for those of a user's model, which takes minutes to profile.
    (place / base[1]).parent.mkdir()
    (place / base[1]).symlink_to(VIT)
    done = shell(place, told, GITHUB_STEP_SUMMARY=str(place / "summary.md"))
    assert (done.returncode, (place / "summary.md").exists()) == (0, False), "where compare stopped before it wrote"
    # What profiling would have left there; one folder by two names would be compared form with form.
    shutil.copytree(new, place / out[1])
    judged = typed(compared)
    assert judged.exit_code == code, judged.output
    assert f"Gate: {word}" in judged.stdout
    assert typed(f"{compared} --inconclusive pass").exit_code == (0 if code == 4 else code)
    done = shell(place, told, GITHUB_STEP_SUMMARY=str(place / "summary.md"))
    assert done.returncode == 0, done.stderr
    first = (place / "summary.md").read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith(f"# Gate: {word}")
    (upload,) = (step["with"]["path"] for step in steps if "upload" in step.get("uses", ""))
    assert sorted(path.name for path in (place / upload).iterdir()) == ["gate.html", "gate.md"]


def workflow_steps(job: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"][job]["steps"]
    return steps


#: Stands for GitHub's program: the pull request has the comment 7, or none; the last line is what it was asked for.
GITHUB = """#!/bin/sh
echo "$*" >> asked
case "$*" in *--paginate*) printf '%s' "$COMMENT";; esac
"""
COMMENTS = [("", "pr comment 5 --body-file"), ("7", "api --method PATCH repos/me/mine/issues/comments/7 ")]


@pytest.mark.parametrize(("there", "asked"), COMMENTS, ids=["first", "again"])
def test_the_workflow_keeps_one_comment_on_the_pull_request(place: Path, there: str, asked: str) -> None:
    *_, step = workflow_steps("comment")
    program = place / "bin" / "gh"
    program.write_text(GITHUB)
    program.chmod(0o755)
    (place / "reports").mkdir()
    (place / "reports" / "gate.md").write_text("# Gate: passed\n", encoding="utf-8")
    done = shell(place, f"set -e; {step['run']}", COMMENT=there, GH_REPO="me/mine", PULL_REQUEST="5")
    assert done.returncode == 0, done.stderr
    assert (place / "asked").read_text().splitlines()[-1].startswith(asked)
    assert (place / "comment.md").read_text(encoding="utf-8") == "<!-- tracekit -->\n# Gate: passed\n"


def test_only_the_job_that_runs_no_code_of_the_pull_request_may_write() -> None:
    told = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    assert told["permissions"] == {"contents": "read"}
    may = {name: job.get("permissions") for name, job in told["jobs"].items()}
    assert may == {"measure": None, "comment": {"pull-requests": "write"}}
    assert not any("checkout" in step.get("uses", "") for step in workflow_steps("comment"))


def test_the_workflow_profiles_the_code_of_the_pull_request_in_an_environment_of_its_own() -> None:
    installed, profiled, *_ = [step["run"] for step in workflow_steps("measure") if "run" in step]
    # The model of the page that the text leads to.
    (own,) = [block for block in blocks(DOCS / "own-models.md", "sh") if "my_model.py:build" in block]
    assert "profile my_model.py:build --compiled" in own and "profile my_model.py:build --compiled" in profiled
    # One process each cannot decide a limit of 3 %.
    assert re.search(r"--repeat-process \d", profiled)
    commands = installed.splitlines()
    assert commands[0] == "python3 -m venv .venv"
    assert all(command.startswith(".venv/bin/pip ") for command in commands if "pip " in command)
    assert commands[-1].endswith('>> "$GITHUB_PATH"'), "the steps after it find tracekit"


def test_exported_tables_have_the_columns_of_their_page(place: Path, typed: Callable[[str], Result]) -> None:
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    (block,) = blocks(DOCS / "export.md", "sh")
    for command in block.splitlines():
        done = typed(command)
        assert done.exit_code == 0, (command, done.stderr)
    kernels = pl.read_parquet(place / "kernels.parquet").columns
    gaps, groups = (next(csv.reader((place / f"{name}.csv").open(encoding="utf-8"))) for name in ("gaps", "groups"))
    causes = [column for column in gaps if column.endswith("_us") and column not in ("start_us", "duration_us")]
    assert (causes[0], causes[-1]) == ("sync_wait_us", "unattributed_us")
    gaps = [column for column in gaps if column not in causes]
    for name, columns in (("kernels", kernels), ("gaps", gaps), ("groups", groups)):
        row = re.search(rf"^\| {name} \| (.*) \|$", page.partition("### Columns")[2], flags=re.MULTILINE)
        assert row is not None
        assert [column for column in columns if f"`{column}`" not in row[1]] == []


def test_the_benchmark_step_writes_the_file_that_the_next_step_reads(place: Path) -> None:
    (workflow,) = blocks(DOCS / "export.md", "yaml")
    _, exported, read = yaml.safe_load(workflow)
    (place / "traces" / "vit").symlink_to(VIT)
    assert shell(place, exported["run"]).returncode == 0
    entries = yaml.safe_load((place / read["with"]["output-file-path"]).read_text(encoding="utf-8"))
    assert {"name", "unit", "value", "extra", "range"} >= {key for entry in entries for key in entry}
    compiled = "vit, full size, bfloat16, batch 1, compiled (default, scope model)"
    assert {f"{compiled}: call", f"{compiled}: kernels"} <= {entry["name"] for entry in entries}
    assert f"`{compiled}: call`" in (DOCS / "export.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_ten_line_example_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tracekit.measure.device.pick_device", lambda: "cpu")
    from tests.measure.small_runs import without_kernels

    # Those of the same model in Python have them.
    without_kernels(monkeypatch)
    code, command = blocks(OWN, "python")[0], blocks(OWN, "sh")[0]
    assert len(code.splitlines()) <= 10
    (tmp_path / "my_model.py").write_text(code)
    first, *words = shlex.split(command)
    assert first == "tracekit"
    at = words.index("--")
    found = invoke(*words[:at], "--iterations", 3, *words[at:])
    assert found.exit_code == 0, found.output
    run = store.load(tmp_path / "traces" / "my_model-build-compiled")
    assert run.settings.own is not None and run.settings.own.options == ("layers=4",)
    facts = run.forms[1].compilation
    assert facts is not None and facts.graphs == 1
    assert (tmp_path / "reports" / "my_model-build-compiled.html").is_file()


@pytest.mark.slow
def test_the_python_example_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(blocks(OWN, "python")[0], names)
    model, (tokens,) = names["build"](width=32)  # type: ignore[operator]
    exec(blocks(OWN, "python")[2], {"model": model, "tokens": tokens})
    assert (tmp_path / "reports" / "Sequential-compiled.html").is_file()
