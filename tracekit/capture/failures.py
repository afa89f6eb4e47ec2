"""torch's own errors, said in a few lines with what to do."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tracekit.capture.break_text import HINT, NO_HELP, STACK_FRAME, function_name, place
from tracekit.capture.compilation import compile_errors, recompile_limit_errors
from tracekit.capture.source_location import is_torch
from tracekit.errors import CompileError, TracekitError
from tracekit.model.run import Settings

#: What CUDA, its libraries and torch's allocator of host memory say in errors without a type of their own, and Triton
#: of what it passes on.
OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory|CUDA error: out of memory|CUDA driver error: out of memory|HIP out of memory"
    r"|HIP error: out of memory|Triton Error \[(CUDA|HIP)\]: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
    r"|(CUBLAS|CUDNN)_STATUS_ALLOC_FAILED|DefaultCPUAllocator: (can't allocate memory|not enough memory)"
)
#: What the system says of a place that takes no more files.
TAKES_NOTHING = ("No space left on device", "Read-only file system", "Disk quota exceeded", "Permission denied")
#: What glibc's loader says of a library that is not whole (elf/dl-load.c).
CUT_SHORT = re.compile(
    r"(?P<file>/\S+\.so): (file too short|invalid ELF header|cannot read file data|ELF load command past end of file"
    r"|object file has no loadable segments|object file has no dynamic section)"
)
#: What torch says, since 2.13, where a whole scope is of functions that it never compiles.
NOTHING_COMPILED = "found no compiled frames"
#: What torch's CUDA graphs say where a tensor that they gave back is not in their memory. On an H200 (torch 2.11) this
#: ended Qwen2.5-VL's `generate` with a static cache, whose vision tower indexes with a tensor of the CPU; it ran
#: without partitions of graphs, which leaves that code without a CUDA graph, and with `--scope language`.
NOT_IN_POOL = "storage data ptrs are not allocated in pool"
#: What torch says where code asks a tensor for a number that only a real call knows, and what that number decides.
WANTS_A_VALUE = re.compile(r"Could not [\w ]+ data-dependent expression [^\n(]*[^\n( ]")
SIZE_WANTED = "Could not extract specialized integer"
#: The errors that say so, by name: they are private to torch (2.9 to 2.15).
OF_VALUES = ("GuardOnDataDependentSymNode", "DataDependentOutputException", "DynamicOutputShapeException")
#: The line of code that torch shows below a frame of the user's.
CODE = re.compile(r'^\s*File "([^"]+)", line (\d+), in \S+\n\s*(\S.*)$', re.MULTILINE)
#: Of a reason or a hint, so much is told.
MOST_CHARACTERS = 300


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, on the GPU or the host, here or in what the error was raised from."""
    return any(
        isinstance(each, (torch.OutOfMemoryError, MemoryError))
        or (isinstance(each, RuntimeError) and OUT_OF_MEMORY.search(str(each)))
        for each in _led_to(error)
    )


def _led_to(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that it stands for. One that was raised while another was handled is of its own making; a
    compiler's, which wraps what it met, is not."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each is None or each in seen:
            continue
        seen.append(each)
        yield each
        waiting.append(each.__cause__)
        if isinstance(each, compile_errors()[1]):
            waiting += [each.__context__, getattr(each, "inner_exception", None)]


@contextmanager
def out_of_memory_explained(size: str, mend: str) -> Iterator[None]:
    """Turns running out of memory, the GPU's or the machine's, into a TracekitError; `mend` says how to need less."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        where = "not enough GPU memory" if isinstance(error, torch.OutOfMemoryError) else "not enough memory"
        raise TracekitError(f"{where} at size {size} ({_needed(error)}); {mend}, or close what else uses it") from error


@contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Turns what torch.compile says it cannot do into a TracekitError; anything else is passed on as it is.

    torch's whole text is printed, which takes it into the run's log.
    """
    unsupported, failed = compile_errors()
    try:
        yield
    except unsupported as error:
        raise _told(error, _broken(settings, error)) from error
    except recompile_limit_errors() as error:
        raise _told(error, _too_many(settings)) from error
    except failed as error:
        said = _broken_by_a_value if settings.fullgraph and _wants_a_value(error) else _failed
        raise _told(error, said(settings, error)) from error
    except RuntimeError as error:
        message = _known_by_its_words(settings, str(error))
        if message is None:
            raise
        raise _told(error, CompileError(message)) from error


def _known_by_its_words(settings: Settings, text: str) -> str | None:
    """What to do about an error without a type of its own; None of one that is not known."""
    if NOTHING_COMPILED in text:
        return f"torch.compile passes over all of {settings.scope}: pass a larger --scope, or {_no_fullgraph(settings)}"
    if NOT_IN_POOL in text:
        return (
            f"torch's CUDA graphs of {settings.scope} gave back a tensor that is not in their memory, as happens where"
            " compiled code handles tensors of the CPU: set TORCHINDUCTOR_GRAPH_PARTITION=0, or pass a --scope without"
            " that code, or a --mode without CUDA graphs (default, max-autotune-no-cudagraphs)"
        )
    return None


def _told(error: Exception, said: TracekitError) -> TracekitError:
    traceback.print_exception(error)
    return said


def _broken(settings: Settings, error: Exception) -> CompileError:
    """One graph was asked for, and there is a break: its line and its reason, and the two ways out."""
    hints = [hint.strip() for hint in HINT.findall(str(error)) if not NO_HELP.search(hint)]
    below = (f"  torch's hint: {_clipped(hints[0])}",) if hints else ()
    return _no_single_graph(settings, str(error), _clipped(_first_line(error)), "mend the line", below)


def _wants_a_value(error: Exception) -> bool:
    """Whether code asked a tensor for a number, and went another way by it: without fullgraph the graph ends there."""
    return any(type(each).__name__ in OF_VALUES or WANTS_A_VALUE.search(str(each)) for each in _led_to(error))


def _broken_by_a_value(settings: Settings, error: Exception) -> CompileError:
    """The same for what torch does not call a break: the graph would have to know a number that a tensor holds."""
    text = f"{error}\n{error.__cause__ or ''}"
    size = SIZE_WANTED in text
    decides = "a size or a number of rounds" if size else "which way the code goes"
    mend = "make it a plain number of Python's" if size else "keep it in its tensor (torch.where), or torch.cond"
    asked = WANTS_A_VALUE.search(text)
    return _no_single_graph(
        settings,
        text,
        f"{decides} depends on a number that a tensor holds, which only the call itself can tell",
        f"mend the line: {mend}",
        (f"  torch's words: {_clipped(asked[0])}",) if asked else (),
    )


def _no_single_graph(settings: Settings, text: str, reason: str, mend: str, below: tuple[str, ...]) -> CompileError:
    where = _user_line(text)
    at = f" at {where[0]}" if where else ""
    code = (f"  {_clipped(where[1])}",) if where and where[1] else ()
    return CompileError(
        f"{settings.scope} does not compile as one graph: {reason}{at}. Two ways out:"
        f" pass {_no_fullgraph(settings)}, which lets the graph break there, or {mend}",
        (*code, *below),
    )


def _no_fullgraph(settings: Settings) -> str:
    """As a user says it, on the command line or in a program."""
    return 'compile={"fullgraph": False}' if settings.own and settings.own.in_program else "--no-fullgraph"


def _too_many(settings: Settings) -> CompileError:
    return CompileError(
        f"{settings.scope} is compiled again and again, until torch's limit: something differs from call to call, or"
        f" from block to block. Pass {_no_fullgraph(settings)}, and the report says what differs; or --dynamic, if it"
        " is sizes"
    )


def _failed(settings: Settings, error: Exception) -> CompileError:
    cause = getattr(error, "inner_exception", None) or error.__cause__ or error
    if isinstance(cause, torch.OutOfMemoryError):
        tunes = settings.mode.startswith("max-autotune")
        calmer = ", --mode default (tuning tries many kernels)" if tunes else ""
        return CompileError(
            f"not enough GPU memory to compile {settings.scope} ({_needed(cause)}); pass a smaller --size, --batch-size"
            f"{calmer} or --scope, or close what else uses the GPU"
        )
    where = _user_line(f"{error}\n{cause}")
    at = f" at {where[0]}" if where else ""
    return CompileError(
        f"torch.compile failed on {settings.scope}{at}: {type(cause).__name__}: {_clipped(_first_line(cause))}."
        f" {_mend(cause)}",
        (f"  {_clipped(where[1])}",) if where and where[1] else (),
    )


def _user_line(text: str) -> tuple[str, str] | None:
    """`file:line in function` of the innermost frame in the text that is not torch's, and its line of code."""
    frames = [frame for frame in STACK_FRAME.findall(text) if not is_torch(frame[0])]
    if not frames:
        return None
    file, line, function = frames[-1]
    code = next((code for f, n, code in CODE.findall(text) if (f, n) == (file, line)), "")
    return f"{place(file, line)} in {function_name(function)}", code.strip()


def _needed(error: BaseException) -> str:
    """What the allocator says that it wanted, without where in its own code it says so."""
    told = _first_line(error).rpartition("DefaultCPUAllocator: ")[2].partition(". Error code")[0]
    return told.partition(" Including non-PyTorch")[0]


def _mend(cause: BaseException) -> str:
    if any(told in str(cause) for told in TAKES_NOTHING):
        return (
            "Inductor and Triton keep what they compile on disk: make room there, or set TORCHINDUCTOR_CACHE_DIR, "
            "TRITON_CACHE_DIR and TMPDIR to folders that can be written to"
        )
    if broken := CUT_SHORT.search(str(cause)):
        return f"A compilation that was killed left that file unfinished: `rm {broken['file']}`, and run it again"
    if isinstance(cause, RecursionError) or RecursionError.__name__ in str(cause):
        return (
            "Calls lie deeper in each other than Python allows while torch.compile looks into them: raise that limit"
            " with sys.setrecursionlimit(10_000) in the model's file, or pass a smaller --scope"
        )
    return "`tracekit doctor` checks the compilers"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _clipped(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
