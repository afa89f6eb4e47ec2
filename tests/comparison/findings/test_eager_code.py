from __future__ import annotations

from dataclasses import replace

import pytest
from tests.advised import command_of
from tests.sides import EAGER, make_analysis, make_form, make_settings, make_side, scaled

from tracekit.comparison import compare
from tracekit.comparison.findings.eager_code import find_uncompiled_component
from tracekit.model.comparison import Comparison, GroupMember, KernelGroup
from tracekit.model.run import Component

NORM = "layer_norm"
PARTS = (Component("transformer", 10, True), Component("vae", 5, False))


def group(kind: str, a_us: float, b_us: float, *where: str, name: str = NORM) -> KernelGroup:
    return KernelGroup(
        kind,  # type: ignore[arg-type]
        name,
        "provenance",
        (GroupMember(name, 1, a_us),),
        (GroupMember(name, 1, b_us),),
        0,
        b_us - a_us,
        where,
    )


FUSED = group("fused", 100.0, 25.0, "transformer.norm")


def comparison(*groups: KernelGroup, scope: str = "transformer", parts: tuple[Component, ...] = PARTS) -> Comparison:
    a = make_side("eager", make_analysis(EAGER), make_form("eager", scaled(1.5)))
    b = make_side("compiled", make_analysis(EAGER), make_form("compiled", scaled(1.3)))
    b = replace(b, components=parts, settings=make_settings(scope=scope))
    return replace(compare(a, b), groups=groups)


def test_the_component_with_most_to_fuse_is_named_with_what_the_compiled_part_s_fusion_would_save():
    finding = find_uncompiled_component(comparison(FUSED, group("unchanged", 60.0, 60.0, "vae.decoder.norm")))
    assert (finding.facts["component"], finding.facts["partly_compiled"]) == ("vae", False)
    assert finding.saving_us == pytest.approx(60 * 0.75)
    assert finding.facts["kept_share"] == pytest.approx(0.25)
    assert finding.changes == {"scope": "all"}
    assert "--scope all" in command_of(finding)


def test_what_the_compiled_part_kept_unchanged_is_no_other_component_s():
    assert find_uncompiled_component(comparison(FUSED, group("unchanged", 60.0, 60.0, "transformer.norm"))) is None


def test_products_are_not_to_be_fused():
    products = group("unchanged", 60.0, 60.0, "vae.decoder.conv", name="gemm_128x64")
    assert find_uncompiled_component(comparison(FUSED, products)) is None


def test_without_fused_groups_nobody_knows_what_fusion_saves():
    assert find_uncompiled_component(comparison(group("unchanged", 60.0, 60.0, "vae.norm"))) is None


def test_what_is_compiled_whole_has_nothing_left_out():
    left = group("unchanged", 60.0, 60.0, "vae.norm")
    assert find_uncompiled_component(comparison(FUSED, left, scope="all")) is None


def test_a_little_is_not_told():
    assert find_uncompiled_component(comparison(FUSED, group("unchanged", 20.0, 20.0, "vae.norm"))) is None


PARTLY = (Component("model.encoder", 10, True, 6, ("model.encoder.layers.*",)), Component("model.head", 5, False, 0))
LEFT = "model.encoder.embeddings.norm"


def test_what_is_left_of_a_component_is_told_as_a_part_of_it():
    left = group("unchanged", 60.0, 60.0, LEFT)
    finding = find_uncompiled_component(comparison(FUSED, left, scope="encoder.layers.*", parts=PARTLY))
    assert (finding.facts["component"], finding.facts["partly_compiled"]) == ("model.encoder", True)
    assert finding.saving_us == pytest.approx(60 * 0.75)


def test_what_is_inside_a_compiled_module_is_not_left_out():
    kept = group("unchanged", 60.0, 60.0, "model.encoder.layers.3.norm")
    assert find_uncompiled_component(comparison(FUSED, kept, scope="encoder.layers.*", parts=PARTLY)) is None


def test_a_group_that_is_partly_in_compiled_code_is_nobody_s():
    both = group("unchanged", 60.0, 60.0, LEFT, "model.encoder.layers.3.norm")
    assert find_uncompiled_component(comparison(FUSED, both, scope="encoder.layers.*", parts=PARTLY)) is None


def test_a_name_that_only_begins_alike_is_another_module_s():
    beside = group("unchanged", 60.0, 60.0, "model.encoder.layers2.norm")
    finding = find_uncompiled_component(comparison(FUSED, beside, scope="encoder.layers.*", parts=PARTLY))
    assert finding is not None


def test_the_component_beside_a_partly_compiled_one_is_told_whole():
    finding = find_uncompiled_component(
        comparison(FUSED, group("unchanged", 60.0, 60.0, "model.head.norm"), scope="encoder.layers.*", parts=PARTLY)
    )
    assert (finding.facts["component"], finding.facts["partly_compiled"]) == ("model.head", False)
