"""What is noted while a run is made."""

from tracekit.model.bounded import Amount, Count, Many, Text
from tracekit.model.note import Noted, WrittenNoted
from tracekit.model.provenance import WithoutSites
from tracekit.model.run import FormName
from tracekit.names import clipped
from tracekit.numbers import counted

INSTEAD = "kernels are matched by name and order"


class UnknownNoted(Noted):
    """What a version of tracekit noted that knows more: written again as it was read."""

    code = "unknown"
    as_read: WrittenNoted

    def written(self) -> WrittenNoted:
        return self.as_read

    def long(self) -> str:
        return f'"{clipped(self.as_read.code, 60)}" was noted by another version of tracekit'


class Warned(Noted):
    code = "warned"
    line: Text

    def long(self) -> str:
        return f"Warning: {self.line}"


class NoCudaGraphsOnCpu(Noted):
    code = "no_cuda_graphs_on_cpu"
    mode: Text

    def long(self) -> str:
        return f"A CPU has no CUDA graphs: --mode {self.mode} runs without them."


class NeverCalled(Noted):
    code = "never_called"
    parts: Many[Text]
    more: Count

    def long(self) -> str:
        more = f" and {self.more} more" if self.more else ""
        return f"{', '.join(self.parts)}{more}: never called, so not compiled."


class OutputsNotCompared(Noted):
    code = "outputs_not_compared"
    error: Text

    def long(self) -> str:
        return f"Outputs were not compared ({self.error})."


class NoAdvice(Noted):
    code = "no_advice"

    def long(self) -> str:
        return "No advice to verify: no finding names another run to try."


class AdviceFailed(Noted):
    code = "advice_failed"
    error: Text

    def long(self) -> str:
        return f"The advised run failed: {self.error}."


class ProvenanceFailed(Noted):
    code = "provenance_failed"
    form: FormName
    error: Text

    def long(self) -> str:
        return f"No provenance of {self.form} ({self.error}): {INSTEAD}."


class ProvenanceIncomplete(Noted):
    code = "provenance_incomplete"
    what: Noted

    def long(self) -> str:
        return f"Kernel provenance: {self.what.long()}."


class GraphCallsDiffer(Noted):
    code = "graph_calls_differ"
    recorded: Count
    made: Count

    def long(self) -> str:
        return f"the trace has {self.recorded} of {self.made} compiled graph calls"


class CompiledAfterTiming(Noted):
    code = "compiled_after_timing"

    def long(self) -> str:
        return "recompiles after timing: the order of graphs may differ"


class ProvenanceUnreadable(Noted):
    code = "provenance_unreadable"
    what: Text
    error: Text

    def long(self) -> str:
        return f"{self.what} could not be read ({self.error})"


class GraphWithoutSites(Noted):
    code = "graph_without_sites"
    graph: Count
    why: WithoutSites

    def long(self) -> str:
        return f"graph {self.graph}: {WITHOUT_SITES[self.why]}"


WITHOUT_SITES: dict[WithoutSites, str] = {
    "cached_without_provenance": "cached without provenance",
    "no_launches_marked": "its generated code marks no launches",
}


class RecordedByAnother(Noted):
    code = "recorded_by_another"

    def long(self) -> str:
        return "nothing was recorded: another profiler was active"


class ProfilerDidNotStart(Noted):
    code = "profiler_did_not_start"
    error: Text

    def long(self) -> str:
        return f"nothing was recorded: the profiler did not start: {self.error}"


class LoopTooShort(Noted):
    code = "loop_too_short"
    steps: Count
    skip: Count

    def long(self) -> str:
        return (
            f"nothing was recorded: {counted(self.steps, 'step')}, recording starts after {self.skip}; pass a smaller"
            " skip to tracekit.record"
        )


class FewerSteps(Noted):
    code = "fewer_steps"
    recorded: Count
    steps: Count
    folder: Text

    def long(self) -> str:
        return f"{self.recorded} of {counted(self.steps, 'step')} recorded into {self.folder}: the loop ended"


class EndedByAnother(Noted):
    code = "ended_by_another"
    steps: Count

    def long(self) -> str:
        return f"recording ended after {counted(self.steps, 'step')}: another profiler began in the block"


class EndedInAnotherThread(Noted):
    code = "ended_in_another_thread"

    def long(self) -> str:
        return "nothing was recorded: the block ended in another thread than the one that it began in"


class ProfilerDidNotStop(Noted):
    code = "profiler_did_not_stop"
    error: Text

    def long(self) -> str:
        return f"the profiler did not stop: {self.error}"


class TraceNotWritten(Noted):
    code = "trace_not_written"
    folder: Text
    error: Text

    def long(self) -> str:
        return f"no trace was written into {self.folder}: {self.error}"


class NoDigest(Noted):
    code = "no_digest"
    error: Text

    def long(self) -> str:
        return f"no digest was written: {self.error}"


class TorchImportFailed(Noted):
    code = "torch_import_failed"
    torch: Text
    error: Text

    def long(self) -> str:
        return f"No kernel provenance (torch {self.torch}: {self.error}): {INSTEAD}."


class TorchLacks(Noted):
    code = "torch_lacks"
    torch: Text
    names: Many[Text]

    def long(self) -> str:
        return f"No kernel provenance (torch {self.torch} has no {', '.join(self.names)}): {INSTEAD}."


class TorchMakesGraphsOtherwise(Noted):
    code = "torch_makes_graphs_otherwise"
    torch: Text
    arguments: Many[Text]
    known: Many[Text]

    def long(self) -> str:
        return (
            f"No kernel provenance (CompiledFxGraph of torch {self.torch} takes {', '.join(self.arguments)}, not"
            f" {', '.join(self.known)}): {INSTEAD}."
        )


class CompileReset(Noted):
    code = "compile_reset"

    def long(self) -> str:
        return "torch.compiler.reset() was called: later compilations were not recorded"


class NoCompileLog(Noted):
    code = "no_compile_log"
    torch: Text

    def long(self) -> str:
        return f"torch {self.torch} has no known structured compile log"


class CompileLogUnreadable(Noted):
    code = "compile_log_unreadable"
    error: Text

    def long(self) -> str:
        return f"torch's compile log could not be read ({self.error})"


class CompileLogLineUnreadable(Noted):
    code = "compile_log_line_unreadable"
    error: Text

    def long(self) -> str:
        return f"a line of torch's compile log could not be read ({self.error})"


class CompileLogSilent(Noted):
    code = "compile_log_silent"
    torch: Text
    compilations: Count

    def long(self) -> str:
        return f"torch {self.torch} compiled {self.compilations} times, none of them in its log"


class NoHigherPrecision(Noted):
    code = "no_higher_precision"
    dtype: Text

    def long(self) -> str:
        return f"there is no precision above {self.dtype}"


class ModulesNotNamed(Noted):
    code = "modules_not_named"

    def long(self) -> str:
        return "the workload does not name its modules"


class ReferenceDoesNotFit(Noted):
    code = "reference_does_not_fit"
    dtype: Text
    needs_bytes: Amount
    free_bytes: Count

    def long(self) -> str:
        needs, free = self.needs_bytes / 2**30, self.free_bytes / 2**30
        return f"{self.dtype} does not fit: it needs {needs:.1f} GiB more, {free:.1f} GiB are free"


class ReferenceRanOutOfMemory(Noted):
    code = "reference_ran_out_of_memory"
    needs_bytes: Amount

    def long(self) -> str:
        return f"it does not fit: more than the estimated {self.needs_bytes / 2**30:.1f} GiB"


class ReferenceOfRanks(Noted):
    code = "reference_of_ranks"

    def long(self) -> str:
        return "a model over several ranks is not called in it"


class ReferenceFailed(Noted):
    code = "reference_failed"
    error: Text

    def long(self) -> str:
        return f"{self.short()} ({self.error})"

    def short(self) -> str:
        return "the model failed in it"


class InOneOutputOnly(Noted):
    code = "in_one_output_only"

    def long(self) -> str:
        return "is in only one of the two outputs"


class ShapesDiffer(Noted):
    code = "shapes_differ"
    shape: Many[Count]
    other_shape: Many[Count]

    def long(self) -> str:
        return f"has shape {self.shape}, the other {self.other_shape}"
