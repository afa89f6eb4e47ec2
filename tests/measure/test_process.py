import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from tests.stack_depths import count_crossings

from tracekit.files import MOST_LOG_BYTES
from tracekit.measure.process import call_in_one_chunk, output_kept, warnings_collected


def at_depth(depth: int) -> int:
    return at_depth(depth - 1) if depth else call_in_one_chunk(count_crossings)


def test_with_room_no_depth_is_dearer_than_others() -> None:
    if not count_crossings():
        pytest.skip("this Python keeps the chunk")
    assert [at_depth(depth) for depth in range(0, 200, 20)] == [0] * 10


def below_large_frames(frames: int) -> int:
    """The crossings below so many frames of 480 bytes at least."""
    return _below_large_frame(frames - 1) if frames else count_crossings(40)


_below_large_frame = FunctionType(below_large_frames.__code__.replace(co_stacksize=60), globals())


def test_there_is_room_for_nearly_a_thousand_frames_of_480_bytes() -> None:
    if not count_crossings():
        pytest.skip("this Python keeps the chunk")
    limit = sys.getrecursionlimit()
    # Pytest's own frames and those of its plugins count too.
    sys.setrecursionlimit(2 * limit)
    try:
        crossings = [call_in_one_chunk(lambda: below_large_frames(frames)) for frames in range(0, 800, 33)]  # noqa: B023
    except RecursionError:
        pytest.skip("this Python (3.12.0 to 3.12.2) has a limit of its own for frames of C")
    finally:
        sys.setrecursionlimit(limit)
    assert crossings == [0] * 25


def test_what_comes_back_and_what_is_raised_is_the_works() -> None:
    assert call_in_one_chunk(lambda: "done") == "done"
    with pytest.raises(ZeroDivisionError):
        call_in_one_chunk(lambda: 1 // 0)


CHATTER = """
import os, pathlib, subprocess, sys
from tracekit.measure.process import output_kept
with output_kept(pathlib.Path(sys.argv[1])):
    os.write(2, b"native chatter\\n")
    print("python chatter")
    subprocess.run(["echo", "a child's chatter"], check=True)
print("seen again")
"""


def test_of_a_log_without_end_both_ends_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    with output_kept(path):
        os.write(1, b"first\n" + b"x" * MOST_LOG_BYTES + b"\nlast\n")
    content = path.read_bytes()
    assert content.startswith(b"first\n") and content.endswith(b"\nlast\n") and len(content) < MOST_LOG_BYTES


def test_what_others_print_goes_into_a_file_and_not_to_the_terminal(tmp_path: Path) -> None:
    with output_kept(tmp_path / "none.log"):
        pass
    assert list(tmp_path.iterdir()) == [], "a file of no chatter is not kept"
    log = tmp_path / "output.log"
    found = subprocess.run([sys.executable, "-c", CHATTER, str(log)], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("seen again\n", "")
    assert sorted(log.read_text().splitlines()) == ["a child's chatter", "native chatter", "python chatter"]


def test_warnings_are_kept_once_by_their_first_line_and_cost_one_call_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    real = warnings.WarningMessage
    monkeypatch.setattr(warnings, "WarningMessage", lambda *told, **more: made.append(told) or real(*told, **more))
    with warnings_collected() as found:
        for _ in range(100):
            warnings.warn("TF32 is off\nlong story", stacklevel=1)
        warnings.warn("old name", DeprecationWarning, stacklevel=1)
    assert found == ["TF32 is off"]
    assert len(made) == 1
