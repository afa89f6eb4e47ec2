import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.traces import DATA, make_kernel, make_op, write_trace

from tracekit.model.trace import Trace
from tracekit.tracefile import cache, read
from tracekit.tracefile.read import read_trace


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SMALLEST_BYTES", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    return tmp_path / "cache"


def read_and_keep(path: Path, folder: Path, *, shapes: bool = False) -> Trace:
    """The entry is written when this returns."""
    trace = read_trace(path, cache_folder=folder, shapes=shapes)
    for thread in [each for each in threading.enumerate() if each.name == "tracekit-cache"]:
        thread.join()
    return trace


def same(a: Trace, b: Trace) -> bool:
    for each in Trace.__struct_fields__:
        one, other = getattr(a, each), getattr(b, each)
        if isinstance(one, pl.DataFrame):
            assert one.equals(other), each
            assert one.schema == other.schema, each
        else:
            assert one == other, each
    return True


def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the file itself was decoded")

    monkeypatch.setattr(read, "_read", fail)


def test_a_trace_comes_out_of_the_cache_as_it_was_read(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [make_kernel(0, 1), {**make_kernel(1, 2), "dur": -1}, make_op(0, 3)]
    own = write_trace(tmp_path, events, with_stack=1, tracekit={"form": "eager", "n": [1, 2]})
    first = {path: read_and_keep(path, folder) for path in (DATA / "vit_eager.json.zst", own)}
    no_reading(monkeypatch)
    assert all(same(read_trace(path, cache_folder=folder), trace) for path, trace in first.items())
    assert first[own].skipped == {"negative duration": 1}


def test_a_file_that_changed_is_read_anew_though_its_name_and_times_did_not(tmp_path: Path, folder: Path) -> None:
    path = write_trace(tmp_path, [make_kernel(0, 1)])
    stamp = path.stat()
    read_and_keep(path, folder)
    path.write_text(path.read_text().replace('"gemm"', '"conv"'))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert read_trace(path, cache_folder=folder).activities["name"].to_list() == ["conv"]


@pytest.mark.parametrize("file", ["activities.parquet", "host.parquet", "trace.json"])
@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_a_damaged_entry_is_made_anew(tmp_path: Path, folder: Path, file: str, damage: str) -> None:
    path = write_trace(tmp_path, [make_kernel(0, 1), make_op(0, 2)])
    first = read_and_keep(path, folder)
    (entry,) = folder.iterdir()
    if damage == "gone":
        (entry / file).unlink()
    else:
        (entry / file).write_bytes((entry / file).read_bytes()[:-20] if damage == "cut" else b'{"events": "many"}')
    assert same(read_and_keep(path, folder), first)
    assert same(cache.load(entry, str(path), "plain") or pytest.fail("no entry"), first)


def test_a_folder_that_cannot_be_written_to_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file stands here")
    path = write_trace(tmp_path, [make_kernel(0, 1)])
    assert read_and_keep(path, tmp_path / "cache").activities.height == 1


def test_small_files_are_not_kept(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SMALLEST_BYTES", 10_000)
    read_and_keep(write_trace(tmp_path, [make_kernel(0, 1)]), folder)
    assert not folder.exists()


def test_the_entries_not_used_for_longest_make_room(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: list[Path] = []
    for number in range(3):
        path = write_trace(tmp_path, [make_kernel(0, number + 1)])
        read_and_keep(path, folder)
        entries.append(cache.entry_of(path, folder, "plain"))
        os.utime(entries[-1], (number, number))
    # One that is read is used.
    assert cache.load(entries[0], "it", "plain") is not None
    size = sum(path.stat().st_size for path in entries[0].iterdir())
    monkeypatch.setattr(cache, "LARGEST_BYTES", int(size * 2.5))
    cache._make_room(folder)
    assert [entry.exists() for entry in entries] == [True, False, True]


@pytest.mark.parametrize("file", ["activities.parquet", "calls.parquet", "host.parquet", "trace.json"])
def test_no_flipped_bit_passes_for_another_figure(file: str, folder: Path) -> None:
    path = DATA / "vit_reduce-overhead.json.gz"
    first = read_and_keep(path, folder)
    (entry,) = folder.iterdir()
    sound = (entry / file).read_bytes()
    for position in random.Random(0).sample(range(len(sound)), 40):
        spoilt = bytearray(sound)
        spoilt[position] ^= 1 << position % 8
        (entry / file).write_bytes(spoilt)
        assert cache.load(entry, str(path), "plain") is None, position
    assert same(read_and_keep(path, folder), first)
