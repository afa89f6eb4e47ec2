import atexit
import contextlib
import gc
import os
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings
from tests import browser
from tests.traces import ROOT

from tracekit import store
from tracekit.model.comparison import Comparison
from tracekit.reading.sides import compare_forms

# Inductor would build and load six programs for each new cache, and in each new process, to learn which vectors this
# machine has. Without vectors it need not ask, its C++ compiles in less time, and is as right. Read where torch is
# imported, which collecting the tests does.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")

# Ray would put a `print` of its own in place of Python's, and tests of graph breaks at a `print` find its.
os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")

# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Collecting the tests imports torch and libraries of models, of which nothing is garbage.
gc.disable()


def pytest_collection_finish() -> None:
    """Whatever looks for garbage from now on need not look through all that was imported, nor so often as it would:
    what compiles and what reads traces makes many objects and hardly any garbage."""
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Tests outside of tests/gpu are of a machine without a GPU, wherever they run. A worker that has told its results
    ends at once: to take apart what it imported would take it seconds."""
    if not all("tests/gpu" in argument for argument in config.args):
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["HIP_VISIBLE_DEVICES"] = ""
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Every test, and whatever is set up for it, draws the same random numbers, whichever ran before it."""
    random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every worker begins with its share of the long tests, or the last of them would run while the others have none
    left. `--dist worksteal` gives each an equal stretch of this order, and the end of another's when it is done. Those
    of one group share what is set up once, and stay with one worker."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers == 1:
        return
    long: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow"):
            group = item.get_closest_marker("xdist_group")
            long.setdefault(group.args[0] if group else item.nodeid, []).append(item)
    groups = [*long.values()]
    others = iter([item for item in items if not item.get_closest_marker("slow")])
    order: list[pytest.Item] = []
    for worker in range(workers):
        share = [item for group in groups[worker::workers] for item in group]
        size = (len(items) - len(order)) // (workers - worker)
        order += [*share, *islice(others, max(size - len(share), 0))]
    items[:] = [*order, *others]


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test reads or fills the user's cache, nor do the processes it starts. All workers have one."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    folder.mkdir(exist_ok=True)
    before = os.environ.get("XDG_CACHE_HOME")
    # torch and Hugging Face have caches of their own there, which may stay.
    os.environ.setdefault("HF_HOME", str(Path(before or "~/.cache").expanduser() / "huggingface"))
    os.environ["XDG_CACHE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="session")
def compared(cache_of_the_tests_own: Path) -> Callable[[Path], Comparison]:
    """Committed runs compared: Flux takes seconds, so whichever worker comes first does it for all."""

    @cache
    def compare(folder: Path) -> Comparison:
        kept = cache_of_the_tests_own / f"{folder.name}.pickle"
        with FileLock(f"{kept}.lock"), contextlib.chdir(ROOT):
            if kept.exists():
                return pickle.loads(kept.read_bytes())
            made = compare_forms(folder, store.load(folder))
            kept.write_bytes(pickle.dumps(made))
            return made

    return compare


@pytest.fixture(scope="session")
def reported(
    cache_of_the_tests_own: Path, compared: Callable[[Path], Comparison]
) -> Callable[[Path], tuple[Path, Path]]:
    """The page of a committed run and its twin, written once for all workers; `make reports` writes them anew."""
    from tracekit import store
    from tracekit.reading.reports import Destination, identity_of_report_on, report_of_run, write_report

    def report(folder: Path) -> tuple[Path, Path]:
        page = cache_of_the_tests_own / "reports" / f"{folder.name}.html"
        twin = page.with_suffix(".md")
        with FileLock(cache_of_the_tests_own / f"{folder.name}.page.lock"), contextlib.chdir(ROOT):
            if not twin.exists():
                run = store.load(folder)
                there = Destination(page.parent, folder.name, identity_of_report_on(run), force=True)
                write_report(report_of_run(folder, run, compared(folder)), there)
            return page, twin

    return report


@pytest.fixture(scope="session", autouse=True)
def browser_of_all_tests() -> Iterator[None]:
    """Whatever test starts the browser, it is ended after the last."""
    with browser.STARTED:
        yield
