"""What is said when torch.compile cannot do what it was asked, on this machine and on others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.capture.conftest import Block, make_settings, make_workload  # noqa: E402

from tracekit.capture import compilers, failures, forms, warmup  # noqa: E402
from tracekit.capture.compilation import compile_errors  # noqa: E402
from tracekit.capture.failures import explained, out_of_memory_explained  # noqa: E402
from tracekit.capture.inductor_cache import check_cache  # noqa: E402
from tracekit.errors import CompileError, TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import CompileTarget  # noqa: E402


class Branching(Block):
    def forward(self, x: Any) -> Any:
        x = super().forward(x)
        if x.sum() > 0:  # the line
            x = x + 1
        return x


LINE = next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith("# the line"))


def compiled(block: Any, **settings: Any) -> Any:
    """Warms the compiled form up."""
    workload = make_workload(lambda: block(torch.randn(4, 8)), (CompileTarget("block", block),), **settings)
    return warmup.warm_up(forms.compiled_form(workload), Silent())


def test_a_break_under_fullgraph_is_its_line_its_reason_and_two_ways_out(capfd: Any) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(Branching().eval())
    message = str(caught.value)
    assert message.startswith("block does not compile as one graph: Data-dependent branching at ")
    assert f"test_failures.py:{LINE} in forward" in message
    assert "Two ways out: pass --no-fullgraph" in message
    assert message.endswith("or mend the line")
    assert caught.value.below[0] == "  if x.sum() > 0:  # the line"
    assert "Traceback" in capfd.readouterr().err, "torch's own text goes where the run's log is written"


def test_the_same_break_without_fullgraph_is_none() -> None:
    found = compiled(Branching().eval(), fullgraph=False)
    # Before the branch, and after it.
    assert found.compilation.graphs == 2


def backend_failure(cause: Exception) -> Exception:
    """What Inductor's failures come as."""
    from torch._inductor.exc import InductorError

    frame: Any = None
    error: Exception = InductorError(cause, frame)
    return error


def told(error: Exception, **settings: Any) -> CompileError:
    with pytest.raises(CompileError) as caught, failures.explained(make_settings(**settings)):
        raise error
    return caught.value


def test_what_inductor_cannot_make_is_told_with_the_user_s_line() -> None:
    text = 'no lowering\n  File "/x/site-packages/torch/a.py", line 3, in g\n    g()\n'
    mine = '  File "/home/me/models/mine.py", line 12, in forward\n    return strange(x)\n'
    found = told(backend_failure(ValueError(text + mine)))
    assert "torch.compile failed on block at mine.py:12 in forward: ValueError: no lowering." in str(found)
    assert "tracekit doctor" in str(found)
    assert found.below == ("  return strange(x)",)


def test_memory_that_runs_out_while_compiling_is_said_to_be_that() -> None:
    found = told(backend_failure(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")))
    assert str(found).startswith("not enough GPU memory to compile block (CUDA out of memory. Tried to allocate 2.00")
    assert "--mode" not in str(found)
    tuned = told(backend_failure(torch.OutOfMemoryError("CUDA out of memory.")), mode="max-autotune")
    assert "--mode default (tuning tries many kernels)" in str(tuned)


def test_a_scope_that_dynamo_passes_over_is_no_traceback() -> None:
    found = told(RuntimeError("torch.compile with fullgraph=True found no compiled frames. Skipped frames:\n - f"))
    assert str(found) == "torch.compile passes over all of block: pass a larger --scope, or --no-fullgraph"


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"), failures.explained(make_settings()):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_sizes_that_never_end_are_no_traceback() -> None:
    block, sizes = Block().eval(), iter(range(2, 20))
    call = lambda: block(torch.randn(next(sizes), 8))  # noqa: E731
    workload = make_workload(call, (CompileTarget("block", block),), dynamic=False)
    # Not by monkeypatch, which hides the setting from every later test.
    limited = torch._dynamo.config.patch(recompile_limit=2)
    with limited, pytest.raises(CompileError, match="compiled again and again"):
        warmup.warm_up(forms.compiled_form(workload), Silent())


def test_torch_names_its_errors_as_tracekit_knows_them() -> None:
    unsupported, failed = compile_errors()
    assert issubclass(unsupported, failed)
    assert isinstance(backend_failure(ValueError()), failed)
    assert failures.recompile_limit_errors()


def test_no_cpp_compiler_is_said_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import cpp_builder, exc

    def none() -> str:
        raise exc.InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", none)
    with pytest.raises(TracekitError, match=r"needs a C\+\+ compiler .* apt install g\+\+"):
        compilers.check_compilers("cpu")


def pretend_gpu(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], hip: str | None = None) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla P100")
    monkeypatch.setattr(torch.version, "hip", hip)


def test_a_gpu_that_triton_knows_no_more_is_said_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_gpu(monkeypatch, (6, 0))
    with pytest.raises(TracekitError, match=r"Tesla P100 has compute capability 6\.0, .* 7\.0 \(Volta\) and newer"):
        compilers.check_compilers("cuda")


def test_amd_gpus_count_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_gpu(monkeypatch, (6, 0), hip="6.4")
    assert compilers.too_old() is None


def test_a_missing_triton_is_named_as_this_torch_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from tracekit.capture import inductor

    pretend_gpu(monkeypatch, (9, 0))
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setattr(inductor.metadata, "requires", lambda _name: ["numpy", "triton==3.6.0; platform_system"])
    with pytest.raises(TracekitError, match=r"needs triton on a GPU .* pip install 'triton==3\.6\.0'"):
        compilers.check_compilers("cuda")


@pytest.mark.parametrize(("mode", "idle"), [("reduce-overhead", True), ("max-autotune", True), ("default", False)])
def test_a_mode_that_asks_a_cpu_for_cuda_graphs_is_said_to_do_nothing_there(mode: str, idle: bool) -> None:
    assert (compilers.idle_mode(make_settings(mode=mode)) is not None) is idle
    assert compilers.idle_mode(make_settings(mode=mode, device="cuda")) is None


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
