from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tracekit.capture.failures import explained, out_of_memory_explained  # noqa: E402
from tracekit.capture.inductor_cache import check_cache  # noqa: E402
from tracekit.errors import TracekitError  # noqa: E402

from ..sides import make_settings  # noqa: E402


def test_a_tensor_larger_than_the_machine_is_a_line_with_what_to_do() -> None:
    with (
        pytest.raises(TracekitError, match=r"not enough memory at size tiny \(.*8192\d+ bytes\); pass"),
        out_of_memory_explained("tiny"),
    ):
        torch.empty(8192000000000000, dtype=torch.uint8)


def test_other_errors_of_torch_keep_their_traceback() -> None:
    with pytest.raises(RuntimeError, match="shape"), out_of_memory_explained("tiny"):
        torch.ones(2).view(3)


def test_a_full_cache_is_told_with_the_variables_that_move_it() -> None:
    from torch._dynamo.exc import TorchDynamoException

    with (
        pytest.raises(TracekitError, match="set TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR and TMPDIR"),
        explained(make_settings()),
    ):
        raise TorchDynamoException("backend failed") from OSError(28, "No space left on device")
    with pytest.raises(TracekitError, match="`tracekit doctor` checks the compilers"), explained(make_settings()):
        raise TorchDynamoException("backend failed") from RuntimeError("no C++ compiler")


def test_a_cache_that_cannot_be_written_to_is_said_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    check_cache()
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(TracekitError, match="set TORCHINDUCTOR_CACHE_DIR to a folder that can be written to"):
        check_cache()
