"""A run as the JSON of benchmark actions, and kernel groups as rows of a table."""

from collections.abc import Callable, Iterable
from math import fsum
from statistics import quantiles
from typing import Any
from zlib import crc32

import msgspec

from tracekit.model.comparison import Comparison, KernelGroup, Side
from tracekit.names import encodable
from tracekit.report.words.common import compiling_words, work_words
from tracekit.report.words.groups import label_words
from tracekit.shell import variable_words

MIB = 2**20
#: Between several names in one cell.
BETWEEN = "; "
#: What is told of each kernel group, and what kind of figure that is.
OF_GROUP: dict[str, tuple[type, Callable[[KernelGroup], object]]] = {
    "kind": (str, lambda group: group.kind),
    "label": (str, lambda group: label_words(group.label)),
    "matched_by": (str, lambda group: group.how),
    "repeats": (float, lambda group: float(group.repeats)),
    "a_count": (float, lambda group: fsum(member.count for member in group.a)),
    "b_count": (float, lambda group: fsum(member.count for member in group.b)),
    "a_us": (float, lambda group: fsum(member.total_us for member in group.a)),
    "b_us": (float, lambda group: fsum(member.total_us for member in group.b)),
    "delta_count": (float, lambda group: float(group.delta_count)),
    "delta_us": (float, lambda group: float(group.delta_us)),
    "a_bytes": (float, lambda group: group.traffic.eager_bytes if group.traffic else None),
    "b_bytes": (float, lambda group: group.traffic.compiled_bytes if group.traffic else None),
    "where": (str, lambda group: BETWEEN.join(group.where)),
    "a_kernels": (str, lambda group: BETWEEN.join(member.name for member in group.a)),
    "b_kernels": (str, lambda group: BETWEEN.join(member.name for member in group.b)),
    "evidence": (str, lambda group: BETWEEN.join(group.evidence_words)),
}
#: What every file of kernel groups has, whatever is known of them.
GROUP_COLUMNS = {"group": int, **{name: kind for name, (kind, _) in OF_GROUP.items()}}


def benchmark_json(sides: Iterable[Side]) -> str:
    """A run as benchmark actions of CI read it (`customSmallerIsBetter` of github-action-benchmark): a list of figures
    of which less is better, of each side; what was not measured is not in it.

    Names stay the same from run to run of the same work; the machine and its software stand in `extra`. `range` is half
    the distance between the quartiles of the timed calls.
    """
    entries = []
    for side in sides:
        work, extra, form = _work(side), _setting(side), side.form
        kernels, launches = side.analysis.kernels, side.analysis.launches
        peak = form.peak_memory_bytes if form else None
        times = {"call": side.wall_us, "GPU busy": side.busy_us, "GPU idle": side.unprofiled_idle_us}
        figures = [
            *((name, "ms", us / 1000 if us is not None else None) for name, us in times.items()),
            ("kernels", "kernels", kernels.count / side.steps if kernels else None),
            ("launches", "launches", launches.count / side.steps if launches else None),
            ("peak memory", "MiB", peak / MIB if peak is not None else None),
            ("compiling", "s", form.compilation.seconds if form and form.compilation else None),
        ]
        for name, unit, value in figures:
            if value is None:
                continue
            entry = {"name": f"{work}: {name}", "unit": unit, "value": round(value, 6), "extra": extra}
            if name == "call" and form and len(form.steady_us) > 1:
                first, _, third = quantiles(form.steady_us, n=4)
                entry["range"] = f"± {(third - first) / 2000:.6g}"
            entries.append(entry)
    return msgspec.json.format(msgspec.json.encode(entries), indent=1).decode() + "\n"


def _work(side: Side) -> str:
    """`vit, full size, bfloat16, batch 1, compiled (reduce-overhead, scope model)`: other work, and another way to
    compile, has a history of its own."""
    settings, form = side.settings, side.form
    if settings is None:
        return side.label
    model, work = work_words(settings)
    # What reports tell elsewhere, and makes other work.
    if settings.own and "batch_size" in settings.own.takes:
        work.append(f"batch {settings.batch_size}")
    if settings.pretrained:
        work.append(f"weights of {settings.pretrained}")
    if settings.generation and settings.prompt is not None:
        # Its length is that of the work, but a prompt is no name.
        work.append(f"prompt {crc32(settings.prompt.encode()):08x}")
    # How it was compiled, and by what torch was steered. Whether breaks are allowed (`--fullgraph`) changes no code
    # that has none.
    steered = [variable_words(settings.variables)] if settings.variables and form else []
    if form and form.name != "eager":
        dynamic = {None: [], True: ["dynamic"], False: ["not dynamic"]}[settings.dynamic]
        scope = [] if settings.is_of_program else [f"scope {settings.scope}"]
        steered = [settings.mode, *scope, *dynamic, *compiling_words(settings), *steered]
    way = f" ({', '.join(steered)})" if steered else ""
    return ", ".join([*model, *work, f"{side.label}{way}"])


def _setting(side: Side) -> str:
    """The machine, the software and what was asked for, a line each."""
    settings, environment = side.settings, side.environment
    if settings is None or environment is None:
        return encodable(side.path)
    torch = environment.packages.get("torch")
    asked = [f"size {settings.size}", settings.dtype, f"batch {settings.batch_size}", f"mode {settings.mode}"]
    if settings.is_of_program:
        asked = [settings.dtype, f"mode {settings.mode}"]
    lines = [
        environment.gpu or environment.cpu,
        f"torch {torch}" if torch else None,
        ", ".join(asked),
        f"{len(side.form.wall_us)} timed calls" if side.form else None,
    ]
    return "\n".join(filter(None, lines))


def group_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Kernel groups for spreadsheets and notebooks, one row a group, largest change first; counts and microseconds per
    step, bytes and rates as estimated."""
    return [
        {"group": number, **{name: told(group) for name, (_, told) in OF_GROUP.items()}}
        for number, group in enumerate(comparison.groups, 1)
    ]
