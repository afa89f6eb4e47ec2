"""What is said while a run or a sweep is made: what is going on, which cell it is, why a cell has no times."""

from __future__ import annotations

from tracekit.model.sweep import Cell

LOADING = "loading torch and the model's libraries"
ASKING_WHETHER_KERNELS_ARE_SEEN = "asking whether kernels can be seen"
ONE_CALL = "one call, to see that it works"
CHECKING_A_SWEEP = "looking whether all that the cells need is here"
#: By how a compiled form is started.
STARTING = {
    "eager": "starting up eager",
    "compiled_no_cache": "starting up compiled, no cache",
    "compiled_warm_cache": "starting up compiled, warm cache",
}
#: What Linux sends to a process when the machine runs out of memory, and anybody else may.
SIGKILL = -9


def timing_process(number: int, of: int) -> str:
    return f"timing in a process of its own, {number} of {of}"


def exit_words(code: int) -> str:
    """How a process ended; a negative code is a signal."""
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def unchecked_sweep(code: int, last_line: str) -> str:
    return f"whether all is here could not be seen ({exit_words(code)}: {last_line}): the cells will tell"


def cell_timed_out(limit_seconds: float) -> str:
    return f"not done after {limit_seconds:g} s (--cell-timeout)"


def cell_without_answer(code: int) -> str:
    memory = ": the machine may have run out of memory" if code == SIGKILL else ""
    return f"its process gave no answer ({exit_words(code)}){memory}"


def cell_words(cell: Cell) -> str:
    """`flux batch 5, 512x512, reduce-overhead of regional`: what tells it from the other cells."""
    asked = cell.request
    parts = [f"{asked.workload} batch {asked.batch_size}"]
    parts += [f"{asked.height}x{asked.width}" if asked.width else f"height {asked.height}"] if asked.height else []
    parts += [f"{asked.seq_length} tokens"] if asked.seq_length else []
    parts += [f"{asked.steps} steps"] if asked.steps else []
    parts += [asked.size] if asked.size != "auto" else []
    parts += [asked.dtype] if asked.dtype else []
    parts += [f"{asked.cache} cache"] if asked.cache else []
    parts += [asked.phase] if asked.phase else []
    parts += [f"{asked.max_new_tokens} new tokens"] if asked.max_new_tokens else []
    parts += asked.options
    return ", ".join([*parts, "eager" if cell.form == "eager" else f"{asked.mode} of {asked.scope}"])
