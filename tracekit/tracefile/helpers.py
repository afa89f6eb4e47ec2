"""Processes that take part in decoding a file of this machine (see `together`). They take as long to start as a command
takes to import what it analyses traces with, so it may start them first."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tracekit.interpreter import usable_cores
from tracekit.shell import environment_with

if TYPE_CHECKING:
    from tracekit.tracefile.events import Detail

MODULE = "tracekit.tracefile.together"
#: Each unpacks all of the file, which takes a tenth of the time that decoding takes.
MOST_PROCESSES = 4
#: A process takes 0.1 to 0.4 s to start: in that time another one decodes 30 to 80 MB.
LEAST_BYTES, LEAST_BYTES_EARLY = 128 << 20, 48 << 20
#: Packed JSON is so many times as large unpacked, about.
PACKED = 12


class Helpers:
    """So many processes, and the files of what nobody has claimed yet and of what each has decoded. They end when they
    are through, or by `close`."""

    def __init__(self, path: Path, detail: Detail, count: int) -> None:
        command = [sys.executable, "-P", "-m", MODULE, str(path), detail]
        self.claimed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (see `close`)
        self.decoded: list[IO[bytes]] = [tempfile.TemporaryFile() for _ in range(count)]  # noqa: SIM115
        self._processes: list[subprocess.Popen[bytes]] = []
        atexit.register(self.close)
        for each in self.decoded:
            self._processes.append(
                subprocess.Popen(
                    command, env=environment_with({}), stdin=self.claimed, stdout=each, stderr=subprocess.DEVNULL
                )
            )

    def wait(self) -> bool:
        """Whether all came to an end of their own."""
        codes = [each.wait() for each in self._processes]
        return not any(codes)

    def close(self) -> None:
        """Ends those that are not through."""
        atexit.unregister(self.close)
        for each in self._processes:
            each.kill()
            each.wait()
        for file in (self.claimed, *self.decoded):
            file.close()


#: Those that are not yet wanted, by real path and detail.
_early: dict[tuple[str, Detail], Helpers] = {}


def start_early(place: str, detail: Detail, processes: int | None = None) -> None:
    """Starts those that `helpers_of` will give, if it is asked soon and the place is a large file."""
    with suppress(OSError):
        path, key = Path(place), (os.path.realpath(place), detail)
        if path.is_file() and (count := _worth(path, LEAST_BYTES_EARLY, processes or usable_cores())):
            _early[key] = Helpers(path, detail, count)


def helpers_of(path: Path | None, detail: Detail, processes: int) -> Helpers | None:
    """Those that take part, so that so many processes decode the file at most; None where one process is as fast."""
    if path is None:
        return None
    if (early := _early.pop((os.path.realpath(path), detail), None)) is not None:
        return early
    # Without room for files or processes one process reads.
    with suppress(OSError):
        if count := _worth(path, LEAST_BYTES, processes):
            return Helpers(path, detail, count)
    return None


def end_early(path: Path | None, detail: Detail) -> None:
    """Nobody will ask for them."""
    if path is not None and (early := _early.pop((os.path.realpath(path), detail), None)) is not None:
        early.close()


def _worth(path: Path, least_bytes: int, processes: int) -> int:
    """How many processes beside one take less time than it alone. Windows has other locks than `together` knows."""
    if sys.platform == "win32" or not path.is_file():
        return 0
    unpacked_bytes = path.stat().st_size * (1 if path.name.endswith(".json") else PACKED)
    return min(processes, MOST_PROCESSES) - 1 if unpacked_bytes >= least_bytes else 0
