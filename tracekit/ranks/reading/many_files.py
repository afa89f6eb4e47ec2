"""One question asked of many files, here or by an executor. Nothing is scheduled, queued or tried again by tracekit."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from multiprocessing import active_children, get_context
from signal import Signals
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from msgspec import Struct

from tracekit.console import PrintableConsole
from tracekit.errors import EngineError, TracekitError, WorkerDiedError
from tracekit.interpreter import usable_cores
from tracekit.workloads.own_errors import kind_of

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future
    from multiprocessing.context import SpawnContext
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
        answers = _ask_processes(question, items, workers)
        with closing(answers):
            return _gathered(question, len(items), answers)
    return _gathered(question, len(items), (_answer(question.look, item) for item in items))


def _answer(look: Callable[[T], Found], item: T) -> Found | TracekitError:
    """An error is an answer too: executors differ in how they bring one back."""
    try:
        return look(item)
    except TracekitError as error:
        return error


class _Looked(Struct, Generic[Found], frozen=True):
    """What an executor is to bring back: whatever else it brings is not of this question."""

    answer: Found | TracekitError


def _look(look: Callable[[T], Found], item: T) -> _Looked[Found]:
    return _Looked(_answer(look, item))


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
    futures = []
    for item in items:
        with _said_of(question.named(item)):
            future = executor.submit(_look, question.look, item)
        if not callable(getattr(future, "result", None)):
            raise EngineError(f"submit() returned {kind_of(future)}: it must return a concurrent.futures.Future")
        futures.append(future)

    def answers() -> Iterator[Found | TracekitError]:
        for item, future in zip(items, futures, strict=True):
            try:
                with _said_of(question.named(item)):
                    looked = future.result()
                if not isinstance(looked, _Looked):
                    raise EngineError(f"the result of a call is {kind_of(looked)}: it must be what the call returned")
                yield looked.answer
            except WorkerDiedError as error:
                unless = "" if error.out_of_memory else "if memory ran out, "
                yield TracekitError(f"{question.named(item)}: {error}; {unless}{READ_ALONE}")

    return _gathered(question, len(items), answers())


@contextmanager
def _said_of(name: str) -> Iterator[None]:
    """What an engine raises by itself, as an EngineError."""
    try:
        yield
    except TracekitError:
        raise
    except (Exception, SystemExit) as error:
        raised = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        raise EngineError(f"{name}: the engine gave no answer: {raised}") from error


#: In a process that reads: a flag for each item, set while it is read.
_being_read: Any = None


def _begin(being_read: Any) -> None:
    global _being_read
    _being_read = being_read


def _answer_at(look: Callable[[T], Found], at: int, item: T) -> Found | TracekitError:
    _being_read[at] = 1
    answer = _answer(look, item)
    _being_read[at] = 0
    return answer


def _ask_processes(question: Question[T, Found], items: Sequence[T], workers: int) -> Generator[Found | TracekitError]:
    """In the order of the items. Where a process dies, nobody says what it read: what was being read is read again,
    each alone, then the rest. An error for one whose process dies then too."""
    # Forked processes would inherit polars' threads in the middle of their work.
    context = get_context("spawn")
    known: dict[int, Found | TracekitError] = {}
    told = 0
    while told < len(items):
        being_read = context.RawArray("b", len(items))
        futures: dict[int, Future[Found | TracekitError]] = {}
        left = [at for at in range(told, len(items)) if at not in known]
        children: list[BaseProcess] = []
        try:
            with _pool(context, min(workers, len(left)) or 1, being_read, children) as submit:
                for at in left:
                    futures[at] = submit(_answer_at, question.look, at, items[at])
                while told < len(items):
                    yield known.pop(told) if told in known else futures[told].result()
                    told += 1
        except BrokenProcessPool:
            if len(items) == 1:
                yield TracekitError(
                    f"{question.named(items[0])}: the process that read it alone {_how_ended(children)}; if memory ran"
                    " out, read it where there is more"
                )
                return
            known |= {at: each.result() for at, each in futures.items() if at >= told and each.exception() is None}
            begun = [at for at in left if being_read[at] and at >= told and at not in known]
            if not begun:
                raise TracekitError(f"a process that was to read {_how_ended(children)} before it began") from None
            for at in begun:
                (known[at],) = _ask_processes(question, [items[at]], 1)


@contextmanager
def _pool(
    context: SpawnContext, workers: int, being_read: Any, children: list[BaseProcess]
) -> Iterator[Callable[..., Future[Any]]]:
    """Gives what submits a call to processes; these go into `children`, and end with the block, at once after an
    error."""
    others = {each.pid for each in active_children()}
    with ProcessPoolExecutor(workers, context, _begin, (being_read,)) as pool:

        def submit(call: Callable[..., Any], *args: Any) -> Future[Any]:
            future = pool.submit(call, *args)
            children[:] = [each for each in active_children() if each.pid not in others]
            return future

        try:
            yield submit
        except BrokenProcessPool:
            # The others are ended, and all have an exit code.
            pool.shutdown()
            raise
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # Or each would read what it has begun, and one more.
            for process in children:
                process.terminate()
            raise


def _how_ended(children: Sequence[BaseProcess]) -> str:
    code = next((each.exitcode for each in children if each.exitcode), 0)
    return f"was ended by {Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


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
