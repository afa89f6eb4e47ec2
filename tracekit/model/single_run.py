"""One side by itself: what its page tells."""

from typing import Literal

from msgspec import Struct

from tracekit.model.comparison import Finding, Side
from tracekit.model.compilation import NotCompiled
from tracekit.model.note import Note
from tracekit.model.provenance import SourceLines

RemedyCode = Literal[
    "compute_on_gpu",
    "capture_in_graph",
    "select_on_gpu",
    "fix_sizes",
    "move_call",
    "allow_compiler",
    "remove_break",
    "return_values",
    "move_context",
    "compile_body",
    "name_line",
]


class Remedy(Struct, frozen=True):
    """What may let torch.compile compile a function."""

    code: RemedyCode
    option: str | None = None  #: What is added to the command; None where a model's code is to be changed.
    command: str | None = None  #: The whole command.


class NothingCompiled(Struct, frozen=True):
    """Why a run that was to have a compiled form has none."""

    reasons: tuple[NotCompiled, ...]  #: The first to be met first; empty where torch told none.
    remedies: tuple[Remedy, ...]
    source: SourceLines | None = None  #: Around the first reason's line; None where that is not there.


class SingleRun(Struct, frozen=True):
    """One side by itself: what its page tells beside the figures."""

    side: Side
    findings: tuple[Finding, ...]  #: Those that need no other side to compare with.
    notes: tuple[Note, ...]  #: What a reader must know before believing the figures.
    nothing_compiled: NothingCompiled | None = None  #: None for all but runs of which torch.compile compiled nothing.
