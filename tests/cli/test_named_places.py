"""Files that a user names: devices and pipes are written into, regular files are replaced, links are followed."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.runs import ROOT, make_run_folder

from tracekit.cli.main import main

#: Every option that names a file for what a command writes.
OPTIONS = [
    ("analyze", "--json"),
    ("compare", "--json"),
    ("workloads", "--json"),
    ("export", "--kernels"),
    ("export", "--gaps"),
    ("export", "--groups"),
    ("export", "--benchmark"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(folder: Path, command: str, option: str, place: object) -> list[str]:
    read = [] if command == "workloads" else [str(make_run_folder(folder))]
    return [command, *read, option, str(place)]


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_a_device_stays_one(folder: Path, command: str, option: str) -> None:
    result = CliRunner().invoke(main, words(folder, command, option, os.devnull))
    assert result.exit_code == 0, result.output
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_a_pipe_gets_what_is_written(folder: Path, command: str, option: str) -> None:
    pipe, got = folder / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    result = CliRunner().invoke(main, words(folder, command, option, pipe))
    reader.join(10)
    assert result.exit_code == 0, result.output
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    text = got[0].decode()
    assert json.loads(text) if option in ("--json", "--benchmark") else "," in text.splitlines()[0]


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_a_shells_process_substitution_gets_what_is_written(folder: Path, command: str, option: str) -> None:
    typed = shlex.join([sys.executable, "-m", "tracekit", *words(folder, command, option, "HERE")])
    typed = typed.replace("HERE", ">(cat > got; echo done > finished)")
    waited = f"{typed} && until test -s finished; do sleep 0.05; done"
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", waited], capture_output=True, text=True, check=False, env=surroundings, timeout=60
    )
    assert done.returncode == 0, done.stderr
    got = (folder / "got").read_text()
    assert json.loads(got) if option in ("--json", "--benchmark") else "," in got.splitlines()[0]


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_a_regular_file_is_replaced_with_its_mode_and_a_link_is_followed(
    folder: Path, command: str, option: str
) -> None:
    target = folder / "target"
    target.write_text("old")
    target.chmod(0o600)
    (folder / "link").symlink_to(target)
    result = CliRunner().invoke(main, words(folder, command, option, "link"))
    assert result.exit_code == 0, result.output
    assert (folder / "link").is_symlink()
    assert (target.read_text() != "old", stat.S_IMODE(target.stat().st_mode)) == (True, 0o600)


def test_two_tables_may_go_to_a_device_and_not_to_one_file(folder: Path) -> None:
    made = make_run_folder(folder)
    assert CliRunner().invoke(main, ["export", str(made), "--kernels", os.devnull, "--gaps", os.devnull]).exit_code == 0
    refused = CliRunner().invoke(main, ["export", str(made), "--kernels", "x.csv", "--gaps", "x.csv"])
    assert (refused.exit_code, "would both be written to" in refused.stderr) == (1, True)


def test_a_place_that_cannot_be_written_is_one_line(folder: Path) -> None:
    (folder / "file").write_text("")
    result = CliRunner().invoke(main, words(folder, "compare", "--json", "file/below.json"))
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    full = Path("/dev/full")
    if full.exists():
        told = CliRunner().invoke(main, ["workloads", "--json", str(full)])
        assert (told.exit_code, "cannot write /dev/full" in told.stderr) == (1, True)
        assert stat.S_ISCHR(full.stat().st_mode)
