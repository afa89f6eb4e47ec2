"""What README and docs show leaves a fresh checkout as git has it: everything that commands write is ignored."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tracekit.cli.main import main

from .docs.texts import PAGES, ROOT, blocks
from .traces import RUNS, SWEEP

#: What a command may name and still run here: the committed runs. Others measure, or read traces of the reader's.
COMMITTED = {str(each) for each in (*RUNS, SWEEP)}

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout of git")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of the files that git tracks here, but for the tests and the package, which run from here."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in git(ROOT, "ls-files", "-z").split("\0")[:-1]:
        path = ROOT / name
        if path.is_file() and not name.startswith(("tests/", "tracekit/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "as it comes")
    return folder


def commands_on_committed_runs() -> list[str]:
    """Every command of README and docs that reads them, without what follows a pipe."""
    found = dict.fromkeys(
        line.partition(" | ")[0].strip()
        for page in PAGES
        for language in ("sh", "console")
        for block in blocks(page, language)
        for line in block.replace("\\\n", " ").splitlines()
        if line.lstrip("$ ").startswith("tracekit ")
    )
    words = {command: shlex.split(command, comments=True) for command in found}
    named = {command: [word for word in each if re.match(r"(traces|sweeps)/", word)] for command, each in words.items()}
    return [
        shlex.join(words[command])
        for command, places in named.items()
        if places
        and all(place in COMMITTED for place in places)
        and ("open" not in words[command] or "--no-serve" in command)
    ]


def test_the_runs_that_git_keeps_are_the_committed_ones() -> None:
    kept = {"/".join(name.split("/")[:2]) for name in git(ROOT, "ls-files", "traces/*/*", "sweeps/*/*").split()}
    assert kept == COMMITTED


def test_there_are_commands_to_run() -> None:
    names = {shlex.split(command)[1] for command in commands_on_committed_runs()}
    assert {"compare", "analyze", "open", "export", "sweep"} <= names


@pytest.mark.slow
@pytest.mark.parametrize("command", commands_on_committed_runs())
def test_a_command_of_readme_or_docs_changes_no_file_that_git_keeps(
    checkout: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(command)
    monkeypatch.chdir(checkout)
    monkeypatch.setattr("sys.argv", words)
    done = CliRunner().invoke(main, words[1:])
    # A gate may end with its own codes.
    assert done.exit_code in ((0, 3, 4) if "--gate" in command else (0,)), done.output
    assert git(checkout, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "name",
    [
        # What `make demo`, `make suite-quick` and profiles of one's own leave.
        *("traces/flux-compiled/run.json", "reports/flux-compiled.html", "reports/flux-compiled.md"),
        *("sweeps/quick/cells/a.json", "reports/sweep-quick.html", "traces/h200-mine/run.json", "groups.csv"),
    ],
)
def test_what_measuring_writes_is_ignored(checkout: Path, name: str) -> None:
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).write_text("written", encoding="utf-8")
    assert git(checkout, "status", "--porcelain") == ""
    (checkout / name).unlink()
