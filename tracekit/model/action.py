"""What a reader is advised to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    """`command` is what to type, which a shell or a program takes as it stands; None where a model's code is to be
    changed, which `report/words/actions.py` tells how."""

    code: ActionCode
    command: str | None = None
