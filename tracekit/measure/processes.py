"""Processes of tracekit's own: each with a job in a file, an answer in another, and an end that is sure."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct

from tracekit.files import LogFile
from tracekit.report.words.progress import exit_words
from tracekit.shell import environment_with
from tracekit.store import CHILD

#: How often it is looked whether a process has ended.
LOOK_SECONDS = 0.2
#: How long a process may take to end when it is told to.
PATIENCE_SECONDS = 5.0
#: Of what a process that failed has printed, so many lines go into the error; how a line begins that is one.
LAST_LINES, ERROR = 3, "error: "
#: Beside its job, where a process may say what it is doing.
WORD = "word"
#: Beside its job, where a process may leave what it has found out, should it not live to answer.
PART = "part.json"


class Ended(Struct, frozen=True):
    """How a process ended: its code (negative: the signal), what it printed, and its answer, None if it has none.
    `late` is whether it was ended here, because its time was up; `word` the last it said of what it was doing; `part`
    what it had found out by then, None where it left nothing."""

    code: int
    answer: bytes | None
    lines: tuple[str, ...]
    late: bool = False
    word: str = ""
    part: bytes | None = None

    def how(self) -> str:
        """The error that it printed last; of any other end what ended it, and the last it printed."""
        printed = [line.strip() for line in self.lines if line.strip()]
        if self.code == 1 and printed and printed[-1].startswith(ERROR):
            return printed[-1].removeprefix(ERROR)
        last = f"last: {' / '.join(printed[-LAST_LINES:])}" if printed else "nothing"
        return f"{exit_words(self.code)}; it printed {last}"


class Running(Protocol):
    """A process, as `subprocess.Popen` has one."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


Process = TypeVar("Process", bound=Running)

#: Starts `python -m MODULE WORD...` with more in its environment, printing into a file; its group ends with the block.
Start = Callable[[str, Sequence[str], dict[str, str], Path], AbstractContextManager[Running]]


def run_module(
    module: str,
    job: bytes,
    draft: Path,
    environment: dict[str, str],
    *,
    limit_seconds: float | None = None,
    on_word: Callable[[str], None] = lambda _: None,
    start: Start | None = None,
) -> Ended:
    """Runs `python -m MODULE JOB ANSWER` until it ends, or its time is up. Neither it nor what it started outlives this
    call, and it does not outlive this process. `start` is how it is started: as a fresh process if nothing is said.

    `on_word` is told what the process has written into the file `word` beside its job, whenever that changes.
    """
    with tempfile.TemporaryDirectory(prefix=CHILD, dir=draft, ignore_cleanup_errors=True) as place:
        names = ("job.json", "result.json", "output.log", WORD, PART)
        asked, answer, printed, word, part = (Path(place) / name for name in names)
        asked.write_bytes(job)
        printed.touch()
        said, late, log = "", False, LogFile(printed)
        with (start or start_fresh)(module, (str(asked), str(answer)), environment, printed) as process:
            began = time.monotonic()
            while process.poll() is None:
                # Not wait(): a signal that another thread receives would not end it.
                time.sleep(LOOK_SECONDS)
                log.cut()
                if word.exists() and (now := word.read_text(errors="replace")) != said:
                    said = now
                    on_word(said)
                if late := limit_seconds is not None and time.monotonic() - began > limit_seconds:
                    end_groups(process)
        assert process.returncode is not None
        log.cut()
        lines = tuple(printed.read_text(errors="replace").splitlines())
        whole = process.returncode == 0 and answer.is_file()
        left = part.read_bytes() if part.is_file() else None
        return Ended(process.returncode, answer.read_bytes() if whole else None, lines, late, said, left)


@contextmanager
def start_fresh(
    module: str, words: Sequence[str], environment: dict[str, str], printed: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, the leader of a group of its own: Inductor starts more, and all of them end with the block."""
    with printed.open("ab") as log:
        process = subprocess.Popen(
            tied_command(module, words),
            env=environment_with(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            end_groups(process)


def tied_command(module: str, words: Sequence[str]) -> list[str]:
    """What runs `python -m MODULE WORD...` in a process that ends with this one."""
    return [sys.executable, "-P", "-m", "tracekit.measure.end_with_parent", str(os.getpid()), module, *words]


def end_groups(*processes: Process, patience_seconds: float = PATIENCE_SECONDS) -> list[Process]:
    """Ends the processes and all of their groups: what they started may live on after them, and may not hear a polite
    word. Returns those that had to be killed."""
    late: list[Process] = []
    try:
        running = [process for process in processes if process.poll() is None]
        for process in running:
            # As long as anybody is in a group no other process is given its number; an empty one is gone.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        until = time.monotonic() + patience_seconds
        for process in running:
            try:
                process.wait(max(until - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                late.append(process)
    finally:
        # Also on Ctrl-C, which somebody who is kept waiting presses again.
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            process.wait()
    return late


def caches_in(place: Path) -> dict[str, str]:
    """What makes Inductor and Triton keep what they compile there."""
    return {"TORCHINDUCTOR_CACHE_DIR": f"{place}/inductor", "TRITON_CACHE_DIR": f"{place}/triton"}
