"""Whatever reads the recordings of many ranks, they say the same."""

from pathlib import Path

import pytest
from tests.cli.runs import invoke
from tests.ranks.reading.test_many_files import my_engines as my_engines
from tests.ranks.recorded import DATA

from tracekit.ranks.reading.recordings import find_recordings


@pytest.mark.usefixtures("my_engines")
def test_whichever_engine_reads_the_json_is_the_same(tmp_path: Path) -> None:
    command = ("ranks", str(DATA), "--window", "whole", "--no-cache", "--json", "-")
    alone = invoke(*command)
    assert alone.exit_code == 0
    assert invoke(*command, "--engine", "my_engines:threads").stdout == alone.stdout
    (tmp_path / "rank0.json").write_text("no trace")
    refused = [invoke("ranks", "rank0.json", *more) for more in ((), ("--engine", "my_engines:threads"))]
    assert [each.exit_code for each in refused] == [1, 1]
    assert refused[0].stderr == refused[1].stderr


@pytest.mark.usefixtures("my_engines")
@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("cluster", "module:function"),
        ("my_engines:", "module:function"),
        ("no_such_module:make", "cannot be imported"),
        ("my_engines:absent", "cannot be imported"),
        ("my_engines:nothing", "returned NoneType"),
        ("my_engines:down", "raised ConnectionError: no scheduler, at my_engines.py:12"),
        ("my_engines:sized", "without arguments"),
        ("my_engines:ended", "raised SystemExit"),
        ("my_mistake:make", "SyntaxError"),
        ("my_engines:no_future", "my_engines:no_future: submit() returned None"),
        ("my_engines:no_answer", "my_engines:no_answer: the result of a call is None"),
        ("my_engines:an_error", "my_engines:an_error: the result of a call is a ValueError"),
        ("my_engines:never_asked", "my_engines:never_asked: "),
    ],
)
def test_an_engine_that_is_none_is_one_line(engine: str, said: str) -> None:
    told = invoke("ranks", str(DATA), "--engine", engine)
    assert (told.exit_code, len(told.stderr.splitlines())) == (1, 1)
    assert said in told.stderr


def test_a_source_named_twice_is_digested_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rank0.json").write_text("{}")
    assert find_recordings(["rank0.json", "./rank0.json"]) == ("rank0.json",)
