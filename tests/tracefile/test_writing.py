"""Whatever this room writes goes through no link; what holds of every write is tested in `tests/test_files.py`."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tracekit.tracefile.hta import export_for_hta
from tracekit.tracefile.perfetto import write_picture
from tracekit.tracefile.publish import publish

from ..pictures import make_picture, make_track
from ..traces import make_kernel, write_trace

EVENTS = 300


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
