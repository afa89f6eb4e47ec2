"""The part of `tracekit profile` that looks at what is around the timed calls: memory, the GPU's state, the outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit import store
from tracekit.model.gpu import FormMemory, GpuState
from tracekit.model.note import Noted
from tracekit.model.progress import Progress
from tracekit.model.run import FormName, FormResult, Run
from tracekit.model.workload import BuiltWorkload
from tracekit.walks.noting import numerics_in_words

if TYPE_CHECKING:
    from tracekit.capture.forms import Form
    from tracekit.capture.gpu_state import GpuWatch


@dataclass
class Surroundings:
    """What is seen around one run's forms. `notes` are for its manifest: what could not be looked at, and why."""

    workload: BuiltWorkload
    numerics: bool
    notes: list[Noted] = field(default_factory=list)
    _memory: dict[FormName, FormMemory | None] = field(default_factory=dict)
    _gpu: GpuWatch | None = None

    @contextmanager
    def warming(self, name: FormName) -> Iterator[None]:
        """While a form is warmed up inside, the memory that takes is watched."""
        from tracekit.capture.gpu_state import warm_up_watched

        with warm_up_watched(self.workload.settings.device) as watch:
            yield
        self._memory[name] = watch.found

    def settle(self, forms: tuple[Form, ...]) -> None:
        """Measures what each warm form's calls need, and leaves every form with its memory at hand."""
        from tracekit.capture.gpu_state import measure_steady

        for form in forms:
            self._memory[form.name] = measure_steady(form, self._memory.get(form.name))
        if self.workload.settings.device != "cpu":
            # What was given back to measure the last form is taken from the driver again now, not in a timed call.
            for form in forms[:-1]:
                with form.ready():
                    form.call()

    @contextmanager
    def timing(self, forms: tuple[Form, ...]) -> Iterator[tuple[Form, ...]]:
        """The forms to be timed inside: the same, with the GPU's state looked at between their calls."""
        from tracekit.capture.gpu_state import GpuWatch

        self._gpu = GpuWatch(self.workload.settings.device)
        with self._gpu.timing():
            yield tuple(self._gpu.watched(form) for form in forms)

    def told(self, run: Run) -> Run:
        """The run with what was seen of memory and the GPU."""

        def seen(form: FormResult) -> FormResult:
            return replace(form, memory=self.memory_of(form.name), gpu_state=self.state_of(form.name))

        return replace(run, forms=tuple(map(seen, run.forms)))

    def memory_of(self, name: FormName) -> FormMemory | None:
        """What memory the form took, as far as it was watched; None on a CPU."""
        return self._memory.get(name)

    def state_of(self, name: FormName) -> GpuState | None:
        """The GPU while the form was timed; None before that, and where nobody can be asked."""
        return self._gpu.state_of(name) if self._gpu else None

    def check(self, forms: tuple[Form, ...], run: Run, draft: Path, progress: Progress) -> Run:
        """The run with what its forms return; a note, where that could not be found out: nothing measured is lost."""
        from tracekit.capture.output_check import check_outputs, with_files

        if not self.numerics:
            return run
        try:
            checked = check_outputs(self.workload, forms, self._calling_bytes(), progress)
        except Exception as error:  # noqa: BLE001 - a model may return anything; the note says what went wrong.
            self.notes.append(Noted("outputs_not_compared", {"error": f"{type(error).__name__}: {error}"}))
            return run

        def compared(form: FormResult) -> FormResult:
            found = checked[form.name]
            paths = tuple(store.save_picture(each.png, form.name, each.kind, draft) for each in found.drawings)
            return replace(form, numerics=numerics_in_words(with_files(found, paths)))

        return replace(run, forms=tuple(map(compared, run.forms)))

    def _calling_bytes(self) -> int:
        """What one eager call allocates beside the weights; 0 on a CPU, where nobody counts."""
        memory = self._memory.get("eager")
        if memory is None:
            return 0
        return max((memory.steady or memory.warmup).allocated_bytes - memory.before_bytes, 0)
