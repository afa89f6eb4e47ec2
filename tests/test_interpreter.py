"""How Python is kept from work that serves nobody."""

import gc
import subprocess
import sys
from contextlib import suppress

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
