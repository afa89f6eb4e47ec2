"""What the verdict and its neighbours ask of a side: its form, how it was timed, of traces idle time alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tracekit.model.compilation import Diagnostics
from tracekit.model.run import FormResult


class Timed(Protocol):
    """A side of a comparison, or a form that was timed and never recorded."""

    @property
    def label(self) -> str: ...

    @property
    def form(self) -> FormResult | None: ...

    @property
    def wall_us(self) -> float | None: ...

    @property
    def idle_share(self) -> float | None: ...

    @property
    def diagnostics(self) -> Diagnostics | None: ...


@dataclass(frozen=True, slots=True)
class TimedForm:
    """A form without a trace."""

    label: str
    form: FormResult

    @property
    def wall_us(self) -> float | None:
        """The median unprofiled call; None when there was none."""
        from statistics import median

        return median(self.form.wall_us) if self.form.wall_us else None

    @property
    def idle_share(self) -> None:
        """Only a recording tells how long the GPU was idle."""
        return None

    @property
    def diagnostics(self) -> Diagnostics | None:
        """What torch.compile said while the form was run; None where nobody asked."""
        return self.form.compilation.diagnostics if self.form.compilation else None
