"""Where a cell's process has its caches: an empty folder that goes when the cell has ended, however that did."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracekit.walks.locks import NoLocksError, locked, take

PREFIX = "tracekit-cell-"
#: Held by the sweep as long as it needs the folder.
LOCK = "lock"


@contextmanager
def cell_place() -> Iterator[Path]:
    """An empty folder for one cell, on the machine's own disk. What somebody still writes there stays and is no error:
    the next sweep clears it away."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as text:
        place = Path(text)
        handle = os.open(place / f".{LOCK}", os.O_RDWR | os.O_CREAT)
        try:
            with suppress(NoLocksError):
                take(handle, blocking=False)
                # Under its name only now: nobody finds it unlocked while its owner lives.
                (place / f".{LOCK}").rename(place / LOCK)
            yield place
        finally:
            os.close(handle)


def caches_in(place: Path) -> dict[str, str]:
    """What makes Inductor and Triton keep what they compile there."""
    return {"TORCHINDUCTOR_CACHE_DIR": f"{place}/inductor", "TRITON_CACHE_DIR": f"{place}/triton"}


def clear_dead_places() -> None:
    """Removes what killed sweeps of this user left: folders whose lock nobody holds any more. Where that cannot be
    known they stay."""
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(NoLocksError, OSError):
            if place.is_symlink() or place.stat().st_uid != os.getuid() or not (place / LOCK).is_file():
                continue
            with locked(place / LOCK, blocking=False) as dead:
                if dead:
                    shutil.rmtree(place, ignore_errors=True)
