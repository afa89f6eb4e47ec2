"""One question asked of many files, here or by an executor. Nothing is scheduled, queued or tried again by tracekit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from signal import SIGTERM, Signals
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from msgspec import Struct

from tracekit.console import PrintableConsole
from tracekit.errors import TracekitError, WorkerDiedError

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from multiprocessing.process import BaseProcess

    from rich.progress import Progress

T = TypeVar("T")
Found = TypeVar("Found")

#: Reading less than this takes less time than starting a process does.
WORTH_A_PROCESS_BYTES = 24 << 20
#: What to do about one whose reader died.
READ_ALONE = "read it alone: tracekit digest"


def _refuse(error: TracekitError) -> NoReturn:
    raise error


class Question(Struct, Generic[T, Found], frozen=True):
    """What `look` finds of an item, which messages call `named(item)`. A TracekitError of an item goes to `refused`,
    which raises it, or says it and leaves the item out. `doing` stands beside the bar."""

    look: Callable[[T], Found]
    named: Callable[[T], str] = str
    refused: Callable[[TracekitError], None] = _refuse
    doing: str = "reading ranks"


def ask_each(
    question: Question[T, Found], items: Sequence[T], unpacked_bytes: int, executor: Executor | None = None
) -> list[Found]:
    """The answers in the order of `items`: by the executor, or by processes of this machine where there is enough to
    read in all. Raises TracekitError where one who reads dies, and names the item."""
    if executor is not None:
        return _ask_executor(question, items, executor)
    workers = min(len(items), usable_cores())
    if workers > 1 and unpacked_bytes >= WORTH_A_PROCESS_BYTES * workers:
        return _ask_processes(question, items, workers)
    answers = (_answer(question.look, item) for item in items)
    return _gathered(question, len(items), answers)


def usable_cores() -> int:
    """Of this machine, those that this process may use: Slurm, for one, gives a job a few of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    # More processes than these a pool of Windows cannot wait for.
    return min(os.cpu_count() or 1, 61)


def _answer(look: Callable[[T], Found], item: T) -> Found | TracekitError:
    """An error is an answer too: executors differ in how they bring one back."""
    try:
        return look(item)
    except TracekitError as error:
        return error


def _gathered(question: Question[T, Found], total: int, answers: Iterator[Found | TracekitError]) -> list[Found]:
    found: list[Found] = []
    with _progress(question.doing, total) as advance:
        for answer in answers:
            if isinstance(answer, TracekitError):
                question.refused(answer)
            else:
                found.append(answer)
            advance()
    return found


def _ask_executor(question: Question[T, Found], items: Sequence[T], executor: Executor) -> list[Found]:
    futures = [executor.submit(_answer, question.look, item) for item in items]

    def answers() -> Iterator[Found | TracekitError]:
        for item, future in zip(items, futures, strict=True):
            try:
                yield future.result()
            except WorkerDiedError as error:
                unless = "" if error.out_of_memory else "if memory ran out, "
                yield TracekitError(f"{question.named(item)}: {error}; {unless}{READ_ALONE}")
            except TracekitError:
                raise
            except Exception as error:
                raise TracekitError(
                    f"{question.named(item)}: the engine gave no answer: {type(error).__name__}: {error}"
                ) from error

    return _gathered(question, len(items), answers())


#: In a process that reads: which process is at which item, 0 where none is.
_at_work: Any = None


def _begin(at_work: Any) -> None:
    global _at_work
    _at_work = at_work


def _answer_at(look: Callable[[T], Found], at: int, item: T) -> Found | TracekitError:
    _at_work[at] = os.getpid()
    answer = _answer(look, item)
    _at_work[at] = 0
    return answer


def _ask_processes(question: Question[T, Found], items: Sequence[T], workers: int) -> list[Found]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    # Forked processes would inherit polars' threads in the middle of their work.
    context = get_context("spawn")
    at_work = context.RawArray("q", len(items))
    others = {each.pid for each in active_children()}
    children: list[BaseProcess] = []
    with ProcessPoolExecutor(workers, context, _begin, (at_work,)) as pool:
        try:
            futures = [pool.submit(_answer_at, question.look, at, item) for at, item in enumerate(items)]
            children = [each for each in active_children() if each.pid not in others]
            return _gathered(question, len(items), (future.result() for future in futures))
        except BrokenProcessPool as error:
            # The others are ended, and all have an exit code.
            pool.shutdown()
            names = [question.named(items[at]) for at in _abandoned(at_work, children)]
            raise _died(names, children) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # Or each would read what it has begun, and one more.
            for process in children:
                process.terminate()
            raise


def _abandoned(at_work: Sequence[int], children: Sequence[BaseProcess]) -> list[int]:
    """The items of processes that died by themselves; where no exit code tells them, all that were being read."""
    open_ = [at for at, process in enumerate(at_work) if process]
    ended = {each.pid for each in children if each.exitcode == -SIGTERM}
    return [at for at in open_ if at_work[at] not in ended] or open_


def _died(names: Sequence[str], children: Sequence[BaseProcess]) -> TracekitError:
    codes = [each.exitcode for each in children if each.exitcode not in (None, 0, -SIGTERM)]
    code = next(iter(codes), None) or 0
    how = f"was ended by {Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    if not names:
        return TracekitError(f"a process that was to read {how} before it began")
    return TracekitError(f"{', '.join(names)}: the process that read it {how}; if memory ran out, {READ_ALONE}")


@contextmanager
def _progress(doing: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal; gives what is called as each recording is read."""
    console = PrintableConsole(stderr=True)
    bar: Progress | None = None
    if console.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        bar = Progress(*columns, console=console, transient=True)
        bar.add_task(doing, total=total)
        bar.start()
    try:
        yield lambda: bar.advance(bar.task_ids[0]) if bar is not None else None
    finally:
        if bar is not None:
            bar.stop()
