from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tracekit.cli.main import main


def test_a_schema_is_printed() -> None:
    result = CliRunner().invoke(main, ["schema", "comparison"])
    assert json.loads(result.output)["$id"] == "tracekit.comparison/1"


def test_all_are_written_into_a_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["schema", "--out", str(tmp_path / "schemas")])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (tmp_path / "schemas").iterdir()) == [
        "analysis.json",
        "comparison.json",
        "comparisons.json",
        "run.json",
        "sweep-cell.json",
        "sweep.json",
    ]


def test_naming_none_says_which_there_are() -> None:
    result = CliRunner().invoke(main, ["schema"])
    assert (result.exit_code, "analysis, comparison, comparisons, run, sweep, sweep-cell" in result.stderr) == (1, True)
