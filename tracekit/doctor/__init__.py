"""Whether this machine can profile. Each check answers one question with a `Check`."""

from typing import Literal

from msgspec import Struct


class Check(Struct, frozen=True):
    """What `tracekit doctor` says of one question. `fix` is a command or a sentence that mends it; None when nothing is
    to be done. `problem`: profiling fails or measures wrongly. `warning`: something is limited. `skipped`: there was
    nothing to check here, and the message says why."""

    status: Literal["ok", "warning", "problem", "skipped"]
    message: str
    fix: str | None = None
