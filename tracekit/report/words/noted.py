"""What was noted while a run was made, in English, as its manifest keeps it: a function for each code, of its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tracekit.model.noted import Noted

INSTEAD = "kernels are matched by their names and order instead"


def noted_sentence(noted: Noted) -> str:
    """The note in English."""
    return SENTENCES[noted.code](**noted.facts)


def noted_sentences(noted: Iterable[Noted]) -> tuple[str, ...]:
    return tuple(map(noted_sentence, noted))


def warned(*, line: str) -> str:
    return f"Warning while it ran: {line}"


def no_cuda_graphs_on_cpu(*, mode: str) -> str:
    return f"A CPU has no CUDA graphs, which --mode {mode} asks for: that part of the mode does nothing here."


def never_called(*, parts: Sequence[str], more: int) -> str:
    others = f" and {more} more" if more else ""
    return f"No call comes to {', '.join(parts)}{others}: nothing of it was compiled."


def outputs_not_compared(*, error: str) -> str:
    return f"Outputs were not compared ({error})."


def no_advice() -> str:
    return "There was no advice to verify: no finding names another run to try."


def advice_failed(*, error: str) -> str:
    return f"The advice was tried and failed: {error}."


def provenance_failed(*, form: str, error: str) -> str:
    return f"No provenance of the {form} form ({error}): {INSTEAD}."


def provenance_incomplete(*, what: str) -> str:
    return f"Kernel provenance: {what}."


def graph_calls_differ(*, recorded: int, made: int) -> str:
    return f"the recording shows {recorded} calls of compiled graphs where {made} were made"


def compiled_after_timing() -> str:
    return "something was compiled again after timing, so the order of graphs may be another"


def provenance_unreadable(*, what: str, error: str) -> str:
    return f"{what} could not be read ({error})"


def graph_without_sites(*, graph: int, why: str) -> str:
    return f"graph {graph}: {SENTENCES[why]()}"


def cached_without_provenance() -> str:
    return "it came from a cache that was filled without provenance"


def no_launches_marked() -> str:
    return "its generated code marks no launches"


def recorded_by_another() -> str:
    return "nothing was recorded: something else was recorded when its steps came"


def profiler_did_not_start(*, error: str) -> str:
    return f"nothing was recorded: the profiler did not start: {error}"


def loop_too_short(*, steps: int, skip: int) -> str:
    loop = f"the loop made {steps} steps, and recording begins after {skip}"
    return f"nothing was recorded: {loop}; pass a smaller skip to tracekit.record"


def torch_too_old(*, torch: str, oldest: str) -> str:
    return _no_provenance(f"torch {torch} is older than {oldest}")


def torch_import_failed(*, torch: str, error: str) -> str:
    return _no_provenance(f"torch {torch}: {error}")


def torch_lacks(*, torch: str, names: Sequence[str]) -> str:
    return _no_provenance(f"torch {torch} has no {', '.join(names)}")


def torch_makes_graphs_otherwise(*, torch: str, arguments: Sequence[str], known: Sequence[str]) -> str:
    return _no_provenance(f"torch {torch} makes a CompiledFxGraph of {', '.join(arguments)}, not of {', '.join(known)}")


def _no_provenance(why: str) -> str:
    return f"No kernel provenance ({why}): {INSTEAD}."


def compile_reset() -> str:
    return "torch.compiler.reset() was called meanwhile: which calls compiled after it is not known"


def no_compile_log(*, torch: str) -> str:
    return f"torch {torch} has no structured compile log where tracekit knows it"


def compile_log_unreadable(*, error: str) -> str:
    return f"torch's compile log could not be read ({error})"


def compile_log_line_unreadable(*, error: str) -> str:
    return f"a line of torch's compile log could not be read ({error})"


def compile_log_silent(*, torch: str, compilations: int) -> str:
    return f"torch {torch} compiled {compilations} times, and its log told of none of them"


def no_higher_precision(*, dtype: str) -> str:
    return f"there is no precision above {dtype}"


def modules_not_named() -> str:
    return "the workload does not name its modules"


def reference_does_not_fit(*, dtype: str, needs_bytes: float, free_bytes: float) -> str:
    needs, free = (f"{each / 2**30:.1f} GiB" for each in (needs_bytes, free_bytes))
    return f"it does not fit: {dtype} needs {needs} more, {free} are free"


def reference_ran_out_of_memory(*, needs_bytes: float) -> str:
    return f"it does not fit: more than the {needs_bytes / 2**30:.1f} GiB it was taken to need"


def reference_failed(*, error: str) -> str:
    return f"the model cannot run in it ({error})"


def in_one_output_only() -> str:
    return "is in one of the two outputs only"


def shapes_differ(*, shape: Sequence[int], other_shape: Sequence[int]) -> str:
    return f"has shape {tuple(shape)} here and {tuple(other_shape)} there"


SENTENCES: dict[str, Callable[..., str]] = {
    each.__name__: each
    for each in (
        warned,
        no_cuda_graphs_on_cpu,
        never_called,
        outputs_not_compared,
        no_advice,
        advice_failed,
        provenance_failed,
        provenance_incomplete,
        graph_calls_differ,
        compiled_after_timing,
        provenance_unreadable,
        graph_without_sites,
        cached_without_provenance,
        no_launches_marked,
        recorded_by_another,
        profiler_did_not_start,
        loop_too_short,
        torch_too_old,
        torch_import_failed,
        torch_lacks,
        torch_makes_graphs_otherwise,
        compile_reset,
        no_compile_log,
        compile_log_unreadable,
        compile_log_line_unreadable,
        compile_log_silent,
        no_higher_precision,
        modules_not_named,
        reference_does_not_fit,
        reference_ran_out_of_memory,
        reference_failed,
        in_one_output_only,
        shapes_differ,
    )
}
