"""The part of `tracekit profile` that hears what torch.compile says of itself, form by form, and says what it was never
asked to compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracekit.errors import TracekitError
from tracekit.model.compilation import CallPhase
from tracekit.model.note import Noted
from tracekit.model.run import FormName, FormResult, Run
from tracekit.model.workload import BuiltWorkload, Request
from tracekit.walks.noting import diagnostics_in_words, with_notes

if TYPE_CHECKING:
    from tracekit.capture.diagnostics import DiagnosticLog
    from tracekit.capture.forms import Form
    from tracekit.capture.timing import Timings
    from tracekit.model.compilation import CompilingCall, Diagnostics, FrameCompilation

#: So many parts of a scope are named in a note.
NAMED = 5


@dataclass
class Diagnoses:
    """A log for each form of one workload. `warmup` is the request that warm-up calls are made for where it is another
    one than that of the timed calls, `sizes` what of it the user has named."""

    workload: BuiltWorkload
    warmup: Request | None = None
    sizes: dict[str, int] | None = None
    _logs: dict[FormName, DiagnosticLog] = field(default_factory=dict)
    _timed: dict[FormName, list[tuple[int, float]]] = field(default_factory=dict)

    def timed(self, timings: Timings) -> None:
        """Says which of the calls that were heard belongs to which round: some rounds call a form twice."""
        self._timed = timings.calls

    def watched(self, form: Form) -> Form:
        """The form, heard from now on."""
        from tracekit.capture.diagnostics import DiagnosticLog, watched

        self._logs[form.name] = DiagnosticLog(warmed_up_at=self.sizes)
        return watched(form, self._logs[form.name])

    def warming(self, form: Form) -> Form:
        """The watched form as it is warmed up: the same one, unless warm-up calls are to be of other sizes."""
        if self.warmup is None:
            return form
        from tracekit.capture.forms import marked

        call = self._call_at(self.warmup)
        if form.name == "compiled":
            call = marked(call, self.workload.settings.mode)
        return replace(form, call=self._logs[form.name].counted(call))

    def _call_at(self, request: Request) -> Callable[[], object]:
        if self.workload.call_at is None:
            raise TracekitError(f"{self.workload.info.name} cannot be called at other sizes: leave --warmup out")
        return self.workload.call_at(request)

    def begin(self, phase: CallPhase) -> None:
        """From now on calls are of this phase."""
        for log in self._logs.values():
            log.phase = phase

    def added(self, run: Run) -> Run:
        """The run with all that was said until now."""
        return replace(run, forms=tuple(self._with_diagnostics(form) for form in run.forms))

    def _with_diagnostics(self, form: FormResult) -> FormResult:
        if form.compilation is None or form.name not in self._logs:
            return form
        timed = self._timed.get(form.name, [])
        found = self._logs[form.name].diagnose({"warm-up": form.warmup_us, "timed": tuple(us for _, us in timed)})
        found = by_rounds(diagnostics_in_words(found), [number for number, _ in timed])
        return replace(form, compilation=replace(form.compilation, diagnostics=found))


def by_rounds(found: Diagnostics, rounds: list[int]) -> Diagnostics:
    """The diagnostics with timed calls numbered by their round, from 1; `rounds` (from 0) has one for each call."""

    def number(each: CompilingCall | FrameCompilation) -> int:
        inside = each.phase == "timed" and 0 < each.call <= len(rounds)
        return rounds[each.call - 1] + 1 if inside else each.call

    return replace(
        found,
        calls=tuple(replace(each, call=number(each)) for each in found.calls),
        frames=tuple(replace(each, call=number(each)) for each in found.frames),
    )


def with_uncalled(run: Run, workload: BuiltWorkload, form: Form) -> Run:
    """The run, which tells what of the scope no call of the warm form came to: that was never compiled."""
    from tracekit.workloads.scopes import with_shares

    uncalled = form.uncalled()
    if not uncalled:
        return run
    note = Noted("never_called", {"parts": tuple(uncalled[:NAMED]), "more": max(len(uncalled) - NAMED, 0)})
    entered = tuple(target for target in workload.targets if target.component not in uncalled)
    components = with_shares(replace(workload, targets=entered)).components
    return replace(with_notes(run, note), components=components)
