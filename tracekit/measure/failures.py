"""torch's own errors, said in a few lines with what to do."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import torch

from tracekit.errors import CompileError, TracekitError
from tracekit.measure.compilation import dynamo_errors
from tracekit.measure.compile_log import find_hint
from tracekit.measure.source_location import function_name, place, user_frames
from tracekit.model.run import Settings

#: What CUDA, its libraries and torch's allocator of host memory say in errors without a type of their own, and Triton
#: of what it passes on.
OUT_OF_MEMORY = re.compile(
    r"(CUDA|HIP)( driver)?( error:)? out of memory|Triton Error \[(CUDA|HIP)\]: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
    r"|CU(BLAS|DNN)_STATUS_ALLOC_FAILED|DefaultCPUAllocator: (can't allocate|not enough) memory"
)
#: What the system says of a place that takes no more files.
TAKES_NOTHING = ("No space left on device", "Read-only file system", "Disk quota exceeded", "Permission denied")
#: What glibc's loader says of a library that is not whole (elf/dl-load.c).
CUT_SHORT = re.compile(
    r"(/\S+\.so): (file too short|invalid ELF header|cannot read file data|ELF load command past end"
    r"|object file has no (loadable|dynamic))"
)
#: What torch says where code asks a tensor for a number that only a real call knows, and what that number decides.
WANTS_A_VALUE = re.compile(r"Could not [\w ]+ data-dependent expression [^\n(]*[^\n( ]")
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
        if isinstance(each, dynamo_errors("TorchDynamoException")):
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
        raise TracekitError(
            f"{where} at size {size} ({_needed(error)}); {mend}, or end other processes that use it"
        ) from error


@contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Turns what torch.compile says it cannot do into a TracekitError; anything else is passed on as it is. torch's
    whole text is printed, which takes it into the run's log."""
    unsupported, failed = dynamo_errors("Unsupported"), dynamo_errors("TorchDynamoException")
    limit = dynamo_errors("FailOnRecompileLimitHit", "RecompileLimitExceeded")
    try:
        yield
    except (*unsupported, *failed, *limit) as error:
        traceback.print_exception(error)
        if settings.fullgraph and any(
            type(each).__name__ in OF_VALUES or WANTS_A_VALUE.search(str(each)) for each in _led_to(error)
        ):
            _raise_broken_by_a_value(settings, error)
        if isinstance(error, unsupported):
            # One graph was asked for, and there is a break: its line and its reason, and the two ways out.
            at, code = _user_line(str(error))
            hint = find_hint(str(error))
            raise CompileError(
                f"{settings.scope} does not compile as one graph: {_clipped(_first_line(error))}{at}. "
                f" Pass {_no_fullgraph(settings)} to allow the graph break, or change the line",
                (*code, *((f"  torch's hint: {_clipped(hint)}",) if hint else ())),
            ) from error
        if isinstance(error, limit):
            raise CompileError(
                f"{settings.scope} reached torch's recompile limit: a guard fails from call to call, or from block to"
                f" block. Pass {_no_fullgraph(settings)} to see the guard in the report, or --dynamic if shapes differ"
            ) from error
        _raise_failed(settings, error)
    except RuntimeError as error:
        # Of errors without a type of their own, by their words.
        if "found no compiled frames" in str(error):
            traceback.print_exception(error)
            raise CompileError(
                f"Dynamo skipped all of {settings.scope}: pass a larger --scope, or {_no_fullgraph(settings)}"
            ) from error
        if "are not allocated in pool" in str(error):
            traceback.print_exception(error)
            raise CompileError(
                f"CUDA graphs of {settings.scope} returned a tensor outside their memory pool, probably a CPU tensor in"
                " compiled code: set TORCHINDUCTOR_GRAPH_PARTITION=0, or pass a --scope without that code, or a --mode"
                " without CUDA graphs (default, max-autotune-no-cudagraphs)"
            ) from error
        raise


def _raise_broken_by_a_value(settings: Settings, error: Exception) -> NoReturn:
    """The same for what torch does not call a break: code asks a tensor for a number, and goes another way by it."""
    text = f"{error}\n{error.__cause__ or ''}"
    at, code = _user_line(text)
    asked = WANTS_A_VALUE.search(text)
    size = "Could not extract specialized integer" in text
    raise CompileError(
        f"{settings.scope} does not compile as one graph:"
        f" data-dependent {'size or loop count' if size else 'control flow'}{at}. Pass {_no_fullgraph(settings)} to"
        " allow the graph break, or change the line: "
        + ("use a Python number" if size else "use torch.where or torch.cond"),
        (*code, *((f"  torch: {_clipped(asked[0])}",) if asked else ())),
    ) from error


def _raise_failed(settings: Settings, error: Exception) -> NoReturn:
    cause = getattr(error, "inner_exception", None) or error.__cause__ or error
    if isinstance(cause, torch.OutOfMemoryError):
        tunes = settings.mode.startswith("max-autotune")
        raise CompileError(
            f"not enough GPU memory to compile {settings.scope} ({_needed(cause)}); pass a smaller --size, --batch-size"
            f"{', --mode default (autotuning needs memory)' if tunes else ''} or --scope,"
            " or end other processes on the GPU"
        ) from error
    at, code = _user_line(f"{error}\n{cause}")
    failed = f"{settings.scope}{at}: {type(cause).__name__}: {_clipped(_first_line(cause))}"
    mend = "Run `tracekit doctor` to check the compilers"
    if any(text in str(cause) for text in TAKES_NOTHING):
        mend = "Free disk space, or set TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR and TMPDIR to writable folders"
    elif library := CUT_SHORT.search(str(cause)):
        mend = f"The file is incomplete (killed compilation): `rm {library[1]}` and run again"
    elif isinstance(cause, RecursionError) or RecursionError.__name__ in str(cause):
        mend = (
            "Python's recursion limit was reached while tracing: call sys.setrecursionlimit(10_000) in the model's"
            " file, or pass a smaller --scope"
        )
    raise CompileError(f"torch.compile failed on {failed}. {mend}", code) from error


def _no_fullgraph(settings: Settings) -> str:
    """As a user says it, on the command line or in a program."""
    return 'compile={"fullgraph": False}' if settings.in_program else "--no-fullgraph"


def _user_line(text: str) -> tuple[str, tuple[str, ...]]:
    """` at file:line in function` of the innermost frame in the text that is not torch's, and below it its code."""
    frames = user_frames(text)
    if not frames:
        return "", ()
    file, line, function = frames[-1]
    code = next((code for f, n, code in CODE.findall(text) if (f, n) == (file, line)), "").strip()
    return f" at {place(file, line)} in {function_name(function)}", (f"  {_clipped(code)}",) if code else ()


def _needed(error: BaseException) -> str:
    """What the allocator says that it wanted, without where in its own code it says so."""
    wanted = _first_line(error).rpartition("DefaultCPUAllocator: ")[2].partition(". Error code")[0]
    return wanted.partition(" Including non-PyTorch")[0]


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _clipped(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
