"""How Python is kept from work that serves nobody."""

import gc
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.traces import ROOT

from tracekit.interpreter import collector_paused

#: Has a thread at work, one that waits for work, what is to be done at the end, and what is taken apart after it.
ENDING = """
import atexit, time
from concurrent.futures import ThreadPoolExecutor
from tracekit.interpreter import end_at_once

class Held:
    def __del__(self):
        print("taken apart")

held = Held()
atexit.register(print, "at the end")
threads = ThreadPoolExecutor(2)
threads.submit(lambda: None).result()
threads.submit(lambda: (time.sleep(0.2), print("worked")))
end_at_once(7)
"""


def test_the_end_waits_for_threads_does_what_is_to_be_done_and_takes_nothing_apart() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDING], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout.splitlines(), ended.stderr) == (7, ["worked", "at the end"], "")


#: Started without standard streams: what they are then, where a file goes that it opens, and what a child writes.
WITHOUT_STREAMS = """
import subprocess, sys
from tracekit.interpreter import fill_closed_streams

fill_closed_streams()
with open(sys.argv[1], "w") as file:
    subprocess.run(["sh", "-c", "echo of the child; echo of the child >&2"], check=True)
    print("lost")
    print("lost", file=sys.stderr)
    print(*(stream.fileno() for stream in (sys.stdin, sys.stdout, sys.stderr)), repr(sys.stdin.read()), file=file)
"""


def test_no_file_takes_the_place_of_a_standard_stream_that_is_closed(tmp_path: Path) -> None:
    place = tmp_path / "file.txt"
    closing = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", WITHOUT_STREAMS, str(place)]
    subprocess.run(closing, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60, check=True)
    assert place.read_text() == "0 1 2 ''\n"


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_is_off_inside_and_after_an_error_as_it_was_before(was_on: bool) -> None:
    before = gc.isenabled()
    (gc.enable if was_on else gc.disable)()
    try:
        with suppress(ZeroDivisionError), collector_paused():
            assert not gc.isenabled()
            raise ZeroDivisionError
        assert gc.isenabled() is was_on
    finally:
        (gc.enable if before else gc.disable)()
