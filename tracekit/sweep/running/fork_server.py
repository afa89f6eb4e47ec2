"""Processes that begin with torch and the models' libraries imported: importing takes as long as measuring may.

`python -m tracekit.sweep.running.fork_server MODULE...` imports the modules once and forks processes that find them
imported: it reads orders from its standard input, one at a time, and answers each with the number of the process, then
with how it ended. CUDA does not work in a process that was forked after its driver was initialised: this one never is
asked about a GPU.

Not by the forkserver of `multiprocessing`: it looks for modules in the working folder first, runs `__main__` again,
gives processes no groups of their own, and lets them outlive who asked for them.
"""

import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn

from tracekit.interpreter import collector_paused
from tracekit.measure.building import quiet_libraries
from tracekit.measure.end_with_parent import end_with
from tracekit.measure.processes import Running, Start, end_groups, start_fresh, tied_command
from tracekit.model.workload import WorkloadInfo
from tracekit.shell import environment_with

MODULE = "tracekit.sweep.running.fork_server"
#: Makes torch ask NVML, which a fork does not break, whether there are GPUs: libraries ask that when imported.
ASK_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
#: What a process has open whose CUDA driver is initialised: on Linux, and on Linux under Windows.
CUDA_DEVICES = ("/dev/nvidia-uvm", "/dev/dxg")
#: What it ends with when no process can be forked that could use a GPU.
CUDA_INITIALISED = 4

#: A process to fork: `python -m MODULE WORD... SECONDS` with this environment and no other, printing into the file.
#: SECONDS is how long importing took here.
Order = tuple[str, list[str], dict[str, str], str]


class Forked:
    """A process that the server forked, as `subprocess.Popen` has one. `ends` is where the server says how it ended."""

    def __init__(self, pid: int, ends: IO[bytes]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ends = ends

    def poll(self, timeout: float | None = 0.0) -> int | None:
        """Its exit code; None if it runs on for so many seconds."""
        if self.returncode is None and select.select([self._ends], [], [], timeout)[0]:
            line = self._ends.readline()
            # A server that was killed takes with it what it forked.
            self.returncode = int(line) if line else -int(signal.SIGKILL)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended. Raises TimeoutExpired if that takes more seconds."""
        code = self.poll(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return code


class ForkServer:
    """Starts processes by forking one that has imported these modules; fresh ones where that does not work, or where
    there are none."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._modules = tuple(modules)
        self._process: subprocess.Popen[bytes] | None = None
        self._works = sys.platform == "linux" and bool(self._modules)

    @contextmanager
    def start(self, module: str, words: Sequence[str], environment: dict[str, str], printed: Path) -> Iterator[Running]:
        """As `start_fresh`: the process, whose group ends with the block. The first call waits for the imports."""
        process = self._fork([module, words, environment_with(environment), str(printed)])
        if process is None:
            with start_fresh(module, words, environment, printed) as fresh:
                yield fresh
            return
        try:
            yield process
        finally:
            end_groups(process)

    def start_of(self, info: WorkloadInfo) -> Start:
        """How to start what builds this workload: forked only from what imported its module."""
        return self.start if info.module in self._modules else start_fresh

    def close(self) -> None:
        """Ends the server."""
        if self._process is None:
            return
        end_groups(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _fork(self, order: list[object]) -> Forked | None:
        """The process; None where none can be forked: the server ends when it cannot import, and a fresh process will
        say why."""
        if not self._works:
            return None
        if self._process is None:
            self._process = subprocess.Popen(
                tied_command(MODULE, self._modules),
                env=environment_with({}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Unbuffered: what was read is what `select` has seen.
                bufsize=0,
                start_new_session=True,
            )
        orders, answers = self._process.stdin, self._process.stdout
        assert orders is not None
        assert answers is not None
        with suppress(BrokenPipeError):
            # Not by msgspec: names of a system may hold bytes that are no UTF-8.
            orders.write(json.dumps(order).encode() + b"\n")
        number = answers.readline()
        self._works = bool(number)
        return Forked(int(number), answers) if number else None


def shared_modules(infos: Iterable[WorkloadInfo]) -> tuple[str, ...]:
    """What may be imported before the processes that build these workloads are forked. Nothing of a user's own is
    theirs. What imports torch alone shares with nothing else: in its own process it imports the compiler when it first
    compiles, and how long that takes is part of compiling."""
    modules = {info.module: info.needs_only_torch for info in infos}
    return tuple(module for module, alone in modules.items() if not alone or len(modules) == 1)


def serve(order: Order, seconds: float, answers: int) -> None:
    """Forks the process and waits for its end, telling both."""
    is_ready, say_ready = os.pipe()
    own = os.getpid()
    number = os.fork()
    if number == 0:
        for each in (is_ready, answers):
            os.close(each)
        _become(order, seconds, own, say_ready)
    os.close(say_ready)
    # Nobody is told of it before it leads a group: that could not be ended.
    os.read(is_ready, 1)
    os.close(is_ready)
    os.write(answers, b"%d\n" % number)
    _, status = os.waitpid(number, 0)
    os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(order: Order, seconds: float, parent: int, say_ready: int) -> NoReturn:
    """This process is the one that was ordered, and nothing else after it: what torch would still do when an
    interpreter ends takes seconds, and nobody is served by it."""
    module, words, environment, printed = order
    code = 1
    try:
        os.setsid()
        end_with(parent)
        with Path(os.devnull).open("rb") as nothing, Path(printed).open("ab") as log:
            for number, file in enumerate((nothing, log, log)):
                os.dup2(file.fileno(), number)
        os.environ.clear()
        os.environ.update(environment)
        os.close(say_ready)
        sys.argv = [module, *words, str(seconds)]
        code = _run(module)
    finally:
        for stream in (sys.stdout, sys.stderr):
            # What ran here may have closed it, or put something of its own there.
            with suppress(Exception):
                stream.flush()
        os._exit(code)


def _run(module: str) -> int:
    """The exit code that the interpreter would end with."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - as an interpreter does.
        traceback.print_exc()
        return 1
    return 0


def main(names: list[str]) -> None:
    """Imports, and serves until nobody orders any more. Raises what importing does: a fresh process will say it
    better."""
    answers = os.dup(1)
    # What libraries print when they are imported is no answer.
    os.dup2(2, 1)
    began = time.monotonic()
    quiet_libraries()
    os.environ[ASK_NVML] = "1"
    with collector_paused():
        for name in names:
            importlib.import_module(name)
    seconds = time.monotonic() - began
    # Served on Linux alone, where that can be seen.
    if any(str(each.readlink()) in CUDA_DEVICES for each in Path("/proc/self/fd").iterdir() if each.is_symlink()):
        sys.exit(CUDA_INITIALISED)
    # Whatever is still to be written would be by every process that is forked.
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        serve(json.loads(line), seconds, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
