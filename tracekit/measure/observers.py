"""What is observed of a run's forms besides their times: what torch.compile says of itself, where work comes from,
what the forms return. What could not be observed is noted, and nothing measured is lost."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.measure import output_check, provenance, tagging
from tracekit.measure.diagnostics import DiagnosticLog, watched
from tracekit.measure.forms import Form, marked
from tracekit.measure.ranks import Ranks
from tracekit.measure.run_so_far import with_form, with_notes
from tracekit.measure.source_location import names_of
from tracekit.measure.timing import Timings
from tracekit.model.compilation import CallPhase, CompilingCall, FrameCompilation
from tracekit.model.note import Noted, distinct
from tracekit.model.numerics import PictureFile
from tracekit.model.progress import Progress
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.run import FormName, FormResult, Run
from tracekit.model.trace import Trace
from tracekit.model.workload import BuiltWorkload, Request
from tracekit.statements import noted as statements
from tracekit.workloads.scopes import repeated_blocks, with_shares

#: So many parts of a scope are named in a note.
NAMED = 5


class CompilationObserver(Struct):
    """Hears what torch.compile says of itself, in a log for each form of one workload. `timings` fill up with the calls
    that are timed. `warmup` is the request that warm-up calls are made for where it is another one than theirs, `sizes`
    what of it the user has named."""

    workload: BuiltWorkload
    timings: Timings
    warmup: Request | None = None
    sizes: dict[str, int] | None = None
    _logs: dict[FormName, DiagnosticLog] = field(default_factory=dict)

    def watched(self, form: Form) -> Form:
        """The form, heard from now on."""
        self._logs[form.name] = DiagnosticLog(self.workload.targets, warmed_up_at=self.sizes)
        return watched(form, self._logs[form.name])

    def warming(self, form: Form) -> Form:
        """The watched form as it is warmed up: the same one, unless warm-up calls are to be of other sizes."""
        if self.warmup is None:
            return form
        if self.workload.call_at is None:
            raise TracekitError(f"{self.workload.info.name} has a fixed input size: leave --warmup out")
        call = self.workload.call_at(self.warmup)
        if form.name == "compiled":
            call = marked(call, self.workload.settings.mode)
        return replace(form, call=self._logs[form.name].counted(call))

    def explained(self, run: Run) -> Run:
        """The run, with why torch.compile made no graph of the compiled form, and no part told as compiled."""
        blocks = repeated_blocks(self.workload.modules).values()
        why = self._logs["compiled"].why_nothing(blocks)
        return replace(run, not_compiled=why, components=with_shares(replace(self.workload, targets=())).components)

    def with_uncalled(self, run: Run, form: Form) -> Run:
        """The run, which tells what of the scope no call of the warm form came to: that was never compiled."""
        uncalled = form.uncalled()
        if not uncalled:
            return run
        note = statements.NeverCalled(tuple(uncalled[:NAMED]), max(len(uncalled) - NAMED, 0))
        entered = tuple(target for target in self.workload.targets if target.component not in uncalled)
        components = with_shares(replace(self.workload, targets=entered)).components
        return replace(with_notes(run, note), components=components)

    def begin(self, phase: CallPhase) -> None:
        """From now on calls are of this phase."""
        for log in self._logs.values():
            log.phase = phase

    def added(self, run: Run) -> Run:
        """The run with all that was said until now."""
        return replace(run, forms=tuple(map(self._diagnosed, run.forms)))

    def _diagnosed(self, form: FormResult) -> FormResult:
        """The form with its diagnostics, whose timed calls have the number of their round, from 1: some rounds call a
        form twice."""
        if form.compilation is None or form.name not in self._logs:
            return form
        timed = self.timings.calls.get(form.name, [])
        found = self._logs[form.name].diagnose({"warm-up": form.warmup_us, "timed": tuple(us for _, us in timed)})

        def number(each: CompilingCall | FrameCompilation) -> int:
            inside = each.phase == "timed" and 0 < each.call <= len(timed)
            return timed[each.call - 1][0] + 1 if inside else each.call

        found = replace(
            found,
            calls=tuple(replace(each, call=number(each)) for each in found.calls),
            frames=tuple(replace(each, call=number(each)) for each in found.frames),
        )
        return replace(form, compilation=replace(form.compilation, diagnostics=found))


class ProvenanceObserver(Struct):
    """Asks where each form's work came from, after everything else is measured. `notes` are for the run's manifest:
    what could not be found out, and why."""

    workload: BuiltWorkload
    wanted: bool
    notes: list[Noted] = field(default_factory=list)
    _collection: provenance.Collection | None = None

    @contextmanager
    def watching(self, name: FormName) -> Iterator[None]:
        """While the compiled form is compiled inside, Inductor tells where its kernels come from."""
        if not self.wanted or name != "compiled":
            yield
            return
        missing = provenance.missing_provenance()
        if missing:
            self.notes.append(missing)
        with nullcontext() if missing else provenance.collected(names_of(self.workload)) as self._collection:
            yield

    def ask(self, form: Form, draft: Path, progress: Progress) -> str | None:
        """One more call of the form, untimed; returns the file in `draft` that tells where its work came from. None,
        and a note, where that failed: nothing that was measured is lost by it."""
        if not self.wanted or (form.name == "compiled" and self._collection is None):
            return None
        raw = draft / f".{form.name}-origins.json"
        try:
            return store.save_provenance(self._asked(form, raw, progress), draft)
        except Exception as error:  # noqa: BLE001 - private parts of torch may fail in any way; the note says how.
            why = f"{type(error).__name__}: {error}"
            self.notes.append(statements.ProvenanceFailed(form.name, why))
            return None
        finally:
            raw.unlink(missing_ok=True)

    def keep_sources(self, form: Form, draft: Path) -> str | None:
        """The file in `draft` with the source of the form's Triton kernels; None where it has none."""
        if form.name != "compiled" or self._collection is None:
            return None
        found = self._collection.kernel_sources()
        return store.save_kernel_sources(found, draft) if found.sources else None

    def _asked(self, form: Form, raw: Path, progress: Progress) -> EagerOps | CompiledSites:
        # Not before calls are timed: polars starts threads.
        from tracekit.analysis.attribution import find_graph_calls, find_tagged
        from tracekit.analysis.cpu_work import cpu_work
        from tracekit.tracefile.read import read_trace

        def recorded() -> Trace:
            trace = read_trace(raw)
            return cpu_work(trace) if form.device == "cpu" else trace

        if form.name == "eager":
            ops = tagging.tag_eager(form, names_of(self.workload), raw, progress)
            return replace(ops, activities=find_tagged(recorded()))
        assert self._collection is not None
        sites = tagging.trace_calls(form, self._collection, raw, progress)
        keys, activities = find_graph_calls(recorded())
        called = tuple(None if call.graph is None else sites.graphs[call.graph].key for call in sites.calls)
        if len(keys) == len(called) and all(key in (None, seen) for key, seen in zip(called, keys, strict=True)):
            sites = replace(sites, activities=activities)
        else:
            note = statements.GraphCallsDiffer(len(keys), len(called))
            sites = replace(sites, noted=(*sites.noted, note))
        sites = replace(sites, noted=distinct(sites.noted))
        self.notes += [statements.ProvenanceIncomplete(note) for note in sites.noted]
        return sites


def with_outputs(
    run: Run,
    workload: BuiltWorkload,
    forms: tuple[Form, ...],
    calling_bytes: int,
    draft: Path,
    progress: Progress,
    ranks: Ranks,
) -> Run:
    """The run with what its forms return; a note, where that could not be found out: nothing measured is lost. The
    forms are not to be called afterwards: what they compiled may be forgotten."""
    try:
        checked, drawings = output_check.check_outputs(workload, forms, calling_bytes, progress, ranks)
    except Exception as error:  # noqa: BLE001 - a model may return anything; the note says what went wrong.
        return with_notes(run, statements.OutputsNotCompared(f"{type(error).__name__}: {error}"))
    for form in run.forms:
        pictures = [
            PictureFile(drawing.kind, store.save_picture(drawing.png, form.name, drawing.kind, draft), drawing.scale)
            for drawing in drawings[form.name]
        ]
        run = with_form(run, form.name, numerics=replace(checked[form.name], pictures=tuple(pictures)))
    return run
