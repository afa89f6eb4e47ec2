"""What can one process, or two, not tell of a change? Here lives how large a change must be to need no repeating."""

from __future__ import annotations

import math

from tracekit.comparison.judging.compiling_calls import compilations_while_timed
from tracekit.comparison.judging.timed import Timed
from tracekit.model.comparison import Verdict
from tracekit.model.note import Note

#: So few processes and more tell what processes have in common; of two the interval is 9 times as wide as of many.
ENOUGH_PROCESSES = 3
#: A larger change than this another start of the program hardly turns around, where forms keep the GPU busy, and where
#: nobody knows: of two such works that were timed more than once on H200s the speed-up differed by 1.3 and 3 %.
LARGE = 0.1
#: From this share of a call on the GPU waits for the host enough for the host's moods to move the speed-up. Of works
#: timed two to four times on H200s those idle for 52 to 82 % of a call in one form at least differed by 6 to 20 %,
#: those idle for 2 and 14 % by less than `LARGE`; between 14 and 52 % nothing was measured, and a warning too many
#: costs less.
WAITING_SHARE = 0.2
#: The most that the speed-up of such a form differed by between processes: of ResNet-50 at batch 4 with CUDA graphs,
#: from 5.171 to 6.849 (docs/timing.md).
WAITING_DIFFERS = 0.32
#: The same as `LARGE` for them: beyond the most that was seen, 4 standard deviations of how two processes differ.
LARGE_WAITING = 0.4

SMALL_CHANGE = Note("one_process_small_change")
TWO_PROCESSES = Note("two_processes")


def find_unrepeated(a: Timed, b: Timed, verdict: Verdict) -> tuple[Note, ...]:
    """A note where the change is too small for how few processes tell of it; empty where it is not. Where a form
    waits for the host that is said of what is inconclusive too: another process may find a change."""
    if verdict.processes is None or verdict.speedup is None:
        return ()
    if verdict.processes > 1:
        return (TWO_PROCESSES,) if verdict.processes < ENOUGH_PROCESSES else ()
    change = abs(math.log(verdict.speedup))
    idler = max(a, b, key=lambda side: side.idle_share or 0.0)
    if waits_for_host(idler):
        withheld = any(map(compilations_while_timed, (a, b)))
        return (_waiting(idler),) if change < math.log1p(LARGE_WAITING) and not withheld else ()
    return (SMALL_CHANGE,) if change < math.log1p(LARGE) and verdict.result != "inconclusive" else ()


def waits_for_host(side: Timed) -> bool:
    """Whether the GPU is idle for so much of the side's call that the speed-up moves with the process. Not where nobody
    looked."""
    return side.idle_share is not None and side.idle_share >= WAITING_SHARE


def _waiting(side: Timed) -> Note:
    facts = {"idle_share": side.idle_share, "seen_apart": WAITING_DIFFERS}
    return Note("one_process_waits_for_host", subject=side.label, facts=facts)
