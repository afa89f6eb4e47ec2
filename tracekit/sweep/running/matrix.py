"""From lists of settings to the cells of a sweep."""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from tracekit.measure.plan import jobs_wing, refuse_alone
from tracekit.model.option import OPTIONS, words_of
from tracekit.model.run import FormName
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.sweep.cells import Cell
from tracekit.workloads.registry import Builder, all_workloads, check_scope, find, load_builder
from tracekit.workloads.sizes import check_request

#: The order of a table's rows: what is named last changes from row to row.
AXES = {each.name: each.axis for each in OPTIONS if each.axis is not None}
#: What an eager call does not hear of.
COMPILING = words_of("compiling")
#: Of a request, what makes no other cell: how the timing was ordered and how long it went on, what may be fetched. The
#: workload is in every digest by itself.
NOT_SETTINGS = {each.name for each in OPTIONS if not each.cell}
EAGER = "eager"
#: Characters of a digest: enough that no two cells of a folder share it.
DIGEST = 8
#: Characters of a file's name, the digest at its end included.
LONGEST = 120


def expand(workloads: Sequence[str], axes: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Every combination of the axes' values for every workload; `mode` may be `eager` besides torch.compile's own.

    An eager cell is made once for all modes and scopes. Where a width can be chosen and is not, images are square.
    Raises TracekitError for a combination that its workload cannot make.
    """
    cells: dict[str, Cell] = {}
    checked: set[Request] = set()
    names = sorted(axes, key=AXES.__getitem__)
    for workload in workloads:
        info = find(workload)
        for values in itertools.product(*(axes[name] for name in names)):
            asked = {**fixed, **dict(zip(names, values, strict=True))}
            if asked.get("height") is not None and asked.get("width") is None and "width" in info.takes:
                asked["width"] = asked["height"]
            form: FormName = "eager" if asked.get("mode") == EAGER else "compiled"
            # Also where nothing is compiled: a wrong name is told.
            scope = check_scope(info, asked.get("scope"))
            if form == "eager":
                asked = {name: value for name, value in asked.items() if name not in COMPILING}
            request = Request(workload=workload, **asked)
            check_request(info, request)
            refuse_alone(request)
            if request.nproc:
                jobs_wing()
            whose = Request(workload, size=request.size, pretrained=request.pretrained, scope=scope)
            if whose not in checked:
                if scope not in info.scopes:
                    # Its packages may be missing, which it says itself.
                    builder = load_builder(info)
                    # Others are looked at once built.
                    if info in all_workloads() and not whose.pretrained:
                        check_parts(builder, info, whose)
                checked.add(whose)
            cell = make_cell(form, replace(request, scope=scope) if form == "compiled" else request)
            cells.setdefault(cell.key, cell)
    return tuple(cells.values())


def check_parts(builder: Builder, info: WorkloadInfo, request: Request) -> None:
    """Builds the workload without weights or memory. Raises TracekitError for a scope that it has not."""
    from tracekit.workloads.scopes import build_nowhere, compile_targets

    size = next(iter(info.sizes)) if request.size == "auto" else request.size
    found = build_nowhere(builder, request, size)
    if request.scope and request.scope not in info.scopes:
        compile_targets(found, request.scope)


def make_cell(form: FormName, request: Request) -> Cell:
    """The cell with its key: words to read, and a digest of every setting that is not the default."""
    words = [request.workload, f"b{request.batch_size}"]
    words += [f"{request.height}x{request.width}"] if request.height else []
    words += [request.dtype] if request.dtype else []
    words += [f"{request.nproc}-ranks"] if request.nproc else []
    words += [request.parallel] if request.parallel else []
    work = "-".join((*words, _digest("eager", request)))
    compiling = [request.scope or "", request.mode] if form == "compiled" else [EAGER]
    key = "-".join((*words, *filter(None, compiling), _digest(form, request)))
    name = "".join(each if each.isalnum() or each in "-_." else "-" for each in key)
    return Cell(name.lstrip("-.")[-LONGEST:].lstrip("-."), work, form, request)


def _digest(form: FormName, request: Request) -> str:
    """Of all settings but the defaults, so that a setting that a later version adds changes no key."""
    left_out = {*NOT_SETTINGS, *(COMPILING if form == "eager" else ())}
    default = Request(request.workload)
    settings = {
        name: value
        for name in request.__struct_fields__
        if name not in left_out and (value := getattr(request, name)) != getattr(default, name)
    }
    content = msgspec.json.encode([form, request.workload, settings], order="sorted")
    return hashlib.sha256(content).hexdigest()[:DIGEST]
