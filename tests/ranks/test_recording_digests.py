"""What `tracekit.record(digest=True)` writes beside a trace."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tests.traces import make_kernel, write_trace

torch = pytest.importorskip("torch")

import tracekit  # noqa: E402


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


def test_what_is_recorded_is_digested_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_a_gpu(raw: Path, out: Path, **_: Any) -> None:
        write_trace(tmp_path, [make_kernel(0, 1)]).rename(out)

    with pytest.warns(UserWarning, match="no digest.* GPU"), tracekit.record("traces/cpu", digest=True):
        torch.ones(1)
    monkeypatch.setattr("tracekit.tracefile.publish.publish", of_a_gpu)
    written = []
    for digest in (True, False):
        with tracekit.record("traces/gpu", force=True, digest=digest):
            torch.ones(1)
        written.append(sorted(path.name for path in Path("traces/gpu").iterdir()))
    assert written == [["trace.digest", "trace.json.gz"], ["trace.json.gz"]]


def test_a_digest_that_cannot_be_written_is_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_a_gpu(raw: Path, out: Path, **_: Any) -> None:
        write_trace(tmp_path, [make_kernel(0, 1)]).rename(out)

    monkeypatch.setattr("tracekit.tracefile.publish.publish", of_a_gpu)
    with (
        pytest.warns(UserWarning, match=f"no digest.*: {os.strerror(errno.EISDIR)}") as warned,
        tracekit.record("traces/gpu", digest=True),
    ):
        Path("traces/gpu/trace.digest").mkdir()
    assert len(warned) == 1
    assert sorted(path.name for path in Path("traces/gpu").iterdir()) == ["trace.digest", "trace.json.gz"]
