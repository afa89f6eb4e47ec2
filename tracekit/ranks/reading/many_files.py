"""One question asked of many files, here or by an executor. Nothing is scheduled, queued or tried again by tracekit."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from multiprocessing import active_children, get_context
from signal import Signals
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from msgspec import Struct

from tracekit.console import PrintableConsole
from tracekit.errors import EngineError, TracekitError, WorkerDiedError
from tracekit.interpreter import usable_cores
from tracekit.workloads.own_errors import kind_of

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future
    from multiprocessing.process import BaseProcess

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


class _Answer(Struct, Generic[Found], frozen=True):
    """What was found, or why nothing was: executors differ in how they bring an error back, and whatever else one
    brings is not of this question."""

    found: Found | None = None
    error: TracekitError | None = None


def ask_each(
    question: Question[T, Found], items: Sequence[T], unpacked_bytes: int, executor: Executor | None = None
) -> list[Found]:
    """The answers in the order of `items`: by the executor, or by processes of this machine where there is enough to
    read in all. Raises TracekitError where one who reads dies, and names the item."""
    workers = min(len(items), usable_cores())
    if executor is not None:
        answers = _ask_executor(question, items, executor)
    elif workers > 1 and unpacked_bytes >= WORTH_A_PROCESS_BYTES * workers:
        answers = _ask_processes(question, items, workers)
    else:
        answers = (_answer(question.look, item) for item in items)
    found: list[Found] = []
    with closing(answers), _progress(question.doing, len(items)) as advance:
        for answer in answers:
            if answer.error is not None:
                question.refused(answer.error)
            else:
                found.append(answer.found)  # type: ignore[arg-type]
            advance()
    return found


def _answer(look: Callable[[T], Found], item: T) -> _Answer[Found]:
    try:
        return _Answer(look(item))
    except TracekitError as error:
        return _Answer(error=error)


def _ask_executor(question: Question[T, Found], items: Sequence[T], executor: Executor) -> Generator[_Answer[Found]]:
    futures = []
    for item in items:
        with _said_of(question.named(item)):
            future = executor.submit(_answer, question.look, item)
        if not callable(getattr(future, "result", None)):
            raise EngineError(f"submit() returned {kind_of(future)}: it must return a concurrent.futures.Future")
        futures.append(future)
    for item, future in zip(items, futures, strict=True):
        try:
            with _said_of(question.named(item)):
                answer = future.result()
            if not isinstance(answer, _Answer):
                raise EngineError(f"the result of a call is {kind_of(answer)}: it must be what the call returned")
            yield answer
        except WorkerDiedError as error:
            unless = "" if error.out_of_memory else "if memory ran out, "
            yield _Answer(error=TracekitError(f"{question.named(item)}: {error}; {unless}{READ_ALONE}"))


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


def _ask_processes(question: Question[T, Found], items: Sequence[T], workers: int) -> Generator[_Answer[Found]]:
    """In the order of the items. Where a process dies, nobody says what it read: one process reads on, item by item,
    until it dies too. What it read then is an error, and several go on."""
    known: dict[int, _Answer[Found]] = {}
    told, alone = 0, False
    others = {each.pid for each in active_children()}
    while told < len(items):
        left = [at for at in range(told, len(items)) if at not in known]
        children: list[BaseProcess] = []
        futures: dict[int, Future[_Answer[Found]]] = {}
        # Forked processes would inherit polars' threads in the middle of their work.
        with ProcessPoolExecutor(1 if alone else min(workers, len(left)) or 1, get_context("spawn")) as pool:
            began = pool.submit(int)
            try:
                for at in left:
                    futures[at] = pool.submit(_answer, question.look, items[at])
                    children = [each for each in active_children() if each.pid not in others]
                while told < len(items):
                    yield known.pop(told) if told in known else futures[told].result()
                    told += 1
            except BrokenProcessPool:
                # Then the others are ended, and all have an exit code.
                pool.shutdown()
                known |= {at: each.result() for at, each in futures.items() if at >= told and each.exception() is None}
                if alone and began.exception() is not None:
                    raise TracekitError(f"no process can begin to read: one {_how_ended(children)}") from None
                if alone:
                    died = next(at for at in left if at >= told and at not in known)
                    how = f"the process that read it alone {_how_ended(children)}"
                    unread = f"{question.named(items[died])}: {how}; if memory ran out, read it where there is more"
                    known[died] = _Answer(error=TracekitError(unread))
                alone = not alone
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
    if not console.is_terminal:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda: bar.advance(task)
