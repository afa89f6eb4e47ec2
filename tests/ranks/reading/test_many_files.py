"""Who reads is nobody's concern but the user's: the answers are the same."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tracekit.errors import TracekitError
from tracekit.measure.engines import opened_engine
from tracekit.ranks.reading import many_files
from tracekit.ranks.reading.many_files import Question, ask_each

FACTORIES = """
import asyncio
from concurrent.futures import Executor, Future, ThreadPoolExecutor

def threads():
    return ThreadPoolExecutor(2)

def nothing():
    return None

def down():
    raise ConnectionError("no scheduler\\nat 10.0.0.7")

def ended():
    raise SystemExit(3)

def sized(workers):
    return ThreadPoolExecutor(workers)

def answers(submit):
    return type("Odd", (Executor,), {"submit": lambda self, *asked: submit()})()

def done(result):
    future = Future()
    future.set_result(result)
    return future

def no_future():
    return answers(lambda: None)

def no_answer():
    return answers(lambda: done(None))

def an_error():
    return answers(lambda: done(ValueError("told")))

def never_asked():
    return answers(lambda: asyncio.Future(loop=asyncio.new_event_loop()))
"""


@pytest.fixture
def my_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "my_engines.py").write_text(FACTORIES)
    (tmp_path / "my_mistake.py").write_text("def make(:")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("my_engines", None)


@pytest.mark.usefixtures("my_engines")
def test_an_engine_is_shut_down_in_the_end_and_after_an_error() -> None:
    with opened_engine("my_engines:threads") as executor:
        assert executor is not None and executor.submit(len, "it").result() == 2
    with pytest.raises(RuntimeError):
        executor.submit(len, "it")
    with pytest.raises(KeyboardInterrupt), opened_engine("my_engines:threads") as executor:
        raise KeyboardInterrupt
    assert executor is not None
    with pytest.raises(RuntimeError):
        executor.submit(len, "it")


class Failing(Executor):
    """Loses what it was given, as a cluster does whose node is gone."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        lost: Future[Any] = Future()
        lost.set_exception(ConnectionError("node 7 is gone"))
        return lost


def test_an_engine_without_an_answer_is_one_line_with_the_file() -> None:
    with pytest.raises(TracekitError, match=r"rank3\.json: .* ConnectionError: node 7 is gone"):
        ask_each(Question(len), ["rank3.json"], 0, Failing())


def refuse_odd(number: int) -> int:
    if number % 2:
        raise TracekitError(f"{number} is odd")
    return number


def test_what_is_refused_may_be_said_and_left_out() -> None:
    refused: list[TracekitError] = []
    question = Question(refuse_odd, refused=refused.append)
    with ThreadPoolExecutor(2) as threads:
        answers = [ask_each(question, range(5), 0, executor) for executor in (None, threads)]
    assert answers == [[0, 2, 4]] * 2
    assert [str(each) for each in refused] == ["1 is odd", "3 is odd"] * 2


def die_at_two(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_where_a_process_dies_the_others_are_read_and_its_file_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_files, "WORTH_A_PROCESS_BYTES", 0)
    monkeypatch.setattr(many_files, "usable_cores", lambda: 2)
    refused: list[TracekitError] = []
    question = Question(die_at_two, "rank{}.json".format, refused.append)
    assert ask_each(question, range(6), 1) == [0, 1, 3, 4, 5]
    (died,) = map(str, refused)
    assert died.startswith("rank2.json: ") and "SIGKILL" in died


class OfOldTimes(ThreadPoolExecutor):
    """Shuts down as Dask's does."""

    def shutdown(self, wait: bool = True) -> None:  # type: ignore[override]
        super().shutdown(wait=wait)


def test_an_executor_that_cannot_cancel_shows_the_error_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "made", lambda: OfOldTimes(1), raising=False)
    with pytest.raises(ValueError, match="theirs"), opened_engine(f"{__name__}:made"):
        raise ValueError("theirs")
