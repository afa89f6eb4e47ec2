"""A ResNet of transformers' own in DETR's configurations, where the published ones name timm's: the same layers, and no
package nor weights to fetch."""

from __future__ import annotations

from typing import Any

from transformers import ResNetConfig

DEPTHS = {50: [3, 4, 6, 3], 101: [3, 4, 23, 3]}


def resnet_backbone(size: str, depth: int) -> dict[str, Any]:
    """The arguments of a DETR's configuration that say which backbone it has: ResNet-`depth`, or a tiny one."""
    tiny = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 64, 128], "embedding_size": 8}
    backbone = ResNetConfig(
        **(tiny if size == "tiny" else {"depths": DEPTHS[depth]}),
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    return {
        "backbone_config": backbone,
        "backbone": None,
        "use_timm_backbone": False,
        "use_pretrained_backbone": False,
    }
