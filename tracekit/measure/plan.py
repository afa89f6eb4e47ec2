"""What one `tracekit profile` is to do: of what, how long it times, where the run goes, at which sizes it warms up."""

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePath

from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.model.bounded import Patience, Percent, Repeats
from tracekit.model.option import OPTIONS
from tracekit.model.run import FormName, Settings
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.wings import Jobs, jobs
from tracekit.workloads.registry import all_workloads, check_scope, find
from tracekit.workloads.sizes import check_pixels, check_request

#: Half the width of the speed-up's interval to reach, in percent.
TARGET_PERCENT = 1.0
#: How long to try. A CPU run is a demonstration, and its times scatter too much to wait for.
GPU_SECONDS = 30.0
CPU_SECONDS = 3.0
#: How long ranks wait for one that does not come: longer than compiling takes on one that finds nothing cached.
RANKS_SECONDS = 600.0
#: What ranks of a job started elsewhere have in their environment.
RANK = "RANK"
OF_A_JOB = ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
#: Of a scope, so much goes into a folder's name.
SCOPE_CHARACTERS = 60

#: The sizes that every workload has.
COMMON_SIZES = tuple(each.name for each in OPTIONS if each.role == "call" and each.everywhere)
#: What --warmup may name, by the field of a Request: those, and the sizes of workloads that can be called at others.
_RESIZED = {*COMMON_SIZES, *(name for info in all_workloads() if info.resizes for name in info.takes)}
WARMUP_SIZES = {"batch": "batch_size"} | {
    each.name: each.name for each in OPTIONS if each.role == "call" and each.name in _RESIZED
}


class TimingPlan(Struct, frozen=True):
    """What the user asked of the timing; None leaves it to the defaults."""

    target_percent: Percent | None = None
    budget_seconds: Patience | None = None
    repeats: Repeats = 0
    startup: bool = False


class Plan(Struct, frozen=True):
    """What one `tracekit profile` is to do."""

    request: Request
    forms: tuple[FormName, ...]
    out: Path | None
    force: bool
    command: str
    provenance: bool = True
    warmup: dict[str, int] | None = None
    timing: TimingPlan = field(default_factory=TimingPlan)
    numerics: bool = True
    verify: bool = False
    timeout_seconds: Patience = RANKS_SECONDS


def plan_timing(
    iterations: bool, target_percent: float | None, budget_seconds: float | None, repeats: int, startup: bool
) -> TimingPlan:
    """The plan. Raises TracekitError where a number of calls was asked for, and a rule to find it too."""
    if iterations and (target_percent is not None or budget_seconds is not None):
        raise TracekitError(
            "--iterations fixes the number of calls: leave it out, or leave out --target and --time-budget"
        )
    return TimingPlan(target_percent, budget_seconds, repeats, startup)


def stopping_rule(plan: TimingPlan, request: Request, settings: Settings) -> StoppingRule:
    """When to stop timing a run of these settings, whose `iterations` are the fewest that may reach the target."""
    default = GPU_SECONDS if settings.device != "cpu" else CPU_SECONDS
    return StoppingRule(
        rounds=request.iterations,
        target=(plan.target_percent or TARGET_PERCENT) / 100,
        budget_seconds=plan.budget_seconds or default,
        least=settings.iterations,
    )


def place_of_run(plan: Plan) -> Path:
    """The folder that the run is written into: `flux-eager`, `flux-compiled-reduce-overhead-regional`; defaults go
    unnamed. Raises TracekitError for an unknown workload and a wrong scope."""
    request = plan.request
    scope = check_scope(find(request.workload), request.scope)
    if plan.out:
        return plan.out
    parts = [folder_name(request.workload), plan.forms[-1], request.phase, request.cache]
    parts += [f"{request.nproc}-ranks"] if request.nproc else []
    parts += [request.parallel, "checkpointed" if request.checkpoint else None]
    if "compiled" in plan.forms:
        parts += [request.mode] if request.mode != "default" else []
        named = re.sub(r"[^\w.+-]+", "_", scope.replace("*", "each").replace(",", "+"))
        parts += [named[:SCOPE_CHARACTERS]] if request.scope else []
        parts += [request.compile_order, "compiled-autograd" if request.compiled_autograd else None]
    return Path("traces") / "-".join(each for each in parts if each)


def folder_name(workload: str) -> str:
    """The workload's name as one that every file system takes: `my_model-build` for `src/my_model.py:build`,
    `hf-google-vit-base` for `hf:google/vit-base`."""
    where, colon, function = workload.rpartition(":")
    if colon and where.endswith(".py"):
        workload = f"{PurePath(where).stem}-{function}"
    # A file's name may have 255 bytes; of a long one the end says most.
    plain = re.sub(r"\W*[^\w.-]\W*", "-", workload, flags=re.ASCII).strip("-.")
    return plain[-100:].lstrip("-.") or "own"


def parse_warmup(text: str) -> dict[str, int]:
    """`batch=1,height=256` by the fields of a Request. Raises TracekitError for whatever is no size."""
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        known = WARMUP_SIZES.get(name.replace("-", "_"))
        if known is None:
            near = difflib.get_close_matches(name.lower(), WARMUP_SIZES, n=1, cutoff=0.5)
            mend = f"did you mean {near[0]}?" if near else f"pass {_spelt(WARMUP_SIZES.values())}, as in batch=4"
            raise TracekitError(f"--warmup has no size named {name!r}: {mend}")
        if not equals or not value.isdecimal() or not 0 < int(value) < 2**31:
            raise TracekitError(f"--warmup {part.strip()!r}: write {name}=N with N a whole number from 1")
        if known in sizes:
            raise TracekitError(f"--warmup names {name} twice")
        sizes[known] = int(value)
    return sizes


def warmup_request(info: WorkloadInfo, request: Request, sizes: dict[str, int]) -> Request:
    """The request with these sizes in place of its own. Raises TracekitError for those the workload has not, or cannot
    make, and where all of them are the request's own."""
    if not info.resizes:
        raise TracekitError(f"{info.name} has a fixed input size: leave --warmup out")
    has = (*COMMON_SIZES, *info.takes)
    for name in sizes:
        if name not in has:
            there = _spelt(each for each in WARMUP_SIZES.values() if each in has)
            raise TracekitError(f"{info.name} has no {name}: --warmup takes {there}")
    refuse_timed_sizes(sizes, request)
    asked = replace(request, **sizes)
    check_request(info, request)
    check_pixels(info, asked, "--warmup {}={}")
    return asked


def refuse_warmup_beside_processes(plan: Plan) -> None:
    """Raises TracekitError where fresh processes are asked for too: they warm up at the sizes that are timed."""
    if given := " and ".join(_in_processes(plan)):
        raise TracekitError(
            f"--warmup and {given} cannot be combined: the other processes would warm up as usual; make two runs"
        )


def rank_here() -> int | None:
    """The rank that a launcher has given to this process; None where none has."""
    text = os.environ.get(RANK, "")
    return int(text) if text.isdecimal() and all(name in os.environ for name in OF_A_JOB) else None


def jobs_wing() -> Jobs:
    """Of the wing that runs work in several ranks. Raises TracekitError where there is none."""
    found = jobs()
    if found is None:
        raise TracekitError("this tracekit runs one process alone: leave --nproc out, and start it without a launcher")
    return found


def refuse_alone(request: Request) -> None:
    """Raises TracekitError for what is for several ranks where there is one process."""
    if request.parallel and not request.nproc and rank_here() is None:
        raise TracekitError(f"--parallel {request.parallel} is for several ranks: pass --nproc N")


def refuse_processes_of_ranks(plan: Plan) -> None:
    """Raises TracekitError where several ranks are asked for together with what is measured in further processes."""
    if given := " and ".join([*_in_processes(plan), *(["--warmup"] if plan.warmup is not None else [])]):
        raise TracekitError(f"--nproc and {given} cannot be combined: leave {given} out, or measure one process")


def _in_processes(plan: Plan) -> list[str]:
    """The options that were given for which further processes measure."""
    timing = plan.timing
    options = {"--repeat-process": timing.repeats, "--startup": timing.startup, "--verify-advice": plan.verify}
    return [option for option, given in options.items() if given]


def refuse_timed_sizes(sizes: dict[str, int], timed: Request | Settings) -> None:
    """Raises TracekitError where the sizes to warm up at are those that are timed: nothing would be compiled again."""
    if all(getattr(timed, name) == size for name, size in sizes.items()):
        given = ", ".join(f"{_spelt([name])}={size}" for name, size in sizes.items())
        raise TracekitError(
            f"--warmup {given} equals the timed size: pass another size, or time another one (e.g. --batch-size 4)"
        )


def _spelt(names: Iterable[str]) -> str:
    """As a user writes them: `batch, height`."""
    return ", ".join(dict.fromkeys("batch" if name == "batch_size" else name for name in names))
