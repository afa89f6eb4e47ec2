"""What a reader is advised to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tracekit.model.bounded import doc

ActionCode = Literal[
    "run_again",
    "list_scopes",
    "compile_layers",
    "pin_memory",
    "keep_on_gpu",
    "read_after_the_call",
]


@dataclass(frozen=True, slots=True)
class Action:
    """What a reader is advised to do."""

    code: ActionCode
    command: Annotated[str | None, doc("What to type; None where a model's code is to be changed.")] = None
