"""What does `--scope` compile? Names of the list, names of modules, and what is made of them for every workload.

A scope is one name or several with commas between them. A name is, in this order: one of `WorkloadInfo.scopes`; `all`,
every part of the model; `regional`, every repeated block by itself; a module's name, in which `*` stands for any one
name between two points. A workload with one root lets the root's name be left out: `vit.encoder` is
`model.vit.encoder`.
"""

import difflib
import re
from fnmatch import fnmatchcase

from msgspec.structs import replace
from torch import nn

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress, Silent
from tracekit.model.run import Component
from tracekit.model.workload import THEIR_SIZE, BuiltWorkload, CompileTarget, Part, Request, WorkloadInfo
from tracekit.numbers import parameter_count, percent
from tracekit.workloads.parts import (
    Modules,
    all_modules,
    children,
    described,
    is_called,
    listed,
    parameter_ids,
    repeated_blocks,
    shortened,
    top_parts,
)
from tracekit.workloads.registry import Builder, all_workloads

ALL = "all"
REGIONAL = "regional"
#: So many parts are shown with an error.
SHOWN = 8


def build_scoped(
    builder: Builder, info: WorkloadInfo, request: Request, size: str, device: str, progress: Progress
) -> BuiltWorkload:
    """The workload with `request.scope` as what is compiled, and components that say so. Real weights of a
    size that the list has not are called as the largest is. Raises TracekitError for what the model has not: before its
    weights are made, where that can be known."""
    if size == THEIR_SIZE:
        workload = build_scoped(builder, info, request, next(iter(info.sizes)), device, progress)
        return replace(workload, settings=replace(workload.settings, size=size))
    if request.scope is None or request.scope in info.scopes:
        return with_shares(builder(request, size, device, progress))
    if info in all_workloads() and not request.pretrained:
        compile_targets(build_nowhere(builder, request, size), request.scope)
    return narrowed(builder(replace(request, scope=None), size, device, progress), request.scope)


def build_nowhere(builder: Builder, request: Request, size: str) -> BuiltWorkload:
    """The workload without weights or memory, in well under a second. It has names and shapes, and cannot be called."""
    shape = replace(request, scope=None, phase=None, cache=None, pretrained=None)
    return builder(shape, size, "meta", Silent())


def read_parts(builder: Builder, name: str, size: str) -> tuple[int, tuple[Part, ...]]:
    """How many parameters the workload has at this size, and its parts two levels deep; nothing is built for it."""
    roots = build_nowhere(builder, Request(name), size).modules
    return sum(parameter_ids(module for _, module in roots).values()), listed(roots)


def narrowed(workload: BuiltWorkload, scope: str) -> BuiltWorkload:
    """The workload with this scope in place of the one it was built for. Raises TracekitError as `compile_targets`."""
    targets = compile_targets(workload, scope)
    settings = replace(workload.settings, scope=scope)
    top = top_parts(workload.modules)
    named = zip(top, described(top), strict=True)
    parts = tuple(Component(name, part.parameters, compiled=False) for name, part in named if part.parameters)
    return with_shares(replace(workload, settings=settings, targets=targets, components=parts))


def with_shares(workload: BuiltWorkload) -> BuiltWorkload:
    """The workload, whose components say by which modules they are compiled, where they are modules themselves."""
    modules = all_modules(workload.modules)
    compiled = parameter_ids(target.module for target in workload.targets)
    names = [target.component for target in workload.targets]

    def with_share(part: Component) -> Component:
        if part.name not in modules:
            return part
        inside = [each for each in names if f"{each}.".startswith(f"{part.name}.") or part.name.startswith(f"{each}.")]
        held = sum(n for each, n in parameter_ids((modules[part.name],)).items() if each in compiled)
        share, called = min(held, part.parameters) if inside else 0, shortened(inside, modules)
        return replace(part, compiled=bool(inside), compiled_parameters=share, compiled_parts=called)

    return replace(workload, components=tuple(map(with_share, workload.components)))


def repeated_parts(workload: BuiltWorkload) -> tuple[str, ...]:
    """The blocks that repeat, each of which `regional` compiles by itself; `LIST.*` for all of a list."""
    return shortened(repeated_blocks(workload.modules), all_modules(workload.modules))


def compile_targets(workload: BuiltWorkload, scope: str) -> tuple[CompileTarget, ...]:
    """What the scope compiles, in the order of its names, each once. Raises TracekitError for names that the model has
    not, with the nearest one and a table of parts; for what nothing calls; for parts inside one another, which would be
    compiled twice; and for `regional` where no block repeats."""
    found: dict[tuple[int, str], CompileTarget] = {}
    for name in scope.split(","):
        for target in _targets(workload, name):
            found.setdefault((id(target.module), target.method), target)
    by_identity = {id(target.module): target for target in found.values()}
    for outer in found.values():
        for module in outer.module.modules():
            inner = by_identity.get(id(module))
            if inner is not None and module is not outer.module:
                whole = f"{inner.component} is inside {outer.component}, which is compiled as a whole"
                raise TracekitError(f"{whole}: pass one of them to --scope")
    return tuple(found.values())


def _targets(workload: BuiltWorkload, name: str) -> tuple[CompileTarget, ...]:
    if name in workload.info.scopes:
        return _of_list(workload, name)
    if name == ALL:
        return tuple(_target(workload, root, module) for root, module in workload.modules)
    modules = all_modules(workload.modules)
    if name == REGIONAL:
        blocks = repeated_blocks(workload.modules)
        if not blocks:
            there = f"{workload.info.name} at size {workload.settings.size} has no repeated blocks"
            raise TracekitError(f"{there}: pass modules to --scope", _advice(workload, modules, None))
        return tuple(CompileTarget(block, module) for block, module in blocks.items())
    # Those of that name, or else those of that name inside the only root.
    patterns = (name, f"{_only_root(workload)}{name}")
    found = ({each: module for each, module in modules.items() if _matches(each, pattern)} for pattern in patterns)
    matched = next(filter(None, found), None)
    if matched is None:
        raise _unknown_part(workload, modules, name)
    # Of what a pattern matches none without parameters (dropout, activations), if others are there.
    weighty = {each: module for each, module in matched.items() if parameter_ids((module,))} if "*" in name else {}
    matched = weighty or matched
    called = tuple(_target(workload, each, module) for each, module in matched.items() if is_called(module))
    if not called:
        first = next(iter(matched))
        raise TracekitError(
            f"{first} is a list of {len(children(modules, first))} modules and is never called itself:"
            f" pass --scope '{first}.*' to compile each by itself"
        )
    return called


def _of_list(workload: BuiltWorkload, name: str) -> tuple[CompileTarget, ...]:
    if workload.targets_of is not None:
        return workload.targets_of(name)
    if name == workload.settings.scope:
        return workload.targets
    raise TracekitError(f"{name} of {workload.info.name} cannot be combined with other scopes: pass it alone")


def _target(workload: BuiltWorkload, name: str, module: nn.Module) -> CompileTarget:
    """The module, entered as the list knows it to be called: a pipeline calls `vae.decode`, never `vae` itself."""
    if name in workload.info.scopes:
        known = _of_list(workload, name)
        if len(known) == 1 and known[0].module is module:
            return known[0]
    return CompileTarget(name, module)


def _only_root(workload: BuiltWorkload) -> str:
    """The name of the only root with a point after it; empty where there are several."""
    return f"{workload.modules[0][0]}." if len(workload.modules) == 1 else ""


def _matches(name: str, pattern: str) -> bool:
    words, patterns = name.split("."), pattern.split(".")
    return len(words) == len(patterns) and all(map(fnmatchcase, words, patterns))


def _unknown_part(workload: BuiltWorkload, modules: Modules, name: str) -> TracekitError:
    """The error for a name that no module has: the nearest one, and what there is where it was looked for."""
    root = _only_root(workload)
    # The module as deep as the name is right, if it has any in it.
    starts = [".".join(start.split(".")[:n]) for start in (name, root + name) for n in range(start.count("."), 0, -1)]
    inside = next((each for each in starts if each in modules and f"{each}." != root and children(modules, each)), None)
    if inside:
        names = [*children(modules, inside)]
    else:
        names = [*workload.info.scopes, ALL, REGIONAL]
        for top, _ in workload.modules:
            names += [top, *children(modules, top)]
    short = {each: each for each in names} | {each.rpartition(".")[2]: each for each in names}
    wanted = name[len(inside) + 1 :] if inside and name.startswith(f"{inside}.") else name.rpartition(".")[2]
    near = [*difflib.get_close_matches(name, short, n=1), *difflib.get_close_matches(wanted, short, n=1, cutoff=0.5)]
    # The first place of that name anywhere in the model: `layers.*` is `model.model.layers.*`.
    deeper = next((each for each in modules if _matches(each, "*." * (each.count(".") - name.count(".")) + name)), None)
    if deeper:
        meant: str | None = ".".join([*deeper.split(".")[: deeper.count(".") - name.count(".")], name])
    else:
        meant = (None if inside else _nearest_path(modules, name, root)) or (short[near[0]] if near else None)
    hint = f"did you mean {meant}?" if meant else "these are its largest parts."
    lacks = f"{inside or workload.info.name} has no module {(wanted if inside else name)!r}"
    return TracekitError(f"{lacks}: {hint}", _advice(workload, modules, inside))


def _nearest_path(modules: Modules, name: str, root: str) -> str | None:
    """The module whose whole name is most like it: `vt.layers` is `vit.layers.*`, for a list is never called itself."""
    if "." not in name:
        return None
    # One for all members of a list.
    names = {re.sub(r"(?<=\.)\d+(?=\.|$)", "*", each.removeprefix(root)): each for each in modules}
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
    if not near:
        return None
    return near[0] if is_called(modules[names[near[0]]]) else f"{near[0]}.*"


def _advice(workload: BuiltWorkload, modules: Modules, inside: str | None) -> tuple[str, ...]:
    """A table of the parts there, the largest first, and how to see more: eleven lines at most."""
    parts = described(children(modules, inside) if inside else top_parts(workload.modules))
    heavy = sorted((part for part in parts if part.parameters), key=lambda part: -part.parameters)
    whole = sum(parameter_ids(module for _, module in workload.modules).values())
    width = max((len(part.name) for part in heavy[:SHOWN]), default=0)
    rows = [
        f"  {part.name:<{width}}  {parameter_count(part.parameters):>7}  {percent(part.parameters / whole, 0):>5}"
        for part in heavy[:SHOWN]
    ]
    rows += [f"  and {len(heavy) - SHOWN} more"] if len(heavy) > SHOWN else []
    also = ", ".join(dict.fromkeys((*workload.info.scopes, ALL, REGIONAL)))
    rows.append(f"also: {also}; NAME.* for each child; A,B for both (in a sweep A+B)")
    rows += [f"all parts: tracekit workloads {workload.info.name} --parts"] * (workload.info in all_workloads())
    return tuple(rows)
