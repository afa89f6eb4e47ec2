"""What is said of all ranks of a job, eager and compiled."""

from tracekit.numbers import count, percent
from tracekit.ranks.compared.nouns import JobChange, RankCall
from tracekit.ranks.statements.words import cause_name

#: Columns of a rank's change, by the labels of its waterfall's parts.
PARTS = {
    "compute": "compute",
    "overlap_price": "overlap price",
    "exposed_transfer": "transfer",
    "transfer_overlap": "overlap",
    "exposed_waiting": "waiting",
    "exposed_communication": "exposed communication",
}
IDLE, RESIDUAL = "idle", "residual"
#: Which is not the job's call: that is the slowest rank's in each round.
OWN_CALLS = "Own call of each rank"
CHANGE_NOTE = (
    "Eager + all changes = compiled, each rank by its own unprofiled calls: no two ranks' times add up, and the job's"
    " call is the slowest rank's of each round. “overlap price”: kernels slowed beside communication (est.)."
    " “transfer”: exposed communication by how much is transferred; “overlap”: by how much of it compute covers."
    " “residual”: traces are busier than the call is long."
)
#: Its compiled call, less the time that it waits for others, is longest.
PACE = ", sets the pace"
PROFILED = ", profiled"
PROFILED_NOTE = "“profiled”: as recorded, for its traces are busier than its unprofiled calls are long."
CALL_NOTE = "wall = compute + exposed transfer + exposed waiting + idle. “overlapped” is of all transfer."
FROM_RICH = (
    "The collectives of kernel-only traces match no other rank's: transfer is the full traces', and waiting is the rest"
    " of exposed communication."
)
UNTOLD = "Transfer cannot be told from waiting in these traces."
NO_GPU = "Not measured without a GPU: compute, communication and idle time of ranks. Times are unprofiled calls."


def how_told(job: JobChange) -> str:
    """What a reader must know of how waiting was told."""
    if all(each.a is None or each.b is None for each in job.ranks):
        return NO_GPU
    if job.recording is None:
        return UNTOLD
    return FROM_RICH if job.recording == "rich" else ""


def waits_words(call: RankCall) -> str:
    """`for rank 1: operator dispatch 44 %`; empty where it waits for none."""
    if not call.waits or not call.exposed_waiting_us:
        return ""
    waits = call.waits[0]
    total = sum(each.us for each in waits.causes)
    cause = f": {cause_name(waits.causes[0].cause)} {percent(waits.causes[0].us / total, 0)}" if total else ""
    return f"for rank {waits.rank}{cause}"


def transfer_words(job: JobChange, a: RankCall, b: RankCall) -> str:
    """`38 → 12 collectives, 12 % → 4 % overlapped`."""
    before, after = (sum(getattr(row, name) for row in job.collectives) for name in ("a_count", "b_count"))
    told = [f"{count(before)} → {count(after)} collectives"] if before != after else []
    if a.overlapped_share is not None and b.overlapped_share is not None:
        shares = dict.fromkeys(percent(each.overlapped_share, 0) for each in (a, b))
        told.append(f"{' → '.join(shares)} overlapped")
    return ", ".join(told)
