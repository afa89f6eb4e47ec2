import gzip
import io
import json
import os
import sys
import threading
from pathlib import Path

import pytest
import zstandard
from tests.traces import make_kernel, write_trace

from tracekit.errors import TracekitError
from tracekit.tracefile.read import read_trace
from tracekit.tracefile.source import by_rank, refuse_ranks, trace_of_rank


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write_trace(tmp_path, [make_kernel(0, 1), make_kernel(2, 3)])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_the_packing_is_told_by_the_content_not_by_the_name(plain: Path, pack: object) -> None:
    plain.write_bytes(pack(plain.read_bytes()))  # type: ignore[operator]
    assert read_trace(plain).activities.height == 2


def test_standard_input_is_a_trace_too(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(plain.read_bytes())))
    told: list[tuple[int, int | None]] = []
    trace = read_trace(Path("-"), on_bytes=lambda done, total: told.append((done, total)))
    assert (trace.path, trace.activities.height) == ("standard input", 2)
    assert told[-1] == (trace.bytes, None)


def test_a_folder_with_one_trace_is_that_trace(plain: Path) -> None:
    (plain.parent / "notes.txt").write_text("words")
    assert read_trace(plain.parent).path == str(plain)


def test_a_folder_of_several_traces_asks_for_one(plain: Path) -> None:
    (plain.parent / "rank1.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
    with pytest.raises(TracekitError, match=r"holds 2 traces.*\(rank1.json.gz, trace.json\)"):
        read_trace(plain.parent)


def test_a_url_is_read_through_fsspec(plain: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://bucket/trace.json.gz", "wb") as file:
        file.write(gzip.compress(plain.read_bytes()))
    assert read_trace("memory://bucket/trace.json.gz").activities.height == 2
    assert read_trace(f"file://{plain}").activities.height == 2


@pytest.mark.parametrize(
    ("url", "message"),
    [("memory://nowhere.json", "check the URL"), ("gopher://host/trace.json", "cannot be read: Value")],
)
def test_a_url_that_leads_nowhere_is_one_line(url: str, message: str) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(TracekitError, match=message):
        read_trace(url)


@pytest.mark.parametrize(("url", "package"), [("s3://bucket/trace.json", "s3fs"), ("https://host/x.json", "aiohttp")])
def test_a_url_whose_file_system_is_not_installed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, url: str, package: str
) -> None:
    pytest.importorskip("fsspec")
    registry = sys.modules["fsspec.registry"]._registry  # type: ignore[attr-defined]
    for name in ("s3", "https"):
        monkeypatch.delitem(registry, name, raising=False)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    said = rf"^{url} .*{package}.*: pip install '\.\[remote\]' in tracekit's checkout$"
    with pytest.raises(TracekitError, match=said):
        read_trace(url)


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fsspec", "fsspec.core"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TracekitError, match=r"needs fsspec: pip install '\.\[remote\]'"):
        read_trace("https://host/trace.json")


def test_a_pipe_is_read_once(plain: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(plain.read_bytes()))
    writer.start()
    trace = read_trace(pipe, cache_folder=tmp_path / "cache")
    writer.join()
    assert trace.activities.height == 2


def recording(path: Path, rank: int | None) -> Path:
    job = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 8}}
    text = json.dumps({"schemaVersion": 1, **job, "traceEvents": []}).encode()
    packed = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}.get(path.suffix)
    path.write_bytes(packed(text) if packed else text)
    return path


def test_what_a_recording_says_comes_before_its_name(tmp_path: Path) -> None:
    files = [
        recording(tmp_path / "rank0.json", 3),
        recording(tmp_path / "a.json.gz", 1),
        recording(tmp_path / "b.json.zst", 2),
        recording(tmp_path / "rank1_worker-7.json", None),
        recording(tmp_path / "eager.json", None),
    ]
    assert by_rank(files) == {1: [files[1]], 2: [files[2]], 3: [files[0]], 7: [files[3]]}


@pytest.mark.parametrize("content", [b"", b"\x1f\x8bno gzip", b"\x28\xb5\x2f\xfdno zstd", b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_told_by_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rank4.json.gz"
    path.write_bytes(content)
    assert by_rank([path]) == {4: [path]}


def test_one_rank_is_chosen_where_there_is_one_trace_of_it(tmp_path: Path) -> None:
    wanted = recording(tmp_path / "x.json", 1)
    recording(tmp_path / "y.json", 0)
    recording(tmp_path / "z.json", 0)
    assert trace_of_rank(tmp_path, 1) == wanted
    for rank in (0, 2):
        with pytest.raises(TracekitError):
            trace_of_rank(tmp_path, rank)


def test_only_a_folder_of_several_ranks_is_refused(tmp_path: Path) -> None:
    recording(tmp_path / "x.json", 0)
    recording(tmp_path / "y.json", 0)
    refuse_ranks(tmp_path)
    recording(tmp_path / "z.json", 1)
    with pytest.raises(TracekitError, match="tracekit ranks"):
        refuse_ranks(tmp_path)
