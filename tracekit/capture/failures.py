"""torch's own errors, said in one line with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tracekit.capture.compilation import compile_errors
from tracekit.errors import TracekitError
from tracekit.model.run import Settings

#: How torch's allocator on the CPU begins, for which torch has no error of its own.
NO_HOST_MEMORY = "DefaultCPUAllocator: "
#: What the system says of a place that takes no more files.
TAKES_NOTHING = ("No space left on device", "Read-only file system", "Disk quota exceeded", "Permission denied")


@contextmanager
def out_of_memory_explained(size: str) -> Iterator[None]:
    """Turns running out of memory, the GPU's or the machine's, into a TracekitError."""
    try:
        yield
    except MemoryError:
        raise TracekitError(f"not enough memory at size {size}; pass a smaller --size or --batch-size") from None
    except torch.OutOfMemoryError as error:
        needed = _first_line(error).partition(" Including non-PyTorch")[0]
        raise TracekitError(
            f"not enough GPU memory at size {size} ({needed});"
            " pass a smaller --size, --batch-size or --height/--width, or close what else uses the GPU"
        ) from None
    except RuntimeError as error:
        told = _first_line(error)
        if NO_HOST_MEMORY not in told:
            raise
        needed = told.partition(NO_HOST_MEMORY)[2].partition(". Error code")[0]
        raise TracekitError(
            f"not enough memory at size {size} ({needed}); pass a smaller --size, --batch-size or --height/--width"
        ) from None


#: What CUDA, its libraries and torch's allocator of host memory say in errors without a type of their own.
OUT_OF_MEMORY = (
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "DefaultCPUAllocator: can't allocate memory",
)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, on the GPU or the host, here or in what the error came of."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
            return True
        if isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Turns what torch.compile says it cannot do into a TracekitError; anything else is passed on as it is."""
    unsupported, failed = compile_errors()
    try:
        yield
    except unsupported as error:
        raise TracekitError(
            f"torch.compile could not make one graph of {settings.scope}: {_first_line(error)}."
            " Pass --no-fullgraph to compile what can be, or another --scope"
        ) from error
    except failed as error:
        cause = error.__cause__ or error
        raise TracekitError(
            f"torch.compile failed on {settings.scope}: {_first_line(cause)}. {_mend(cause)}"
        ) from error


def _mend(cause: BaseException) -> str:
    if any(told in str(cause) for told in TAKES_NOTHING):
        return (
            "Inductor and Triton keep what they compile on disk: make room there, or set TORCHINDUCTOR_CACHE_DIR, "
            "TRITON_CACHE_DIR and TMPDIR to folders that can be written to"
        )
    return "`tracekit doctor` checks the compilers"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")
