"""What does `--scope` compile? Names of the list, names of modules, and what is made of them for every workload.

A scope is one name or several with commas between them. A name is, in this order: one of `WorkloadInfo.scopes`; `all`,
every part of the model; `regional`, every repeated block by itself; a module's name, in which `*` stands for any one
name between two points. A workload with one root lets the root's name be left out: `vit.encoder` is
`model.vit.encoder`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

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
    top_parts,
)
from tracekit.workloads.registry import Builder, all_workloads, load_builder

ALL = "all"
REGIONAL = "regional"
#: So many parts are told with an error.
TOLD = 8
#: Where a model is built that has shapes and no numbers.
NOWHERE = "meta"


def build_scoped(
    builder: Builder, info: WorkloadInfo, request: Request, size: str, device: str, progress: Progress
) -> BuiltWorkload:
    """The workload with `request.scope` as what is compiled, and components that say so.

    Real weights of a size that the list has not (`THEIR_SIZE`) are called as the largest is. Raises TracekitError for
    what the model has not: before its weights are made, where that can be known.
    """
    if size == THEIR_SIZE:
        workload = build_scoped(builder, info, request, next(iter(info.sizes)), device, progress)
        return replace(workload, settings=replace(workload.settings, size=size))
    if request.scope is None or request.scope in info.scopes:
        return with_shares(builder(request, size, device, progress))
    if info in all_workloads() and not request.pretrained:
        compile_targets(build_nowhere(builder, request, size), request.scope)
    return narrowed(builder(replace(request, scope=None), size, device, progress), request.scope)


def check_parts(info: WorkloadInfo, request: Request) -> None:
    """Raises TracekitError for a scope that a workload of the list has not, before anything of it is built. Of others,
    and of real weights, it is known once they are there."""
    if request.scope is None or request.scope in info.scopes or info not in all_workloads() or request.pretrained:
        return
    size = next(iter(info.sizes)) if request.size == "auto" else request.size
    compile_targets(build_nowhere(load_builder(info), request, size), request.scope)


def build_nowhere(builder: Builder, request: Request, size: str) -> BuiltWorkload:
    """The workload without weights or memory, in well under a second. It has names and shapes, and cannot be called."""
    shape = replace(request, scope=None, phase=None, cache=None, pretrained=None)
    return builder(shape, size, NOWHERE, Silent())


def read_parts(builder: Builder, name: str, size: str) -> tuple[int, tuple[Part, ...]]:
    """How many parameters the workload has at this size, and its parts two levels deep; nothing is built for it."""
    roots = build_nowhere(builder, Request(name), size).modules
    return sum(parameter_ids(module for _, module in roots).values()), listed(roots)


def narrowed(workload: BuiltWorkload, scope: str) -> BuiltWorkload:
    """The workload with this scope in place of the one it was built for. Raises TracekitError as `compile_targets`."""
    targets = compile_targets(workload, scope)
    settings = replace(workload.settings, scope=scope)
    top = top_parts(workload.modules)
    parts = tuple(
        Component(name, part.parameters, compiled=False)
        for name, part in zip(top, described(top), strict=True)
        if part.parameters
    )
    return with_shares(replace(workload, settings=settings, targets=targets, components=parts))


def with_shares(workload: BuiltWorkload) -> BuiltWorkload:
    """The workload, whose components say by which modules they are compiled, where they are modules themselves."""
    modules = all_modules(workload.modules)
    components = (
        _shared(each, modules, workload.targets) if each.name in modules else each for each in workload.components
    )
    return replace(workload, components=tuple(components))


def _shared(component: Component, modules: Modules, targets: Iterable[CompileTarget]) -> Component:
    own = parameter_ids((modules[component.name],))
    held = sum(n for identity, n in parameter_ids(target.module for target in targets).items() if identity in own)
    names = [target.component for target in targets]
    inside = [name for name in names if is_within(name, component.name) or is_within(component.name, name)]
    return replace(
        component,
        compiled=bool(inside),
        compiled_parameters=min(held, component.parameters) if inside else 0,
        compiled_parts=shortened(inside, modules),
    )


def repeated_parts(workload: BuiltWorkload) -> tuple[str, ...]:
    """The blocks that repeat, each of which `regional` compiles by itself; `LIST.*` for all of a list."""
    modules = all_modules(workload.modules)
    return shortened(_repeated(workload, modules), modules)


def _repeated(workload: BuiltWorkload, modules: Modules) -> Modules:
    return repeated_blocks(modules, tuple(name for name, _ in workload.modules))


def is_within(name: str, part: str) -> bool:
    """Whether the module of this name is the part or inside it."""
    return name == part or name.startswith(f"{part}.")


def shortened(names: Iterable[str], modules: Modules) -> tuple[str, ...]:
    """The names, with `LIST.*` instead of those of all members of a list."""
    names = tuple(names)
    lists = {name.rpartition(".")[0]: None for name in names}
    whole = [
        each
        for each in lists
        if isinstance(modules.get(each), nn.ModuleList | nn.Sequential) and children(modules, each).keys() <= {*names}
    ]
    told = (f"{each}.*" if (each := name.rpartition(".")[0]) in whole else name for name in names)
    return tuple(dict.fromkeys(told))


def compile_targets(workload: BuiltWorkload, scope: str) -> tuple[CompileTarget, ...]:
    """What the scope compiles, in the order of its names, each once.

    Raises TracekitError for names that the model has not, with the nearest one and a table of parts; for what nothing
    calls; for parts inside one another, which would be compiled twice; and for `regional` where no block repeats.
    """
    found: dict[tuple[int, str], CompileTarget] = {}
    for name in scope.split(","):
        for target in _targets(workload, name):
            found.setdefault((id(target.module), target.method), target)
    targets = tuple(found.values())
    _refuse_overlap(targets)
    return targets


def _refuse_overlap(targets: tuple[CompileTarget, ...]) -> None:
    by_identity = {id(target.module): target for target in targets}
    for outer in targets:
        inside = (by_identity.get(id(each)) for each in outer.module.modules() if each is not outer.module)
        inner = next((each for each in inside if each is not None), None)
        if inner is not None:
            raise TracekitError(
                f"{inner.component} is inside {outer.component}, which is compiled whole: name one of them in --scope"
            )


def _targets(workload: BuiltWorkload, name: str) -> tuple[CompileTarget, ...]:
    if name in workload.info.scopes:
        return _of_list(workload, name)
    if name == ALL:
        return tuple(_target(workload, root, module) for root, module in workload.modules)
    modules = all_modules(workload.modules)
    if name == REGIONAL:
        return _regional(workload, modules)
    matched = _matched(workload, modules, name)
    if not matched:
        raise unknown_part(workload, modules, name)
    called = {each: module for each, module in matched.items() if is_called(module)}
    if not called:
        raise _only_lists(modules, next(iter(matched)))
    return tuple(_target(workload, each, module) for each, module in called.items())


def _of_list(workload: BuiltWorkload, name: str) -> tuple[CompileTarget, ...]:
    if workload.targets_of is not None:
        return workload.targets_of(name)
    if name == workload.settings.scope:
        return workload.targets
    raise TracekitError(f"{name} of {workload.info.name} cannot stand beside others: pass it alone to --scope")


def _target(workload: BuiltWorkload, name: str, module: nn.Module) -> CompileTarget:
    """The module, entered as the list knows it to be called: a pipeline calls `vae.decode`, never `vae` itself."""
    if name in workload.info.scopes:
        known = _of_list(workload, name)
        if len(known) == 1 and known[0].module is module:
            return known[0]
    return CompileTarget(name, module)


def _regional(workload: BuiltWorkload, modules: Modules) -> tuple[CompileTarget, ...]:
    blocks = _repeated(workload, modules)
    if not blocks:
        raise TracekitError(
            f"{workload.info.name} at size {workload.settings.size} has no blocks that repeat: name parts in --scope",
            _advice(workload, modules, None),
        )
    return tuple(CompileTarget(name, module) for name, module in blocks.items())


def _matched(workload: BuiltWorkload, modules: Modules, name: str) -> Modules:
    """The modules of that name; if there are none, those of that name inside the only root.

    Where a pattern matches modules with parameters and others, the others (dropout, activations) are left out.
    """
    roots = [root for root, _ in workload.modules]
    for pattern in (name, f"{roots[0]}.{name}") if len(roots) == 1 else (name,):
        found = {each: module for each, module in modules.items() if _matches(each, pattern)}
        weighty = {each: module for each, module in found.items() if parameter_ids((module,))}
        if found:
            return (weighty or found) if "*" in name else found
    return {}


def _matches(name: str, pattern: str) -> bool:
    one, other = name.split("."), pattern.split(".")
    return len(one) == len(other) and all(map(fnmatchcase, one, other))


def _only_lists(modules: Modules, name: str) -> TracekitError:
    inner = children(modules, name)
    return TracekitError(
        f"{name} is a list of {len(inner)} modules and is never called itself:"
        f" pass --scope '{name}.*' to compile each by itself"
    )


def unknown_part(workload: BuiltWorkload, modules: Modules, name: str) -> TracekitError:
    """What to say of a name that no module has: the nearest one, and what there is where it was looked for."""
    inside = _deepest(workload, modules, name)
    names = [*(children(modules, inside) if inside else _first_names(workload, modules))]
    short = {each: each for each in names} | {each.rpartition(".")[2]: each for each in names}
    wanted = name[len(inside) + 1 :] if inside and name.startswith(f"{inside}.") else name.rpartition(".")[2]
    near = [*difflib.get_close_matches(name, short, n=1), *difflib.get_close_matches(wanted, short, n=1, cutoff=0.5)]
    alike = None if inside else _alike(workload, modules, name)
    meant = _deeper(modules, name) or alike or (short[near[0]] if near else None)
    hint = f"did you mean {meant}?" if meant else "here is what there is."
    place = inside or workload.info.name
    asked = name if place == workload.info.name else wanted
    return TracekitError(f"{place} has nothing called {asked!r} to compile: {hint}", _advice(workload, modules, inside))


def _deeper(modules: Modules, name: str) -> str | None:
    """The first place of that name, or of such names, anywhere in the model: `layers.*` is `model.model.layers.*`."""
    length = len(name.split("."))
    places = (each.split(".") for each in modules)
    found = (words[:-length] for words in places if len(words) > length and _matches(".".join(words[-length:]), name))
    place = next(found, None)
    return ".".join([*place, name]) if place is not None else None


def _alike(workload: BuiltWorkload, modules: Modules, name: str) -> str | None:
    """The module whose whole name is most like it: `vt.layers` is `vit.layers.*`, for a list is never called itself."""
    if "." not in name:
        return None
    root = f"{workload.modules[0][0]}." if len(workload.modules) == 1 else ""
    # One for all members of a list.
    names = {re.sub(r"(?<=\.)\d+(?=\.|$)", "*", each.removeprefix(root)): each for each in modules}
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
    if not near:
        return None
    return near[0] if is_called(modules[names[near[0]]]) else f"{near[0]}.*"


def _deepest(workload: BuiltWorkload, modules: Modules, name: str) -> str | None:
    """The module as deep as the name is right, if it has any in it; None where its first word is wrong."""
    root = workload.modules[0][0] if len(workload.modules) == 1 else None
    for start in (name, f"{root}.{name}") if root else (name,):
        words = start.split(".")
        for length in range(len(words) - 1, 0, -1):
            place = ".".join(words[:length])
            if place in modules and place != root and children(modules, place):
                return place
    return None


def _first_names(workload: BuiltWorkload, modules: Modules) -> Iterator[str]:
    yield from (*workload.info.scopes, ALL, REGIONAL)
    for root, _ in workload.modules:
        yield root
        yield from children(modules, root)


def _advice(workload: BuiltWorkload, modules: Modules, inside: str | None) -> tuple[str, ...]:
    """A table of the parts there, the largest first, and how to see more: eleven lines at most."""
    parts = described(children(modules, inside) if inside else top_parts(workload.modules))
    heavy = sorted((part for part in parts if part.parameters), key=lambda part: -part.parameters)
    whole = sum(parameter_ids(module for _, module in workload.modules).values())
    width = max((len(part.name) for part in heavy[:TOLD]), default=0)
    rows = [
        f"  {part.name:<{width}}  {parameter_count(part.parameters):>7}  {percent(part.parameters / whole, 0):>5}"
        for part in heavy[:TOLD]
    ]
    rows += [f"  and {len(heavy) - TOLD} more"] if len(heavy) > TOLD else []
    listed = ", ".join(dict.fromkeys((*workload.info.scopes, ALL, REGIONAL)))
    more = f"more parts: tracekit workloads {workload.info.name} --parts" if workload.info in all_workloads() else ""
    return tuple(filter(None, (*rows, f"also: {listed}; NAME.* for each inside; A,B for both (in a sweep A+B)", more)))
