"""Processes that begin with torch and the models' libraries imported: importing takes as long as measuring may.

Not by the forkserver of `multiprocessing`: it looks for modules in the working folder first, runs `__main__` again,
gives processes no groups of their own, and lets them outlive who asked for them.
"""

from __future__ import annotations

import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO

from tracekit.model.workload import WorkloadInfo
from tracekit.walks.processes import Running, Start, end_group, start_fresh, surroundings, tied_command
from tracekit.walks.zygote import Order

ZYGOTE = "tracekit.walks.zygote"


class Forked:
    """A process that the zygote forked, as `subprocess.Popen` has one. `ends` is where the zygote says how it ended."""

    def __init__(self, pid: int, ends: IO[bytes]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ends = ends

    def poll(self) -> int | None:
        """Its exit code; None as long as it runs."""
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended. Raises TimeoutExpired if that takes more seconds."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return code

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ends], [], [], timeout)[0]:
            line = self._ends.readline()
            # A zygote that was killed takes with it what it forked.
            self.returncode = int(line) if line else -int(signal.SIGKILL)
        return self.returncode


class Zygote:
    """Starts processes by forking one that has imported these modules; fresh ones where that does not work, or where
    there are none."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = tuple(modules)
        self._process: subprocess.Popen[bytes] | None = None
        self._works = sys.platform == "linux" and bool(modules)

    def start(
        self, module: str, words: Sequence[str], environment: dict[str, str], printed: Path
    ) -> AbstractContextManager[Running]:
        """As `start_fresh`: the process, whose group ends with the block. The first call waits for the imports."""
        process = self._fork(Order(module, tuple(words), surroundings(environment), str(printed)))
        return _ended(process) if process else start_fresh(module, words, environment, printed)

    def start_of(self, info: WorkloadInfo) -> Start:
        """How to start what builds this workload: forked only from what imported its module."""
        return self.start if info.module in self._modules else start_fresh

    def close(self) -> None:
        """Ends the zygote."""
        if self._process is None:
            return
        end_group(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _fork(self, order: Order) -> Forked | None:
        """The process; None where none can be forked: the zygote ends when it cannot import, and a fresh process will
        say why."""
        if not self._works:
            return None
        if self._process is None:
            self._process = self._begin()
        orders, answers = self._process.stdin, self._process.stdout
        assert orders is not None
        assert answers is not None
        with suppress(BrokenPipeError):
            orders.write(order.line())
        number = answers.readline()
        self._works = bool(number)
        return Forked(int(number), answers) if number else None

    def _begin(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            tied_command(ZYGOTE, self._modules),
            env=surroundings({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Unbuffered: what was read is what `select` has seen.
            bufsize=0,
            start_new_session=True,
        )


@contextmanager
def _ended(process: Forked) -> Iterator[Running]:
    try:
        yield process
    finally:
        end_group(process)


def shared_modules(infos: Iterable[WorkloadInfo]) -> tuple[str, ...]:
    """What may be imported before the processes that build these workloads are forked. Nothing of a user's own is
    theirs. What imports torch alone shares with nothing else: in its own process it imports the compiler when it first
    compiles, and how long that takes is part of compiling."""
    modules = {info.module: info.torch_alone for info in infos}
    return tuple(module for module, alone in modules.items() if not alone or len(modules) == 1)


@contextmanager
def forking(modules: Sequence[str]) -> Iterator[Zygote]:
    """What starts processes that have these modules imported, as long as the block lasts."""
    zygote = Zygote(modules)
    try:
        yield zygote
    finally:
        zygote.close()
