"""Shells are given a script, and what it asks is answered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tracekit.cli.main import main


def complete(words: str) -> list[str]:
    """What bash would be told for the last of these words."""
    asked = {"_TRACEKIT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    program = "import tracekit.cli.main as m; m.run()"
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert ran.stderr == ""
    return [line.partition(",")[2] for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_tracekit_itself(shell: str) -> None:
    found = CliRunner().invoke(main, ["completion", shell])
    assert found.exit_code == 0
    assert f"_TRACEKIT_COMPLETE={shell}_complete" in found.output


def test_bash_accepts_the_script() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    script = CliRunner().invoke(main, ["completion", "bash"]).output
    subprocess.run([bash, "-n"], input=script, text=True, check=True)


def test_commands_options_and_workloads_are_completed() -> None:
    assert complete("tracekit an") == ["analyze"]
    assert complete("tracekit profile cau") == ["causal-lm"]
    assert "--repeat-process" in complete("tracekit profile flux --rep")


def test_another_shell_is_refused_with_those_there_are() -> None:
    found = CliRunner().invoke(main, ["completion", "tcsh"])
    assert found.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in found.output
