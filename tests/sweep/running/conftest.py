from pathlib import Path

import pytest

from tracekit.sweep.running.folder import SweepFolder


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    made = SweepFolder(tmp_path / "sweeps" / "vit")
    made.check()
    return made
