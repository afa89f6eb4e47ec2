"""What is said when torch.compile cannot do what it was asked, on this machine and on others."""

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.conftest import Block, make_settings, make_workload

from tracekit.errors import CompileError, TracekitError
from tracekit.measure import forms
from tracekit.measure.failures import explained, is_out_of_memory, out_of_memory_explained
from tracekit.model.progress import Silent
from tracekit.model.run import UserModel
from tracekit.model.workload import CompileTarget

RAN_OUT = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


class Branching(Block):
    def forward(self, x: Any) -> Any:
        x = super().forward(x)
        if x.sum() > 0:  # the line
            x = x + 1
        return x


class Asking(Block):
    def forward(self, x: Any) -> Any:
        x = super().forward(x)
        if x.sum().item() > 0:  # the question
            x = x + 1
        return x


class Counting(Block):
    def forward(self, x: Any) -> Any:
        for _ in range(x.abs().max().long().item()):  # the count
            x = super().forward(x)
        return x


def compiled(block: Any, **settings: Any) -> Any:
    """Warms the compiled form up, which is called with more rows from call to call."""
    rows = iter(range(4, 99))
    target = CompileTarget("block", block.eval())
    workload = make_workload(lambda: block(torch.randn(next(rows), 8)), (target,), **settings)
    return forms.warm_up(forms.compiled_form(workload), Silent())


@pytest.mark.usefixtures("dynamo_alone")
@pytest.mark.parametrize(
    ("block", "mark", "reason", "mend"),
    [
        (Branching, "the line", "Data-dependent branching at ", "--no-fullgraph"),
        (Asking, "the question", "", "torch.where"),
        (Counting, "the count", "", "Python number"),
    ],
)
def test_a_break_under_fullgraph_is_its_line_its_reason_and_two_ways_out(
    block: Any, mark: str, reason: str, mend: str, capfd: Any
) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(block())
    message, lines = str(caught.value), Path(__file__).read_text().splitlines()
    line = next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))
    assert message.startswith("block does not compile as one graph: ") and reason in message
    assert f"test_failures.py:{line} in forward" in message
    # In torch 2.9 a number read from a tensor breaks the graph where it is read, whatever is then done with it.
    assert "--no-fullgraph" in message and (mend in message or "Tensor.item() call" in message)
    assert caught.value.below[0].endswith(f"# {mark}")
    assert len(caught.value.below) == 2, "torch's hint, or its words"
    assert "Traceback" in capfd.readouterr().err, "torch's own text goes where the run's log is written"


@pytest.mark.usefixtures("dynamo_alone")
def test_without_fullgraph_there_is_no_break_and_a_program_says_it_in_its_way() -> None:
    # Before the branch, and after it.
    assert compiled(Branching(), fullgraph=False).compilation.graphs >= 2
    with pytest.raises(CompileError, match=re.escape('compile={"fullgraph": False}')):
        compiled(Branching(), own=UserModel(in_program=True))


@pytest.mark.usefixtures("dynamo_alone")
def test_sizes_that_never_end_are_no_traceback() -> None:
    # Not by monkeypatch, which hides the setting from every later test.
    limited = torch._dynamo.config.patch(recompile_limit=2)
    with limited, pytest.raises(CompileError, match="recompile limit"):
        compiled(Block(), dynamic=False)


def backend_failure(cause: Exception) -> Exception:
    """What Inductor's failures come as."""
    from torch._inductor.exc import InductorError

    frame: Any = None
    error: Exception = InductorError(cause, frame)
    return error


def raised_for(error: Exception, **settings: Any) -> CompileError:
    with pytest.raises(CompileError) as caught, explained(make_settings(**settings)):
        raise error
    return caught.value


def test_what_inductor_cannot_make_is_told_with_the_user_s_line() -> None:
    text = 'no lowering\n  File "/x/site-packages/torch/a.py", line 3, in g\n    g()\n'
    mine = '  File "/home/me/models/mine.py", line 12, in forward\n    return strange(x)\n'
    found = raised_for(backend_failure(ValueError(text + mine)))
    assert "torch.compile failed on block at mine.py:12 in forward: ValueError: no lowering." in str(found)
    assert found.below == ("  return strange(x)",)


def test_memory_that_runs_out_while_compiling_is_said_to_be_that() -> None:
    found = str(raised_for(backend_failure(RAN_OUT)))
    assert found.startswith("not enough GPU memory to compile block (CUDA out of memory. Tried to allocate 2.00")
    assert "--mode" not in found
    assert "--mode default" in str(raised_for(backend_failure(RAN_OUT), mode="max-autotune"))


@pytest.mark.parametrize(
    ("error", "mend"),
    [
        (RuntimeError("torch.compile with fullgraph=True found no compiled frames. Skipped:"), "or --no-fullgraph"),
        (RuntimeError("These storage data ptrs are not allocated in pool (0, 1)"), "TORCHINDUCTOR_GRAPH_PARTITION=0"),
        (backend_failure(OSError(28, "No space left on device")), "TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR and"),
        (backend_failure(RuntimeError("no C++ compiler")), "`tracekit doctor`"),
        # As torch passes it on: by its words.
        (backend_failure(RuntimeError("RecursionError: maximum recursion depth")), "sys.setrecursionlimit(10_000)"),
    ],
)
def test_what_is_known_of_an_error_is_said_with_what_mends_it(error: Exception, mend: str) -> None:
    assert mend in str(raised_for(error))


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"), explained(make_settings()):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError, match="shape"), out_of_memory_explained("tiny", "call less"):
        torch.ones(2).view(3)


def test_a_tensor_larger_than_the_machine_is_a_line_with_what_to_do() -> None:
    said = r"not enough memory at size tiny \(.*8192\d+ bytes\); call less, or "
    with pytest.raises(TracekitError, match=said) as caught, out_of_memory_explained("tiny", "call less"):
        torch.empty(8192000000000000, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)


@pytest.mark.parametrize("broken", [b"", b"\x7fELF", b"no library at all" * 9])
def test_a_library_that_a_killed_compilation_left_unfinished_is_told_with_what_removes_it(
    broken: bytes, tmp_path: Path
) -> None:
    left = tmp_path / "kernel.main.so"
    left.write_bytes(broken)
    # What the loader itself says of it.
    with pytest.raises(OSError, match=r"kernel\.main\.so") as said:
        ctypes.CDLL(str(left))
    assert f"`rm {left}`" in str(raised_for(backend_failure(ImportError(str(said.value)))))


def raised(error: Exception, *, cause: Exception | None = None, handling: Exception | None = None) -> Exception:
    """The error as it is raised from its cause, or while another one is handled."""
    error.__cause__, error.__context__ = cause, handling
    return error


@pytest.mark.parametrize(
    ("error", "ran_out"),
    [
        # Its own error, only raised meanwhile; a compiler's is what it met.
        (raised(KeyError("missing"), handling=RAN_OUT), False),
        (
            raised(backend_failure(ValueError("none")), handling=RuntimeError("Triton Error [CUDA]: out of memory")),
            True,
        ),
        (raised(ValueError("no image"), cause=RAN_OUT), True),
        (raised(TracekitError("in our words"), cause=RAN_OUT), True),
        (backend_failure(RAN_OUT), True),
        (backend_failure(ValueError("no lowering")), False),
        # The allocators' own words, and others.
        (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: 8 bytes"),
            True,
        ),
        (RuntimeError("out of memory is handled elsewhere"), False),
        (RuntimeError("this queue is out of memory cards"), False),
    ],
)
def test_only_what_memory_that_ran_out_led_to_counts_as_that(error: Exception, ran_out: bool) -> None:
    assert is_out_of_memory(error) is ran_out
