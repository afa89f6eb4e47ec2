"""Does the profiler see kernels on this GPU? Another process finds out: `python -m tracekit.capture.visible_kernels`.

Once CUPTI has looked at a process it stays, and every launch costs more for the rest of that process's life, 10 to 20 %
of a step that waits for launches (pytorch/pytorch issue 144455). So nothing is profiled in a process before its calls
have been timed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile

import tracekit
from tracekit.errors import TracekitError

#: What the process answers. Any other ending, such as of a GPU that only one process may use, is no answer.
SEEN, UNSEEN = 0, 3
#: How long it may go on after all else that happens meanwhile.
PATIENCE_SECONDS = 120.0
#: What looks, in a process of its own.
COMMAND = (sys.executable, "-P", "-m", __name__)


@contextmanager
def checked_meanwhile(device: str) -> Iterator[None]:
    """While the block runs, another process records one small kernel. Raises TracekitError, after the block, when the
    profiler is not allowed to see it. What the process prints goes to this one's output; where it finds no answer, the
    run goes on."""
    if device == "cpu":
        yield
        return
    here = str(Path(tracekit.__file__).parents[1])
    paths = [path for path in (os.environ.get("PYTHONPATH"), here) if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    code = None
    with subprocess.Popen(COMMAND, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            yield
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
    _require(code != UNSEEN)


def check_here(device: str) -> None:
    """The same in this process, for one in which nothing is timed. Raises TracekitError."""
    _require(device == "cpu" or kernels_are_visible())


def _require(visible: bool) -> None:
    if not visible:
        raise TracekitError("the profiler cannot see kernels on this GPU; `tracekit doctor` says what to change")


def kernels_are_visible() -> bool:
    """Whether the profiler records a small kernel, in this process."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        torch.ones(16, device="cuda").add_(1)
        torch.cuda.synchronize()
    return any(event.device_type == DeviceType.CUDA for event in profiler.events() or ())


if __name__ == "__main__":
    sys.exit(SEEN if kernels_are_visible() else UNSEEN)
