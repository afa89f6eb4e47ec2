from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from tests.traces import RUNS

from tracekit.comparison.modules import time_by_module
from tracekit.model.comparison import GroupMember, KernelGroup
from tracekit.model.groups import GroupLabel, ModuleTime


def group(*where: str, a_us: float = 3, b_us: float = 1) -> KernelGroup:
    return KernelGroup(
        "fused",
        GroupLabel("fused"),
        "provenance",
        a=(GroupMember("a", 2, a_us),),
        b=(GroupMember("b", 1, b_us),),
        delta_count=-1,
        delta_us=b_us - a_us,
        where=where,
    )


def of(*groups: KernelGroup) -> ModuleTime:
    root = time_by_module(groups)
    assert root is not None
    return root


def every(module: ModuleTime) -> Iterator[ModuleTime]:
    yield module
    for child in module.children:
        yield from every(child)


def paths(root: ModuleTime) -> list[str]:
    return [each.path for each in every(root)]


def test_work_that_spans_modules_is_their_common_parents():
    root = of(group("vit.layers.*.norm", "vit.layers.*.mlp.fc1", "vit.py:12"), group("vit.layers.*.mlp.fc1"))
    layers = root.children[0]
    assert (layers.path, layers.groups) == ("vit.layers.*", (0,))
    assert [(each.path, each.groups) for each in layers.children] == [("vit.layers.*.mlp.fc1", (1,))]


def test_work_of_no_module_and_of_several_models_is_the_roots():
    root = of(group(), group("decoder.conv", "encoder.conv"), group("decoder.conv"))
    assert set(root.groups) == {0, 1}
    assert paths(root) == ["", "decoder.conv"]


def test_a_block_told_by_itself_stands_with_the_blocks_of_its_list_that_repeat():
    assert paths(of(group("vit.layers.*.norm"), group("vit.layers.11.norm", a_us=9))) == ["", "vit.layers.*.norm"]


def test_blocks_that_never_repeat_keep_their_numbers():
    root = of(group("head.0.proj"), group("head.1.proj", a_us=9))
    assert paths(root) == ["", "head", "head.1.proj", "head.0.proj"]


def test_a_module_counts_all_that_it_holds():
    layers = of(group("m.layers.*"), group("m.layers.*.mlp", a_us=5, b_us=6)).children[0]
    assert (layers.a_us, layers.b_us, layers.delta_us) == (8, 7, -1)
    assert (layers.a_kernels, layers.b_kernels) == (4, 2)


def test_no_module_is_known_of_bare_traces():
    assert time_by_module([group(), group("model.py:3")]) is None
    assert time_by_module([]) is None


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_modules_of_recorded_runs_add_up_to_the_change_of_all_groups(folder, compared):
    comparison = compared(folder)
    root = comparison.modules
    assert root is not None
    modules = list(every(root))
    assert sorted(at for module in modules for at in module.groups) == list(range(len(comparison.groups)))
    for module in modules:
        own = math.fsum(comparison.groups[at].delta_us for at in module.groups)
        below = math.fsum(child.delta_us for child in module.children)
        assert module.delta_us == pytest.approx(own + below, abs=1e-6)
        assert module.delta_us == pytest.approx(module.b_us - module.a_us, abs=1e-6)
    assert root.delta_us == pytest.approx(math.fsum(each.delta_us for each in comparison.groups), abs=1e-6)
