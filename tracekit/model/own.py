"""A user's own model: what they hand over, and what a run notes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tracekit.model.bounded import Many, Text, doc

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What `build()` may return where a module with inputs, or a callable, does not say enough.

    `call` makes one measured call, always the same work, and returns its output. `modules` are the model's parts by
    name: names in reports begin with them. `compiled` names those that are compiled, all of them if None. `call_at(n)`
    gives a call of the same model at batch size n, for `--warmup batch=n`. `title` says what the model is and `notes`
    what a reader of the report must know; both stand in the report.
    """

    call: Callable[[], object]
    modules: Mapping[str, nn.Module]
    compiled: tuple[str, ...] | None = None
    call_at: Callable[[int], Callable[[], object]] | None = None
    title: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Own:
    """What tells a run of a user's own model from others."""

    options: Annotated[Many[Text], doc("Of `build()`, each as NAME=VALUE.")] = ()
    takes: Annotated[Many[Text], doc("The options of the command that `build()` takes.")] = ()
    in_program: Annotated[bool, doc("Measured by `tracekit.profile` in a program, not by a command.")] = False
