import faulthandler
import os
import signal
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from tracekit.model.child import ERROR_OF_RANK, RankFailure
from tracekit.walks import rank_process
from tracekit.walks.job import RANK, RankJob, encoded


def test_an_error_of_several_lines_is_told_in_one_and_its_traceback_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> NoReturn:
        raise RuntimeError("CUDA error: misaligned address\nCompile with TORCH_USE_CUDA_DSA to enable assertions.\n")

    for module, name in ((rank_process, "end_with"), (signal, "signal"), (faulthandler, "register")):
        monkeypatch.setattr(module, name, lambda *_, **__: None)
    monkeypatch.setattr(rank_process, "work", fail)
    monkeypatch.setattr(os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))
    monkeypatch.setenv(RANK, "1")
    (tmp_path / "job").write_bytes(encoded(RankJob(2)))
    with pytest.raises(SystemExit):
        rank_process.main(tmp_path / "job")
    failure = msgspec.json.decode((tmp_path / ERROR_OF_RANK.format(1)).read_bytes(), type=RankFailure)
    assert failure.message == "RuntimeError: CUDA error: misaligned address"
    assert "TORCH_USE_CUDA_DSA" in failure.traceback and not failure.timed_out
