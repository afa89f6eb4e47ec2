"""`python -m tracekit.walks.zygote MODULE...`: imports the modules once, and forks processes that find them imported.
Started by `walks/forked.py` alone, which writes orders into its standard input, one at a time, and hears of each the
number of the process, then how it ended.

CUDA does not work in a process that was forked after its driver was initialised: this one never is asked about a GPU.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from tracekit.walks.end_with_parent import end_with
from tracekit.walks.hushing import hush_libraries

#: Makes torch ask NVML, which a fork does not break, whether there are GPUs: libraries ask that when imported.
ASK_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
#: What a process has open whose CUDA driver is initialised: on Linux, and on Linux under Windows.
CUDA_DEVICES = ("/dev/nvidia-uvm", "/dev/dxg")
#: What it ends with when no process can be forked that could use a GPU.
SPOILT = 4


class Order(msgspec.Struct, frozen=True):
    """A process to fork: `python -m MODULE WORD... SECONDS`, which prints into the file. SECONDS is how long importing
    took here. `environment` is all of its environment."""

    module: str
    words: tuple[str, ...]
    environment: dict[str, str]
    printed: str

    def line(self) -> bytes:
        """The order as the zygote reads it. Not by msgspec: names of a system may hold bytes that are no UTF-8."""
        return json.dumps(msgspec.to_builtins(self)).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> Order:
        return msgspec.convert(json.loads(line), cls)


def import_modules(names: list[str]) -> float:
    """How many seconds it took to import them. Raises whatever they do: a fresh process will say it better."""
    began = time.monotonic()
    hush_libraries()
    os.environ[ASK_NVML] = "1"
    for name in names:
        importlib.import_module(name)
    return time.monotonic() - began


def has_cuda() -> bool:
    """Whether the CUDA driver is initialised in this process; False where that cannot be seen."""
    there = Path("/proc/self/fd")
    if not there.is_dir():
        return False
    return any(str(each.readlink()) in CUDA_DEVICES for each in there.iterdir() if each.is_symlink())


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
    _tell(answers, number)
    _, status = os.waitpid(number, 0)
    _tell(answers, os.waitstatus_to_exitcode(status))


def _become(order: Order, seconds: float, parent: int, say_ready: int) -> NoReturn:
    """This process is the one that was ordered, and nothing else after it: what torch would still do when an
    interpreter ends takes seconds, and nobody is served by it."""
    code = 1
    try:
        os.setsid()
        end_with(parent)
        _print_into(order.printed)
        os.environ.clear()
        os.environ.update(order.environment)
        os.close(say_ready)
        code = _run(order.module, (*order.words, str(seconds)))
    finally:
        for stream in (sys.stdout, sys.stderr):
            # What ran here may have closed it, or put something of its own there.
            with suppress(Exception):
                stream.flush()
        os._exit(code)


def _print_into(printed: str) -> None:
    nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for given, stream in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(given, stream)
    os.close(nothing)
    os.close(log)


def _run(module: str, words: tuple[str, ...]) -> int:
    """The exit code that the interpreter would end with."""
    sys.argv = [module, *words]
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


def _tell(answers: int, number: int) -> None:
    os.write(answers, b"%d\n" % number)


def main(names: list[str]) -> None:
    """Imports, and serves until nobody orders any more."""
    answers = os.dup(1)
    # What libraries print when they are imported is no answer.
    os.dup2(2, 1)
    seconds = import_modules(names)
    if has_cuda():
        sys.exit(SPOILT)
    # Whatever is still to be written would be by every process that is forked.
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        serve(Order.of(line), seconds, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
