"""Whatever this room writes: through no link, into no draft that somebody else writes, whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracekit.tracefile.hta import export_for_hta
from tracekit.tracefile.perfetto import write_picture
from tracekit.tracefile.publish import publish

from ..pictures import make_picture, make_track
from ..traces import make_kernel, write_trace

ROOT = Path(__file__).parents[2]
#: Enough that writing takes a while.
EVENTS = 3000


def write_perfetto(folder: Path, work: Path) -> Path:
    track = make_track("GPU 0 stream 7", *((1000 * i, 1000 * i + 500) for i in range(EVENTS)))
    write_picture(make_picture((track,)), folder / "perfetto.json.gz")
    return folder / "perfetto.json.gz"


def write_hta(folder: Path, work: Path) -> Path:
    return export_for_hta(write_trace(work, [make_kernel(i, i + 0.5) for i in range(EVENTS)]), folder)


def write_published(folder: Path, work: Path) -> Path:
    raw = write_trace(work, [make_kernel(i, i + 0.5) for i in range(EVENTS)])
    publish(raw, folder / "eager-light.json.gz", metadata={}, marks=())
    return folder / "eager-light.json.gz"


Writer = Callable[[Path, Path], Path]
every_writer = pytest.mark.parametrize("write", [write_perfetto, write_hta, write_published])


def is_whole(path: Path) -> bool:
    return len(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]) >= EVENTS


class Watch:
    """Notes what this process opens for writing. A hook cannot be removed, so there is one."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.opened: list[tuple[str, int]] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.folder is None or event != "open":
            return
        path, _, flags = arguments
        if isinstance(path, (str, os.PathLike)) and isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
            place = Path(os.path.abspath(path))  # noqa: PTH100 (no link is to be followed)
            if place.is_relative_to(self.folder):
                self.opened.append((place.name, flags))

    @contextmanager
    def watching(self, folder: Path) -> Iterator[list[tuple[str, int]]]:
        self.folder, self.opened = folder, []
        try:
            yield self.opened
        finally:
            self.folder = None


WATCH = Watch()


@every_writer
@pytest.mark.parametrize("target", ["victim", "absent", "/dev/null", "pipe", "folder"])
def test_a_link_under_the_files_name_is_replaced_and_not_followed(tmp_path: Path, write: Writer, target: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "victim").write_text("precious")
    os.mkfifo(tmp_path / "pipe")
    name = write(tmp_path / "out", tmp_path).name
    (tmp_path / "out" / name).unlink()
    (tmp_path / "out" / name).symlink_to(tmp_path / target)
    made = write(tmp_path / "out", tmp_path)
    assert not made.is_symlink() and is_whole(made)
    assert (tmp_path / "victim").read_text() == "precious"
    assert list((tmp_path / "folder").iterdir()) == []
    assert not (tmp_path / "absent").exists()
    assert Path(os.devnull).is_char_device()


@every_writer
def test_whatever_is_opened_to_write_is_a_new_file_of_a_name_nobody_can_foresee(tmp_path: Path, write: Writer) -> None:
    out = tmp_path / "out"
    out.mkdir()
    names = []
    for _ in range(3):
        with WATCH.watching(out) as opened:
            write(out, tmp_path)
        assert opened
        assert all(flags & os.O_EXCL for _, flags in opened), opened
        names += [name for name, _ in opened]
    assert len(set(names)) == len(names)
    assert len(list(out.iterdir())) == 1


#: Writes as soon as all of them are ready, and says so before.
ONE_OF_SEVERAL = """
import sys
from pathlib import Path
from tests.tracefile import test_writing
write, out, work = getattr(test_writing, sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
work.mkdir()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(4):
    write(out, work)
"""


@every_writer
def test_processes_at_once_leave_a_whole_file_which_readers_never_see_half_of(tmp_path: Path, write: Writer) -> None:
    out = tmp_path / "out"
    out.mkdir()
    made = write(out, tmp_path)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", ONE_OF_SEVERAL, write.__name__, str(out), str(tmp_path / str(number))],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for each in writers:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in writers:
        assert each.stdin is not None
        print(file=each.stdin, flush=True)
    while any(each.poll() is None for each in writers):
        assert is_whole(made)
    assert [each.communicate()[1] for each in writers] == [""] * 2
    assert [each.returncode for each in writers] == [0] * 2
    assert is_whole(made)
    assert list(out.iterdir()) == [made]
