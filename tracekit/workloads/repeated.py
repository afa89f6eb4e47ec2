"""Which blocks of a model repeat, so that compiling one compiles all of them?"""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from tracekit.workloads.parts import Modules, children


def repeated_blocks(modules: Modules, roots: tuple[str, ...]) -> Modules:
    """The blocks by name: what diffusers itself calls a model's repeated blocks (`_repeated_blocks`, for its own
    `compile_repeated_blocks`), else the members of every outermost list of modules of one class of which at least two
    are alike in the shapes of their parameters. Empty where there are none.
    """
    return {name: module for root in roots for name, module in _blocks(modules, root)}


def _blocks(modules: Modules, name: str) -> Iterator[tuple[str, nn.Module]]:
    inner = children(modules, name)
    named = _named_by_diffusers(modules, name)
    if named:
        yield from named.items()
    elif isinstance(modules[name], nn.ModuleList | nn.Sequential) and _repeats(inner):
        yield from inner.items()
    else:
        for each in inner:
            yield from _blocks(modules, each)


def _named_by_diffusers(modules: Modules, name: str) -> Modules:
    kinds = getattr(modules[name], "_repeated_blocks", None) or ()
    below = {each: module for each, module in modules.items() if each.startswith(f"{name}.")} if kinds else {}
    return {each: module for each, module in below.items() if type(module).__name__ in kinds}


def _repeats(members: Modules) -> bool:
    shapes = [signature(module) for module in members.values()]
    one_class = len({type(module) for module in members.values()}) == 1
    # One layer of torch's own has nothing to fuse with.
    made_of_parts = all(any(True for _ in module.children()) for module in members.values())
    return one_class and made_of_parts and any(shapes) and len(set(shapes)) < len(shapes)


def signature(module: nn.Module) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The names and shapes of a module's parameters: blocks of one class in which these agree share compiled code."""
    return tuple((name, tuple(each.shape)) for name, each in module.named_parameters())
