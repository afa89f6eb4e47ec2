"""What is said and noted while a run or a sweep is made, in English: what is going on, why a cell has no times."""

from collections.abc import Iterable

from tracekit.model.note import Noted
from tracekit.model.sweep import Cell
from tracekit.report.words.saying import Sentence, say

INSTEAD = "kernels are matched by their names and order instead"


def noted_sentence(noted: Noted) -> str:
    """The note in English."""
    return say(SENTENCES[noted.code], noted.facts)


def noted_sentences(noted: Iterable[Noted]) -> tuple[str, ...]:
    return tuple(map(noted_sentence, noted))


SENTENCES: dict[str, Sentence] = {
    "warned": "Warning while it ran: {line}",
    "no_cuda_graphs_on_cpu": (
        "A CPU has no CUDA graphs, which --mode {mode} asks for: that part of the mode does nothing here."
    ),
    "never_called": lambda parts, more: (
        f"No call comes to {', '.join(parts)}{f' and {more} more' if more else ''}: nothing of it was compiled."
    ),
    "outputs_not_compared": "Outputs were not compared ({error}).",
    "no_advice": "There was no advice to verify: no finding names another run to try.",
    "advice_failed": "The advice was tried and failed: {error}.",
    "provenance_failed": f"No provenance of the {{form}} form ({{error}}): {INSTEAD}.",
    "provenance_incomplete": "Kernel provenance: {what}.",
    "graph_calls_differ": "the recording shows {recorded} calls of compiled graphs where {made} were made",
    "compiled_after_timing": "something was compiled again after timing, so the order of graphs may be another",
    "provenance_unreadable": "{what} could not be read ({error})",
    "graph_without_sites": lambda graph, why: f"graph {graph}: {say(SENTENCES[why], {})}",
    "cached_without_provenance": "it came from a cache that was filled without provenance",
    "no_launches_marked": "its generated code marks no launches",
    "recorded_by_another": "nothing was recorded: something else was recorded when its steps came",
    "profiler_did_not_start": "nothing was recorded: the profiler did not start: {error}",
    "loop_too_short": (
        "nothing was recorded: the loop made {steps} steps, and recording begins after {skip}; pass a smaller skip to "
        "tracekit.record"
    ),
    "torch_too_old": f"No kernel provenance (torch {{torch}} is older than {{oldest}}): {INSTEAD}.",
    "torch_import_failed": f"No kernel provenance (torch {{torch}}: {{error}}): {INSTEAD}.",
    "torch_lacks": f"No kernel provenance (torch {{torch}} has no {{names:list}}): {INSTEAD}.",
    "torch_makes_graphs_otherwise": (
        "No kernel provenance (torch {torch} makes a CompiledFxGraph of {arguments:list}, not of {known:list}): "
        f"{INSTEAD}."
    ),
    "compile_reset": "torch.compiler.reset() was called meanwhile: which calls compiled after it is not known",
    "no_compile_log": "torch {torch} has no structured compile log where tracekit knows it",
    "compile_log_unreadable": "torch's compile log could not be read ({error})",
    "compile_log_line_unreadable": "a line of torch's compile log could not be read ({error})",
    "compile_log_silent": "torch {torch} compiled {compilations} times, and its log told of none of them",
    "no_higher_precision": "there is no precision above {dtype}",
    "modules_not_named": "the workload does not name its modules",
    "reference_does_not_fit": lambda dtype, needs_bytes, free_bytes: (
        f"it does not fit: {dtype} needs {needs_bytes / 2**30:.1f} GiB more, {free_bytes / 2**30:.1f} GiB are free"
    ),
    "reference_ran_out_of_memory": lambda needs_bytes: (
        f"it does not fit: more than the {needs_bytes / 2**30:.1f} GiB it was taken to need"
    ),
    "reference_failed": "the model cannot run in it ({error})",
    "in_one_output_only": "is in one of the two outputs only",
    "shapes_differ": lambda shape, other_shape: f"has shape {tuple(shape)} here and {tuple(other_shape)} there",
}


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
