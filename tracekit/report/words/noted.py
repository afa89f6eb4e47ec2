"""What is said and noted while a run is made, in English."""

import signal
from collections.abc import Iterable, Mapping

from tracekit.errors import TracekitError
from tracekit.model.note import Noted
from tracekit.names import clipped
from tracekit.report.words.saying import Sentence, say

INSTEAD = "kernels are matched by name and order"


def noted_sentence(noted: Noted) -> str:
    """The note in English. Raises TracekitError for one of a file that has no words."""
    return _said(SENTENCES, noted)


def noted_briefly(noted: Noted) -> str:
    """The same for a line of the terminal."""
    return _said(SENTENCES | BRIEF, noted)


def _said(sentences: Mapping[str, Sentence], noted: Noted) -> str:
    try:
        return say(sentences[noted.code], noted.facts)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        code = clipped(noted.code, 60)
        raise TracekitError(f'a note "{code}" of the run cannot be read; record the run again') from None


def noted_sentences(noted: Iterable[Noted]) -> tuple[str, ...]:
    return tuple(map(noted_sentence, noted))


SENTENCES: dict[str, Sentence] = {
    "warned": "Warning: {line}",
    "no_cuda_graphs_on_cpu": "A CPU has no CUDA graphs: --mode {mode} runs without them.",
    "never_called": lambda parts, more: (
        f"{', '.join(parts)}{f' and {more} more' if more else ''}: never called, so not compiled."
    ),
    "outputs_not_compared": "Outputs were not compared ({error}).",
    "no_advice": "No advice to verify: no finding names another run to try.",
    "advice_failed": "The advised run failed: {error}.",
    "provenance_failed": f"No provenance of {{form}} ({{error}}): {INSTEAD}.",
    "provenance_incomplete": lambda what: f"Kernel provenance: {noted_sentence(what)}.",
    "graph_calls_differ": "the trace has {recorded} of {made} compiled graph calls",
    "compiled_after_timing": "recompiles after timing: the order of graphs may differ",
    "provenance_unreadable": "{what} could not be read ({error})",
    "graph_without_sites": lambda graph, why: f"graph {graph}: {say(SENTENCES[why], {})}",
    "cached_without_provenance": "cached without provenance",
    "no_launches_marked": "its generated code marks no launches",
    "recorded_by_another": "nothing was recorded: another profiler was active",
    "profiler_did_not_start": "nothing was recorded: the profiler did not start: {error}",
    "loop_too_short": (
        "nothing was recorded: {steps:counted step}, recording starts after {skip}; pass a smaller skip to"
        " tracekit.record"
    ),
    "fewer_steps": "{recorded} of {steps:counted step} recorded into {folder}: the loop ended",
    "ended_by_another": "recording ended after {steps:counted step}: another profiler began in the block",
    "ended_in_another_thread": "nothing was recorded: the block ended in another thread than the one that it began in",
    "profiler_did_not_stop": "the profiler did not stop: {error}",
    "trace_not_written": "no trace was written into {folder}: {error}",
    "no_digest": "no digest was written: {error}",
    "torch_import_failed": f"No kernel provenance (torch {{torch}}: {{error}}): {INSTEAD}.",
    "torch_lacks": f"No kernel provenance (torch {{torch}} has no {{names:list}}): {INSTEAD}.",
    "torch_makes_graphs_otherwise": (
        "No kernel provenance (CompiledFxGraph of torch {torch} takes {arguments:list}, not {known:list}): "
        f"{INSTEAD}."
    ),
    "compile_reset": "torch.compiler.reset() was called: later compilations were not recorded",
    "no_compile_log": "torch {torch} has no known structured compile log",
    "compile_log_unreadable": "torch's compile log could not be read ({error})",
    "compile_log_line_unreadable": "a line of torch's compile log could not be read ({error})",
    "compile_log_silent": "torch {torch} compiled {compilations} times, none of them in its log",
    "no_higher_precision": "there is no precision above {dtype}",
    "modules_not_named": "the workload does not name its modules",
    "reference_does_not_fit": lambda dtype, needs_bytes, free_bytes: (
        f"{dtype} does not fit: it needs {needs_bytes / 2**30:.1f} GiB more, {free_bytes / 2**30:.1f} GiB are free"
    ),
    "reference_ran_out_of_memory": lambda needs_bytes: (
        f"it does not fit: more than the estimated {needs_bytes / 2**30:.1f} GiB"
    ),
    "reference_of_ranks": "a model over several ranks is not called in it",
    "reference_failed": "the model failed in it ({error})",
    "in_one_output_only": "is in only one of the two outputs",
    "shapes_differ": lambda shape, other_shape: f"has shape {tuple(shape)}, the other {tuple(other_shape)}",
}
#: What is shorter where a line is all there is.
BRIEF: dict[str, Sentence] = {"reference_failed": "the model failed in it"}


LOADING = "importing torch and the model's libraries"
ASKING_WHETHER_KERNELS_ARE_SEEN = "checking that the profiler sees kernels"
ONE_CALL = "test call"
#: By how a compiled form is started.
STARTING = {
    "eager": "cold start of eager",
    "compiled_no_cache": "cold start of compiled, no cache",
    "compiled_warm_cache": "cold start of compiled, warm cache",
}


def timing_process(number: int, of: int) -> str:
    return f"timing in another process, {number} of {of}"


def exit_words(code: int) -> str:
    """How a process ended that tracekit did not end; a negative code is a signal."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    # What Linux sends when memory runs out, and anybody else may.
    return f"killed by {name}" + (", not by tracekit: possibly out of memory" if name == "SIGKILL" else "")
