from pathlib import Path
from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = __file__.rpartition("/")[0]
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True, scope="session")
def needs_a_gpu() -> None:
    """Of the session, so that no other fixture works for a test that is skipped."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")


@pytest.fixture(scope="session")
def flux(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A run of tiny FLUX, eager and compiled."""
    from tests.gpu.profiled import TINY, profile

    return profile(tmp_path_factory.mktemp("flux"), "flux", *TINY, "--iterations", "20")
