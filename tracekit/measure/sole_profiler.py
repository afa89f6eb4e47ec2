"""One profiler at a time in a process: torch's cannot be nested, nor run in two threads. A second one takes the first
one's events, or a segmentation fault ends the process. The only file that asks torch about its profilers.

What is asked is private to torch: where a name is missing, it is not asked. Its flags are the thread's own
(`_profiler_enabled`) or forgetful (`_is_profiler_enabled`: off as soon as any profiler ends), and neither knows of a
profiler that a schedule warms up, so the profilers in memory are looked at too.
"""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch.autograd.profiler import profile as SINGLE  # noqa: N812 - a constant here: which class is looked for.
from torch.profiler import ProfilerAction
from torch.profiler import profile as SCHEDULED  # noqa: N812

from tracekit.errors import TracekitError

#: Held for as long as tracekit profiles, whichever thread it is.
_ours = threading.Lock()
#: What every profiler of torch calls before it prepares or starts.
STARTS = (
    ("torch.autograd.profiler", "_prepare_profiler"),
    ("torch.autograd.profiler", "_enable_profiler"),
    ("torch.autograd.profiler_legacy", "_enable_profiler_legacy"),
)


def claim() -> bool:
    """Whether no profiler is active in this process, and none can be by tracekit until `release`."""
    if not _ours.acquire(blocking=False):
        return False
    if is_active():
        release()
        return False
    return True


def release() -> None:
    _ours.release()


@contextmanager
def sole_profiler() -> Iterator[None]:
    """Nothing else of tracekit profiles while the block runs. Raises TracekitError where a profiler is active."""
    if not claim():
        raise TracekitError("another profiler is active in this process: call tracekit.profile when it has ended")
    try:
        yield
    finally:
        release()


def is_active() -> bool:
    """Whether a profiler of torch runs, or is warmed up, in any thread."""
    if is_active_here() or getattr(torch.autograd.profiler, "_is_profiler_enabled", False):
        return True
    if _any_prepared():
        # One that failed to start looks like it, as long as it is there.
        gc.collect()
        return _any_prepared()
    return False


def is_active_here() -> bool | None:
    """Whether one runs in this thread; None where torch does not say."""
    ask = getattr(torch.autograd, "_profiler_enabled", None)
    return ask and bool(ask())


def _any_prepared() -> bool:
    return any(map(_is_prepared, gc.get_referrers(SINGLE, SCHEDULED)))


def _is_prepared(this: object) -> bool:
    if isinstance(this, SINGLE):
        return getattr(this, "entered", False) and getattr(this, "kineto_results", this) is None
    # One that accumulates events keeps the results of its last cycle while it prepares the next. Its action stays when
    # it is stopped; a torch that drops the step's span then says so.
    if not (isinstance(this, SCHEDULED) and getattr(this, "acc_events", False)):
        return False
    warms_up = getattr(this, "current_action", None) is ProfilerAction.WARMUP
    return warms_up and getattr(this, "profiler", None) is not None and getattr(this, "step_rec_fn", None) is not None


@contextmanager
def watched_starts(other_begins: Callable[[], None]) -> Iterator[None]:
    """While the block runs, `other_begins` is called before another profiler is prepared or started, in its thread."""

    def preceded(start: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        other_begins()
        return start(*arguments, **options)

    with ExitStack() as changes:
        for module, name in STARTS:
            owner = sys.modules.get(module)
            if hasattr(owner, name):
                start = getattr(owner, name)
                changes.callback(setattr, owner, name, start)
                setattr(owner, name, partial(preceded, start))
        yield
