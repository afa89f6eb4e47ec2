"""Every command line that README, docs and workflows show is one that this version has, and workflows are valid."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .command_lines import check_command, words_of
from .texts import PAGES, ROOT, blocks, prose

WORKFLOWS = [*(ROOT / ".github" / "workflows").glob("*.yml"), *(ROOT / "docs" / "examples").glob("*.yml")]
TARGETS = re.findall(r"^([\w.-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


def lines(text: str) -> Iterator[str]:
    """The commands of a block, continued lines joined, comments, prompts and what follows a pipe left out."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"\s*(?:&&|\||;)\s*", line.removeprefix("$ ")):
            if part.strip() and not part.lstrip().startswith("#"):
                yield part


def workflow_lines(text: str) -> Iterator[str]:
    """What the steps of a workflow, or of a part of one, run."""
    for step in steps_of(text):
        yield from lines(step.get("run", ""))


def steps_of(workflow: str) -> list[dict[str, str]]:
    """The steps of a workflow, or of a part of one."""
    told = yaml.safe_load(workflow)
    return told if isinstance(told, list) else [step for job in told["jobs"].values() for step in job["steps"]]


def shown() -> Iterator[tuple[str, str]]:
    """Every command line, with the page it stands on: of blocks, and of prose between backticks."""
    for page in PAGES:
        for block in [*blocks(page, "sh"), *blocks(page, "console"), *blocks(page, "text")]:
            # Of output, what tracekit advises.
            yield from ((page.name, line) for line in lines(block) if "tracekit " in line)
        for block in blocks(page, "yaml"):
            yield from ((page.name, line) for line in workflow_lines(block))
        for code in re.findall(r"`((?:tracekit|make) [^`]+)`", prose(page).replace("\n", " ")):
            yield from ((page.name, line) for line in lines(code))
    for workflow in WORKFLOWS:
        yield from ((workflow.name, line) for line in workflow_lines(workflow.read_text(encoding="utf-8")))


def begins_with(program: str) -> list[tuple[str, str]]:
    found = {(page, line.strip()) for page, line in shown() if line.strip().startswith(f"{program} ")}
    return sorted(found)


@pytest.mark.parametrize(("page", "line"), begins_with("tracekit"))
def test_a_command_line_is_understood(page: str, line: str) -> None:
    check_command(line)


@pytest.mark.parametrize(("page", "line"), begins_with("make"))
def test_a_target_is_in_the_makefile(page: str, line: str) -> None:
    targets = [word for word in words_of(line)[1:] if "=" not in word]
    assert set(targets) <= {*TARGETS}, (page, line)


def test_there_are_command_lines_to_look_at() -> None:
    assert len(begins_with("tracekit")) > 50
    assert {"README.md", "getting-started.md", "gate.md", "sweep.md"} <= {page for page, _ in begins_with("tracekit")}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "yaml")], ids=lambda page: page.name)
def test_workflows_are_yaml_whose_steps_do_something(page: Path) -> None:
    for block in blocks(page, "yaml"):
        assert all(("run" in step) != ("uses" in step) for step in steps_of(block))


def test_the_tests_workflow_runs_what_readme_says() -> None:
    (shown,) = (block for block in blocks(ROOT / "README.md", "sh") if "make check" in block)
    ran = {line.strip() for line in workflow_lines((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))}
    assert {line.partition("#")[0].strip() for line in shown.splitlines()} <= ran


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_names_versions_of_actions(workflow: Path) -> None:
    text = workflow.read_text(encoding="utf-8")
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    used = [step["uses"] for step in steps_of(text) if "uses" in step]
    assert used and [each for each in used if not re.fullmatch(r"actions/[\w-]+@v\d+\.\d+\.\d+", each)] == []
    assert "secrets." not in text


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_the_shape_that_github_asks_for(workflow: Path) -> None:
    pytest.importorskip("check_jsonschema")
    check = ["check_jsonschema", "--builtin-schema", "vendor.github-workflows", workflow]
    done = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
