"""What is noted while a run is made."""

from tracekit.model.bounded import Amount, Count, Many, Ratio, Text
from tracekit.model.comparison import Result
from tracekit.model.note import Noted, WrittenNoted
from tracekit.model.provenance import WithoutSites
from tracekit.model.run import FormName
from tracekit.names import clipped
from tracekit.numbers import counted, times


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
    says = "Warning: {line}"


class NoCudaGraphsOnCpu(Noted):
    code = "no_cuda_graphs_on_cpu"
    mode: Text
    says = "A CPU has no CUDA graphs: --mode {mode} runs without them."


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
    says = "Outputs were not compared ({error})."


class NoAdvice(Noted):
    code = "no_advice"
    says = "No advice to verify: no finding names another run to try."


class AdviceFailed(Noted):
    code = "advice_failed"
    error: Text
    says = "The advised run failed: {error}."


class ProvenanceFailed(Noted):
    code = "provenance_failed"
    form: FormName
    error: Text
    says = "No provenance of {form} ({error}): kernels are matched by name and order."


class ProvenanceIncomplete(Noted):
    code = "provenance_incomplete"
    what: Noted

    def long(self) -> str:
        return f"Kernel provenance: {self.what.long()}."


class GraphCallsDiffer(Noted):
    code = "graph_calls_differ"
    recorded: Count
    made: Count
    says = "the trace has {recorded} of {made} compiled graph calls"


class CompiledAfterTiming(Noted):
    code = "compiled_after_timing"
    says = "recompiles after timing: the order of graphs may differ"


class ProvenanceUnreadable(Noted):
    code = "provenance_unreadable"
    what: Text
    error: Text
    says = "{what} could not be read ({error})"


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
    says = "nothing was recorded: another profiler was active"


class ProfilerDidNotStart(Noted):
    code = "profiler_did_not_start"
    error: Text
    says = "nothing was recorded: the profiler did not start: {error}"


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
    says = "nothing was recorded: the block ended in another thread than the one that it began in"


class ProfilerDidNotStop(Noted):
    code = "profiler_did_not_stop"
    error: Text
    says = "the profiler did not stop: {error}"


class TraceNotWritten(Noted):
    code = "trace_not_written"
    folder: Text
    error: Text
    says = "no trace was written into {folder}: {error}"


class NoDigest(Noted):
    code = "no_digest"
    error: Text
    says = "no digest was written: {error}"


class TorchImportFailed(Noted):
    code = "torch_import_failed"
    torch: Text
    error: Text
    says = "No kernel provenance (torch {torch}: {error}): kernels are matched by name and order."


class TorchLacks(Noted):
    code = "torch_lacks"
    torch: Text
    names: Many[Text]

    def long(self) -> str:
        return (
            f"No kernel provenance (torch {self.torch} has no {', '.join(self.names)}): kernels are matched by name and"
            " order."
        )


class TorchMakesGraphsOtherwise(Noted):
    code = "torch_makes_graphs_otherwise"
    torch: Text
    arguments: Many[Text]
    known: Many[Text]

    def long(self) -> str:
        return (
            f"No kernel provenance (CompiledFxGraph of torch {self.torch} takes {', '.join(self.arguments)}, not"
            f" {', '.join(self.known)}): kernels are matched by name and order."
        )


class CompileReset(Noted):
    code = "compile_reset"
    says = "torch.compiler.reset() was called: later compilations were not recorded"


class NoCompileLog(Noted):
    code = "no_compile_log"
    torch: Text
    says = "torch {torch} has no known structured compile log"


class CompileLogUnreadable(Noted):
    code = "compile_log_unreadable"
    error: Text
    says = "torch's compile log could not be read ({error})"


class CompileLogLineUnreadable(Noted):
    code = "compile_log_line_unreadable"
    error: Text
    says = "a line of torch's compile log could not be read ({error})"


class CompileLogSilent(Noted):
    code = "compile_log_silent"
    torch: Text
    compilations: Count
    says = "torch {torch} compiled {compilations} times, none of them in its log"


class NoHigherPrecision(Noted):
    code = "no_higher_precision"
    dtype: Text
    says = "there is no precision above {dtype}"


class ModulesNotNamed(Noted):
    code = "modules_not_named"
    says = "the workload does not name its modules"


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
    says = "a model over several ranks is not called in it"


class ReferenceFailed(Noted):
    code = "reference_failed"
    error: Text
    says = "the model failed in it ({error})"
    says_short = "the model failed in it"


class InOneOutputOnly(Noted):
    code = "in_one_output_only"
    says = "is in only one of the two outputs"


class ShapesDiffer(Noted):
    code = "shapes_differ"
    shape: Many[Count]
    other_shape: Many[Count]
    says = "has shape {shape}, the other {other_shape}"


class CallableAlone(Noted):
    """What compiling one of a program's callables brings: it and what it calls were eager against all compiled."""

    code = "callable_alone"
    label: Text  #: Its name and place.
    result: Result
    speedup: Ratio | None  #: None of too few rounds.
    ci95: tuple[Ratio, Ratio] | None  #: Of this process.
    with_outliers: Ratio | None  #: The speed-up of all rounds, where that is another.
    is_tie: bool  #: Inconclusive because there is no difference that counts.

    def long(self) -> str:
        who = f"compiling {self.label}"
        if self.speedup is None or self.ci95 is None:
            return f"{who}: not told apart, too few rounds"
        also = f"; {times(self.with_outliers)} with outliers" if self.with_outliers else ""
        ends = f"{' to '.join(map(times, self.ci95))} as fast{also}"
        if self.result == "inconclusive":
            return f"{who}: {'no difference' if self.is_tie else 'not enough to tell'}, {ends}"
        ratio = times(max(self.speedup, 1 / self.speedup))
        return f"{who} makes the step {ratio} {self.result} in this process ({ends})"


class CallablesNotLookedAt(Noted):
    code = "callables_not_looked_at"
    number: Count

    def long(self) -> str:
        return f"{counted(self.number, 'more callable')} not looked at one by one"
