import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import browser

# Inductor would build and load six programs for each new cache, and in each new process, to learn which vectors this
# machine has. Without vectors it need not ask, its C++ compiles in less time, and is as right. Read where torch is
# imported, which collecting the tests does.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test reads or fills the user's cache, nor do the processes it starts."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("XDG_CACHE_HOME")
    # torch and Hugging Face have caches of their own there, which may stay.
    os.environ.setdefault("HF_HOME", str(Path(before or "~/.cache").expanduser() / "huggingface"))
    os.environ["XDG_CACHE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="session", autouse=True)
def browser_of_all_tests() -> Iterator[None]:
    """Whatever test starts the browser, it is ended after the last."""
    with browser.STARTED:
        yield
