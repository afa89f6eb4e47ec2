"""Axes by what jobs call their process groups."""

import pytest
from tests.ranks.fleets.grown import SHAPE, make_fleet

from tracekit.ranks.fleets.axes import _purpose, find_axes


@pytest.mark.parametrize(
    ("text", "purpose"),
    [
        ("TENSOR_MODEL_PARALLEL_GROUP", "tensor"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "expert"),
        ("EXPERT_TENSOR_PARALLEL_GROUP", "expert tensor"),
        ("EXPERT_DATA_PARALLEL_GROUP", "expert data"),
        ("mesh_ep", "expert"),
        ("ep_size_8", "expert"),
        ("mesh_etp", "expert tensor"),
        ("mesh_efsdp", "expert data"),
        ("mesh_dp_shard_mod_ep", "expert data"),
        ("mesh_dp_shard_in_ep", None),
        ("EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", None),
        ("EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP", None),
        ("INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP", None),
        ("mesh_pp", "pipeline"),
        ("mesh_dp_shard", "data"),
        ("TENSOR_AND_DATA_PARALLEL_GROUP", None),
        ("DATA_PARALLEL_GROUP_WITH_CP", None),
        ("MODEL_PARALLEL_GROUP", None),
        ("default_pg", None),
        ("undefined", None),
        ("", None),
    ],
)
def test_a_group_s_description_says_its_axis(text: str, purpose: str | None) -> None:
    assert _purpose(text) == purpose


def test_a_rank_s_place_is_its_place_in_its_group() -> None:
    summaries = dict(enumerate(make_fleet().summaries()))
    axes = find_axes(summaries, SHAPE.size)
    assert axes["tensor"][30] == 30 % SHAPE.tensor
    assert axes["data"][30] == 30 // SHAPE.tensor % SHAPE.data
    assert axes["pipeline"][30] == 30 // (SHAPE.tensor * SHAPE.data)
