import gzip
import json
from pathlib import Path

import pytest
import zstandard

from tracekit.errors import TracekitError
from tracekit.tracefile.source import by_rank, refuse_ranks, trace_of_rank


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
