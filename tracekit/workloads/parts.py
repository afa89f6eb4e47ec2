"""The modules of a workload by name, how its parameters are spread over them, and which blocks repeat."""

from collections.abc import Iterable, Iterator
from itertools import chain

from torch import nn

from tracekit.model.workload import Part

#: A part with more than this share of the parameters is told by what is in it.
MOST = 0.9
#: But not by more parts than these.
PARTS = 16

Modules = dict[str, nn.Module]


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
