from __future__ import annotations

from pathlib import Path

import pytest

from tracekit.errors import TracekitError
from tracekit.walks.reports import refuse_report_there, reports_of


def test_runs_of_one_name_in_different_places_have_reports_of_their_own() -> None:
    assert reports_of(Path("traces/vit1")) == Path("reports")
    assert reports_of(Path("/x/traces/vit1")) == Path("/x/reports")
    assert reports_of(Path("/x/vit1")) == Path("/x/reports")


def test_a_report_of_another_run_is_not_replaced_unless_that_is_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "traces" / "vit1"
    refuse_report_there(folder, force=False)
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "vit1.html").write_text("of another run")
    with pytest.raises(TracekitError, match=r"vit1\.html is there already, of another run; pass --force"):
        refuse_report_there(folder, force=False)
    refuse_report_there(folder, force=True)
    folder.mkdir(parents=True)
    # The run's own: whether that may be replaced is asked of its folder.
    refuse_report_there(folder, force=False)
