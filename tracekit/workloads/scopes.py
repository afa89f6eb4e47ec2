"""What does `--scope` compile? The modules of a workload by name, how its parameters are spread over them, which blocks
repeat, and what a scope makes of them for every workload.

A scope is one name or several with commas between them. A name is, in this order: one of `WorkloadInfo.scopes`; `all`,
every part of the model; `regional`, every repeated block by itself; a module's name, in which `*` stands for any one
name between two points. A workload with one root lets the root's name be left out: `vit.encoder` is
`model.vit.encoder`.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import chain

from msgspec.structs import replace
from torch import nn

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress, Silent
from tracekit.model.run import Component
from tracekit.model.workload import THEIR_SIZE, BuiltWorkload, CompileTarget, Part, Request, WorkloadInfo
from tracekit.numbers import parameter_count, percent
from tracekit.workloads.registry import Builder, all_workloads

ALL = "all"
REGIONAL = "regional"
#: So many parts are shown with an error.
SHOWN = 8
#: A part with more than this share of the parameters is told by what is in it, but not by more parts than these.
MOST, PARTS = 0.9, 16

Modules = dict[str, nn.Module]


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


def all_modules(roots: Iterable[tuple[str, nn.Module]]) -> Modules:
    """Every module by its full name; one that is in several places under each of its names."""
    return {
        f"{root}.{name}" if name else root: module
        for root, top in roots
        for name, module in top.named_modules(remove_duplicate=False)
    }


def children(modules: Modules, name: str) -> Modules:
    """The modules directly inside the one of that name."""
    return {f"{name}.{inner}": each for inner, each in modules[name].named_children()}


def parameter_ids(modules: Iterable[nn.Module]) -> dict[int, int]:
    """How many elements each parameter has, by its identity: what is shared is there once."""
    return {id(each): each.numel() for module in modules for each in module.parameters()}


def is_called(module: nn.Module) -> bool:
    """Whether the module has something to call: lists of modules have not."""
    return type(module).forward is not nn.Module.forward


def described(modules: Modules) -> tuple[Part, ...]:
    """These modules as parts, in order, with those parameters that no part before them has."""
    seen: set[int] = set()
    parts = []
    for name, module in modules.items():
        own = {identity: n for identity, n in parameter_ids((module,)).items() if identity not in seen}
        seen.update(own)
        kind = type(module).__name__
        if not is_called(module):
            kinds = dict.fromkeys(type(each).__name__ for each in module.children())
            name, kind = f"{name}.*", f"{len([*module.children()])} {' or '.join(kinds)}"
        parts.append(Part(name, kind, sum(own.values())))
    return tuple(parts)


def top_parts(roots: Iterable[tuple[str, nn.Module]]) -> Modules:
    """The parts a model is told by: its roots, and instead of one that holds nearly everything what is inside it."""
    parts = dict(roots)
    modules = all_modules(parts.items())
    whole = sum(parameter_ids(parts.values()).values())
    while True:
        largest = max(parts, key=lambda name: sum(parameter_ids((parts[name],)).values()), default=None)
        if largest is None or sum(parameter_ids((parts[largest],)).values()) <= MOST * whole:
            return parts
        inner = {name: each for name, each in children(modules, largest).items() if parameter_ids((each,))}
        if not inner or not is_called(parts[largest]) or len(parts) + len(inner) > PARTS:
            return parts
        replaced = (inner.items() if name == largest else ((name, module),) for name, module in parts.items())
        parts = dict(chain.from_iterable(replaced))


def listed(roots: tuple[tuple[str, nn.Module], ...]) -> tuple[Part, ...]:
    """The parts that have parameters, each followed by what is inside it; not by the members of a list."""
    modules, level, found = all_modules(roots), top_parts(roots), []
    for part, (name, module) in zip(described(level), level.items(), strict=True):
        inner = described(children(modules, name)) if is_called(module) else ()
        found += [each for each in (part, *inner) if part.parameters and each.parameters]
    return tuple(found)


def repeated_blocks(roots: Iterable[tuple[str, nn.Module]]) -> Modules:
    """The blocks by name: what diffusers itself calls a model's repeated blocks (`_repeated_blocks`, for its own
    `compile_repeated_blocks`), else the members of every outermost list of modules of one class of which at least two
    are alike in the shapes of their parameters. Empty where there are none.
    """
    modules = all_modules(roots := tuple(roots))
    return {name: module for root, _ in roots for name, module in _blocks(modules, root)}


def _blocks(modules: Modules, name: str) -> Iterator[tuple[str, nn.Module]]:
    inner = children(modules, name)
    kinds = getattr(modules[name], "_repeated_blocks", None) or ()
    below = {each: module for each, module in modules.items() if each.startswith(f"{name}.")} if kinds else {}
    named = {each: module for each, module in below.items() if type(module).__name__ in kinds}
    if named:
        yield from named.items()
        return
    # Alike in the names and shapes of their parameters; one layer of torch's own has nothing to fuse with.
    shapes = [tuple((each, value.shape) for each, value in module.named_parameters()) for module in inner.values()]
    one_class = len({type(module) for module in inner.values()}) == 1
    made_of_parts = all(any(True for _ in module.children()) for module in inner.values())
    repeat = one_class and made_of_parts and any(shapes) and len(set(shapes)) < len(shapes)
    if isinstance(modules[name], nn.ModuleList | nn.Sequential) and repeat:
        yield from inner.items()
    else:
        for each in inner:
            yield from _blocks(modules, each)


def shortened(names: Iterable[str], modules: Modules) -> tuple[str, ...]:
    """The names, with `LIST.*` instead of those of all members of a list."""
    names = tuple(names)
    lists = {name: name.rpartition(".")[0] for name in names}
    are_lists = (each for each in lists.values() if isinstance(modules.get(each), nn.ModuleList | nn.Sequential))
    whole = {each for each in are_lists if children(modules, each).keys() <= {*names}}
    return tuple(dict.fromkeys(f"{lists[name]}.*" if lists[name] in whole else name for name in names))
