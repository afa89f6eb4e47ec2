"""What `--warmup` asks for: warm-up calls of other sizes than the timed ones, as in the classic mistake."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace

from tracekit.errors import TracekitError
from tracekit.model.option import OPTIONS
from tracekit.model.run import Settings
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.walks.timing_plan import TimingPlan
from tracekit.workloads.registry import all_workloads
from tracekit.workloads.sizes import check_pixels, check_request

#: The sizes every workload has.
EVERYWHERE = tuple(each.name for each in OPTIONS if each.role == "call" and each.everywhere)
#: Those of the workloads that can be called at other ones.
RESIZED = {*EVERYWHERE, *(name for info in all_workloads() if info.resizes for name in info.takes)}
#: What may be named, by the field of a Request that it is.
SIZES = {"batch": "batch_size"} | {
    each.name: each.name for each in OPTIONS if each.role == "call" and each.name in RESIZED
}


def parse_warmup(text: str) -> dict[str, int]:
    """`batch=1,height=256` by the fields of a Request. Raises TracekitError for whatever is no size."""
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        known = SIZES.get(name.replace("-", "_"))
        if known is None:
            raise TracekitError(f"--warmup knows no size {name!r}: {_nearest(name)}")
        if not equals or not value.isdecimal() or not 0 < int(value) < 2**31:
            raise TracekitError(f"--warmup {part.strip()!r}: write a size as {name}=N, a whole number from 1")
        if known in sizes:
            raise TracekitError(f"--warmup names {name} twice")
        sizes[known] = int(value)
    return sizes


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), SIZES, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"it takes {_spelt(SIZES.values())}, as in batch=4"


def warmup_request(info: WorkloadInfo, request: Request, sizes: dict[str, int]) -> Request:
    """The request with these sizes in place of its own. Raises TracekitError for those the workload has not, or cannot
    make, and where all of them are the request's own."""
    if not info.resizes:
        raise TracekitError(f"{info.name} cannot be called at other sizes: leave --warmup out")
    has = (*EVERYWHERE, *info.takes)
    for name in sizes:
        if name not in has:
            there = _spelt(each for each in SIZES.values() if each in has)
            raise TracekitError(f"{info.name} has no {name} to warm up at: --warmup takes {there}")
    check_differs(sizes, request)
    asked = replace(request, **sizes)  # type: ignore[arg-type]
    check_request(info, request)
    check_pixels(info, asked, "--warmup {}={}")
    return asked


def check_alone(plan: TimingPlan, *, verify: bool = False) -> None:
    """Raises TracekitError where fresh processes are asked for too: they warm up at the sizes that are timed."""
    asked = [("--repeat-process", plan.repeats > 0), ("--startup", plan.startup), ("--verify-advice", verify)]
    given = " and ".join(option for option, is_given in asked if is_given)
    if given:
        raise TracekitError(
            f"--warmup is tried in the run's own process, and {given} in others that warm up as usual: two experiments;"
            " make two runs of them"
        )


def check_differs(sizes: dict[str, int], timed: Request | Settings) -> None:
    """Raises TracekitError where the sizes to warm up at are those that are timed: nothing would be compiled again."""
    if all(getattr(timed, name) == size for name, size in sizes.items()):
        told = ", ".join(f"{_spelling(name)}={size}" for name, size in sizes.items())
        raise TracekitError(
            f"--warmup {told} is what is timed: name another size, or time another one (--batch-size 4, say)"
        )


def _spelt(names: Iterable[str]) -> str:
    """As a user writes them: `batch, height`."""
    return ", ".join(dict.fromkeys(map(_spelling, names)))


def _spelling(name: str) -> str:
    return "batch" if name == "batch_size" else name
