"""What is said while a sweep is made, in English: what is going on, why a cell has no times."""

from tracekit.numbers import counted
from tracekit.report.words.progress import exit_words
from tracekit.sweep.cells import CONFIRMING, Cell

CHECKING_A_SWEEP = "checking the requirements of the cells"
MEASURING_CELLS = "measuring cells, one a GPU"


def unchecked_sweep(how: str) -> str:
    return f"checking the requirements of the cells failed ({how}); continuing"


def cell_timed_out(limit_seconds: float) -> str:
    return f"timed out after {limit_seconds:g} s (--cell-timeout)"


def cell_without_answer(code: int) -> str:
    return f"the process ended without a result: {exit_words(code)}"


def cell_words(cell: Cell, process: int = 1) -> str:
    """`flux batch 5, 512x512, reduce-overhead of regional, process 2`: what tells it from the other cells."""
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
    parts += [counted(asked.nproc, "rank")] if asked.nproc else []
    parts += [asked.parallel] if asked.parallel else []
    parts += asked.options
    parts.append("eager" if cell.form == "eager" else f"{asked.mode} of {asked.scope}")
    which = "measured again" if process == CONFIRMING else f"process {process}" if process > 1 else ""
    return ", ".join(filter(None, (*parts, which)))
