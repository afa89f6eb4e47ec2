"""A run as the JSON that benchmark actions of CI read (`customSmallerIsBetter` of github-action-benchmark).

Names stay the same from run to run of the same work; the machine and its software stand in `extra`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import quantiles
from typing import Any
from zlib import crc32

import msgspec

from tracekit.model.comparison import Side
from tracekit.model.run import Settings
from tracekit.names import encodable
from tracekit.report.words.common import work_words
from tracekit.shell import variable_words

MIB = 2**20


def benchmark_json(sides: Iterable[Side]) -> str:
    """A list of figures of which less is better, of each side; what was not measured is not in it.

    `range` is half the distance between the quartiles of the timed calls.
    """
    entries = [entry for side in sides for entry in _entries(side)]
    return msgspec.json.format(msgspec.json.encode(entries), indent=1).decode() + "\n"


def _entries(side: Side) -> Iterator[dict[str, Any]]:
    subject = _subject(side)
    extra = _setting(side)
    for name, unit, value in _figures(side):
        if value is None:
            continue
        entry = {"name": f"{subject}: {name}", "unit": unit, "value": round(value, 6), "extra": extra}
        spread = _spread_ms(side) if name == "call" else None
        yield entry if spread is None else {**entry, "range": f"± {spread:.6g}"}


def _subject(side: Side) -> str:
    """`vit, full size, bfloat16, batch 1, compiled (reduce-overhead, scope model)`: other work, and another way to
    compile, has a history of its own."""
    if side.settings is None:
        return side.label
    model, work = work_words(side.settings)
    return ", ".join([*model, *work, *_more_work(side.settings), f"{side.label}{_way(side)}"])


def _more_work(settings: Settings) -> Iterator[str]:
    """What reports tell elsewhere, and makes other work."""
    if settings.own and "batch_size" in settings.own.takes:
        yield f"batch {settings.batch_size}"
    if settings.pretrained:
        yield f"weights of {settings.pretrained}"
    if settings.generation and settings.prompt is not None:
        # Its length is that of the work, but a prompt is no name.
        yield f"prompt {crc32(settings.prompt.encode()):08x}"


def _way(side: Side) -> str:
    """How it was compiled, and by what torch was steered, in brackets; nothing where there is neither."""
    settings = side.settings
    if settings is None or side.form is None:
        return ""
    steered = [variable_words(settings.variables)] if settings.variables else []
    if side.form.name == "eager":
        return f" ({steered[0]})" if steered else ""
    dynamic = {None: [], True: ["dynamic"], False: ["not dynamic"]}[settings.dynamic]
    # Whether breaks are allowed (`--fullgraph`) changes no code that has none.
    ways = [settings.mode, f"scope {settings.scope}", *dynamic, *steered]
    return f" ({', '.join(ways)})"


def _figures(side: Side) -> Iterator[tuple[str, str, float | None]]:
    kernels, launches, form = side.analysis.kernels, side.analysis.launches, side.form
    yield "call", "ms", _ms(side.wall_us)
    yield "GPU busy", "ms", _ms(side.busy_us)
    yield "GPU idle", "ms", _ms(side.unprofiled_idle_us)
    yield "kernels", "kernels", kernels.count / side.steps if kernels else None
    yield "launches", "launches", launches.count / side.steps if launches else None
    yield "peak memory", "MiB", form.peak_memory_bytes / MIB if form and form.peak_memory_bytes is not None else None
    yield "compiling", "s", form.compilation.seconds if form and form.compilation else None


def _ms(us: float | None) -> float | None:
    return us / 1000 if us is not None else None


def _spread_ms(side: Side) -> float | None:
    if side.form is None or len(side.form.wall_us) < 2:
        return None
    first, _, third = quantiles(side.form.wall_us, n=4)
    return (third - first) / 2000


def _setting(side: Side) -> str:
    """The machine, the software and what was asked for, a line each."""
    settings, environment = side.settings, side.environment
    if settings is None or environment is None:
        return encodable(side.path)
    torch = environment.packages.get("torch")
    told = [
        environment.gpu or environment.cpu,
        f"torch {torch}" if torch else None,
        f"size {settings.size}, {settings.dtype}, batch {settings.batch_size}, mode {settings.mode}",
        f"{len(side.form.wall_us)} timed calls" if side.form else None,
    ]
    return "\n".join(each for each in told if each)
