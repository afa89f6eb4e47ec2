"""Inductor's code of Triton kernels, as rows of kernels and of groups show it: each kernel once in a page."""

from collections.abc import Iterable, Sequence

from markupsafe import escape

from tracekit.model.comparison import Side
from tracekit.names import short_kernel_name
from tracekit.report.document import KernelCode

#: Bytes of all code in a page before it is packed, and characters of one kernel's.
MOST_BYTES = 600_000
LONGEST_CODE = 12_000
#: Where the kernel itself begins, after what tells its launcher of shapes and devices.
BEGINNING = "@triton.jit"

#: The ids of the code of each name.
CodeOf = dict[str, tuple[str, ...]]


def kernel_code(sides: Sequence[Side], names: Iterable[str]) -> tuple[tuple[KernelCode, ...], CodeOf]:
    """The code of kernels of these names, as many as leave the page small enough, the first names first; and the ids
    of each name's."""
    sources: dict[str, dict[tuple[str, ...], None]] = {}
    for side in sides:
        for name, of_name in (side.kernel_sources.sources if side.kernel_sources else {}).items():
            sources.setdefault(name, {}).update(dict.fromkeys(map(_kernel_alone, of_name)))
    found: list[KernelCode] = []
    ids: CodeOf = {}
    room = MOST_BYTES
    for name in dict.fromkeys(names):
        own = list(sources.get(name, ()))
        if own and (room := room - sum(len(escape(line).encode()) + 1 for lines in own for line in lines)) < 0:
            break
        for number, lines in enumerate(own, 1):
            told = short_kernel_name(name, 160) + (f" ({number} of {len(own)} of this name)" if len(own) > 1 else "")
            found.append(KernelCode(f"triton-{len(found)}", told, lines))
            ids[name] = (*ids.get(name, ()), found[-1].id)
    return tuple(found), ids


def _kernel_alone(source: str) -> tuple[str, ...]:
    """The lines of the source from the kernel's decorator on."""
    alone = source[max(source.find(BEGINNING), 0) :]
    cut = ("# ... the rest is left out",) if len(alone) > LONGEST_CODE else ()
    return (*alone[:LONGEST_CODE].expandtabs().splitlines(), *cut)
