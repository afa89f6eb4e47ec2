from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tracekit.capture.forms import compiled_form
from tracekit.capture.inductor import cache_is_empty
from tracekit.capture.warmup import warm_up
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_a_folder_without_files_is_empty_whatever_folders_it_holds(cache: Path) -> None:
    (cache / "aa").mkdir()
    assert cache_is_empty() is True
    (cache / "aa" / "kernel.best_config").write_text("{}")
    assert cache_is_empty() is False


def test_what_a_form_found_is_looked_up_before_it_fills_the_cache(cache: Path, workload: BuiltWorkload) -> None:
    first = warm_up(compiled_form(workload), Silent()).compilation
    torch._dynamo.reset()
    second = warm_up(compiled_form(workload), Silent()).compilation
    assert first is not None and first.cache_was_empty is True
    assert second is not None and second.cache_was_empty is False
