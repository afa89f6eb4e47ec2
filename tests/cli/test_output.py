from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.runs import at_once, make_run_folder, tracekit
from tests.sides import make_run, make_settings

from tracekit.cli.output import command_line, commands_of_page, measuring_command_line
from tracekit.model.run import UserModel


def test_the_command_of_a_measurement_holds_what_steered_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_VEC_ISA_OK", raising=False)
    monkeypatch.setenv("TORCHINDUCTOR_GRAPH_PARTITION", "0")
    monkeypatch.setattr("sys.argv", ["tracekit", "profile", "beit", "--prompt", "a cat"])
    assert command_line() == "tracekit profile beit --prompt 'a cat'"
    assert measuring_command_line() == f"TORCHINDUCTOR_GRAPH_PARTITION=0 {command_line()}"


def test_a_page_of_a_run_says_what_measured_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["tracekit", "compare", "traces/flux-compiled"])
    both = "# measures it\ntracekit profile flux --compiled\n# makes this page\ntracekit compare traces/flux-compiled"
    assert commands_of_page(make_run()) == both
    own = make_settings(own=UserModel(in_program=True))
    in_program = commands_of_page(make_run(command="tracekit.profile(f) in x.py", settings=own))
    assert in_program.startswith("# measured by tracekit.profile(f) in x.py\n# makes this page\n"), "no shell takes it"
    assert commands_of_page(None) == command_line()
    assert commands_of_page(make_run(command=command_line())) == command_line()


@pytest.mark.parametrize("json", ["x.json", "-"])
def test_several_compares_at_once_leave_whole_pages(tmp_path: Path, json: str) -> None:
    run, out = make_run_folder(tmp_path), tmp_path / "out"
    out.mkdir()
    expected = tracekit("compare", run, "--out", "alone.html", "--json", "-", folder=tmp_path)
    assert expected.returncode == 0, expected.stderr
    for ended in at_once(
        4, "compare", run, "--out", "out/x.html", "--json", f"out/{json}" if json != "-" else json, folder=tmp_path
    ):
        assert ended.returncode == 0, ended.stderr
        assert json != "-" or ended.stdout == expected.stdout
    if json != "-":
        assert (out / json).read_text() == expected.stdout
    assert {path.name for path in out.iterdir()} == {"x.html", "x.md"} | ({json} - {"-"})
    for name in ("html", "md"):
        alone, together = ((tmp_path / f"alone.{name}").read_text(), (out / f"x.{name}").read_text())
        # Each says how it was made.
        assert re.sub("tracekit compare .*", "", together) == re.sub("tracekit compare .*", "", alone)
