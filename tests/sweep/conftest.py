from pathlib import Path

import pytest
from tests.sweep.sweeps import Children

from tracekit.sweep.running import requirements, sweeping
from tracekit.sweep.running.folder import SweepFolder


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    fake = Children()
    for module in (sweeping, requirements):
        monkeypatch.setattr(module, "run_module", fake)
    return fake


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    made = SweepFolder(tmp_path / "sweeps" / "vit")
    made.check()
    return made
