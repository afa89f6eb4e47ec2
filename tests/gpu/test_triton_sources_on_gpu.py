"""The Triton code that a run keeps: `tracekit profile vit` on a real GPU."""

from pathlib import Path
from typing import Any

import pytest
from tests.gpu.profiled import analysis_of, profile

from tracekit import store

Ran = tuple[Path, Any]


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return profile(tmp_path_factory.mktemp("vit"), "vit", "--compiled", "--iterations", "5")


def test_each_triton_kernel_of_the_trace_has_its_source(vit: Ran) -> None:
    folder, run = vit
    kept = store.load_kernel_sources(folder, run.form("compiled"))
    assert kept is not None and kept.left_out == 0
    kernels = analysis_of(vit, "compiled").kernels
    ran = {each.name for each in kernels.by_name if each.name.startswith("triton_")}
    assert ran and ran <= set(kept.sources)
    assert all(f"def {name}(" in source for name in ran for source in kept.sources[name])


def test_the_sources_make_a_run_folder_at_most_15_percent_larger(vit: Ran) -> None:
    folder, _ = vit
    kept = (folder / store.COMPILED_TRITON).stat().st_size
    whole = sum(path.stat().st_size for path in folder.iterdir())
    assert 0 < kept < 0.15 * (whole - kept)
