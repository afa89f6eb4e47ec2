"""Workloads whose call is one forward: a row each. Imports no torch.

Architecture figures are those of the published configuration files that `checkpoint` names, and of
stabilityai/stable-diffusion-xl-base-1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracekit.model.workload import NO_BREAKS, WorkloadInfo


@dataclass(frozen=True, slots=True)
class Nested:
    """A configuration inside another: the class's name in its library, and its arguments."""

    kind: str
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    """What it is, in words; the memory it needs in bfloat16; arguments of the model's configuration; sizes of what is
    drawn for its inputs."""

    what: str
    memory_gib: float
    figures: Mapping[str, Any]
    drawn: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneForward:
    """A row. `family` is the module that builds it, `kind` the model's class there, `shared` its configuration's
    arguments at all sizes. `draws` names what the family draws for the inputs, `does` says in the report's notes what a
    call does with it, `outputs` names what a call gives: a tuple, or the one output itself where it is `bare`. `needs`
    are further packages. The rest is as in `WorkloadInfo`, where `checkpoint` is of the largest size."""

    name: str
    title: str
    kind: str
    sizes: Mapping[str, Size]
    draws: str
    does: str
    inputs: str
    parameters: int
    shared: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: str | None = None
    outputs: tuple[str, ...] = ("logits",)
    bare: bool = False
    family: str = "transformers_forward"
    needs: tuple[str, ...] = ()
    dtype: str | None = None
    resizes: bool = False
    torch_alone: bool = False
    gpu_iterations: int = 100

    def figures(self, size: str) -> dict[str, Any]:
        """The arguments of the model's configuration."""
        return {**self.shared, **self.sizes[size].figures}

    @property
    def info(self) -> WorkloadInfo:
        """The row as a line of the list."""
        return WorkloadInfo(
            name=self.name,
            title=self.title,
            module=f"tracekit.workloads.{self.family}",
            sizes={name: size.what for name, size in self.sizes.items()},
            memory_gib={name: size.memory_gib for name, size in self.sizes.items()},
            scopes={"model": "all of it"},
            fullgraph=True,
            extra="profile",
            takes=("pretrained",) if self.checkpoint else (),
            resizes=self.resizes,
            dtype=self.dtype,
            inputs=self.inputs,
            parameters=self.parameters,
            breaks=NO_BREAKS,
            checkpoints={next(iter(self.sizes)): self.checkpoint} if self.checkpoint else {},
            torch_alone=self.torch_alone,
        )


def _pixels(height: int, width: int | None = None) -> dict[str, int]:
    return {"height": height, "width": width or height}


def _layers(layers: int, width: int, heads: int, feed_forward: int) -> dict[str, int]:
    """A stack of transformer layers, as most configurations name its figures."""
    return {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "intermediate_size": feed_forward,
    }


BASE, TINY = _layers(12, 768, 12, 3072), _layers(2, 64, 2, 128)
#: A transformer over patches of 16x16 pixels.
B_16 = {
    "full": Size(
        "the published architecture: 12 layers, 768 wide, 224x224 in patches of 16",
        1.5,
        {**BASE, "image_size": 224},
        _pixels(224),
    ),
    "tiny": Size("64 wide, 2 layers, for a CPU: 64x64", 0.5, {**TINY, "image_size": 64}, _pixels(64)),
}
#: A ResNet or a Swin that another model takes all four stages of.
STAGES = {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
TINY_RESNET = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 64, 128], "embedding_size": 8}


def _swin(width: int, depths: list[int], heads: list[int], window: int, **more: int) -> Nested:
    figures = {"embed_dim": width, "depths": depths, "num_heads": heads, "window_size": window, **more}
    return Nested("SwinConfig", {**figures, **STAGES})


def _detr(depth: int, depths: list[int], queries: int, **row: Any) -> OneForward:
    """A DETR with transformers' own ResNet, where the published configurations name timm's: the same layers, and no
    package nor weights to fetch."""
    shared = {"backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False, "num_labels": 91}
    tiny = {
        "num_queries": 10,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 32,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "backbone_config": Nested("ResNetConfig", {**TINY_RESNET, **STAGES}),
    }
    full = {"num_queries": queries, "backbone_config": Nested("ResNetConfig", {"depths": depths, **STAGES})}
    what = f"the published architecture: ResNet-{depth}, 6 + 6 layers, {queries} queries, 800x1066"
    return OneForward(
        sizes={
            "full": Size(what, 1.5, full, _pixels(800, 1066)),
            "tiny": Size("a ResNet of 4 blocks, 10 queries, for a CPU: 64x96", 0.5, tiny, _pixels(64, 96)),
        },
        shared=shared,
        draws="images",
        does="finds the objects of images of {height}x{width}",
        outputs=("logits", "pred_boxes"),
        inputs="pixel_values 1x3x800x1066",
        **row,
    )


def _whisper(layers: int, width: int, heads: int, feed_forward: int, positions: int) -> dict[str, int]:
    sides = {
        f"{side}_{name}": figure
        for side in ("encoder", "decoder")
        for name, figure in {"layers": layers, "attention_heads": heads, "ffn_dim": feed_forward}.items()
    }
    return {"d_model": width, "max_source_positions": positions, **sides}


ONE_FORWARD = (
    OneForward(
        name="vit",
        title="ViT-B/16 image classification: transformers.ViTForImageClassification, from pixels to logits",
        kind="ViTForImageClassification",
        sizes=B_16,
        shared={
            "patch_size": 16,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
            "qkv_bias": True,
            "num_labels": 1000,
        },
        draws="images",
        does="classifies images of {height}x{width}",
        bare=True,
        inputs="pixel_values 1x3x224x224",
        parameters=86_567_656,
        checkpoint="google/vit-base-patch16-224",
        resizes=True,
    ),
    OneForward(
        name="beit",
        title="BEiT-B/16 image classification: transformers.BeitForImageClassification",
        kind="BeitForImageClassification",
        sizes=B_16,
        shared={
            "patch_size": 16,
            "use_relative_position_bias": True,
            "use_absolute_position_embeddings": False,
            "use_mean_pooling": True,
            "layer_scale_init_value": 0.1,
            "num_labels": 21_841,
        },
        draws="images",
        does="classifies images of {height}x{width}",
        inputs="pixel_values 1x3x224x224",
        parameters=102_557_713,
        checkpoint="microsoft/beit-base-patch16-224-pt22k-ft22k",
    ),
    OneForward(
        name="convnext",
        title="ConvNeXt-L image classification: transformers.ConvNextForImageClassification",
        kind="ConvNextForImageClassification",
        sizes={
            "full": Size(
                "the published architecture: 36 blocks, 192 to 1536 wide, 224x224",
                1.5,
                {"depths": [3, 3, 27, 3], "hidden_sizes": [192, 384, 768, 1536]},
                _pixels(224),
            ),
            "tiny": Size(
                "4 blocks, 16 to 128 wide, for a CPU: 64x64",
                0.5,
                {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 64, 128]},
                _pixels(64),
            ),
        },
        shared={"num_labels": 1000},
        draws="images",
        does="classifies images of {height}x{width}",
        inputs="pixel_values 1x3x224x224",
        parameters=197_767_336,
        checkpoint="facebook/convnext-large-224",
    ),
    OneForward(
        name="resnet",
        title="ResNet-50 image classification: transformers.ResNetForImageClassification",
        kind="ResNetForImageClassification",
        sizes={
            "full": Size(
                "the published architecture: 16 bottleneck blocks, 224x224",
                1.0,
                {"depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048], "embedding_size": 64},
                _pixels(224),
            ),
            "tiny": Size("4 bottleneck blocks, for a CPU: 64x64", 0.5, TINY_RESNET, _pixels(64)),
        },
        shared={"layer_type": "bottleneck", "num_labels": 1000},
        draws="images",
        does="classifies images of {height}x{width}",
        inputs="pixel_values 1x3x224x224",
        parameters=25_557_032,
        checkpoint="microsoft/resnet-50",
    ),
    OneForward(
        name="segformer",
        title="SegFormer-B0 segmentation: transformers.SegformerForSemanticSegmentation",
        kind="SegformerForSemanticSegmentation",
        sizes={
            "full": Size(
                "the published architecture: 8 layers, 32 to 256 wide, 512x512",
                1.0,
                {
                    "depths": [2, 2, 2, 2],
                    "hidden_sizes": [32, 64, 160, 256],
                    "num_attention_heads": [1, 2, 5, 8],
                    "decoder_hidden_size": 256,
                },
                _pixels(512),
            ),
            "tiny": Size(
                "4 layers, 16 to 32 wide, for a CPU: 64x64",
                0.5,
                {
                    "depths": [1, 1, 1, 1],
                    "hidden_sizes": [16, 16, 32, 32],
                    "num_attention_heads": [1, 1, 2, 2],
                    "decoder_hidden_size": 32,
                },
                _pixels(64),
            ),
        },
        shared={"num_labels": 150},
        draws="images",
        does="segments images of {height}x{width}",
        inputs="pixel_values 1x3x512x512",
        parameters=3_752_694,
        checkpoint="nvidia/segformer-b0-finetuned-ade-512-512",
    ),
    OneForward(
        name="mask2former",
        title="Mask2Former (Swin-T) segmentation: transformers.Mask2FormerForUniversalSegmentation",
        kind="Mask2FormerForUniversalSegmentation",
        sizes={
            "full": Size(
                "the published architecture: Swin-T, 100 queries, 384x384",
                1.5,
                {
                    "num_queries": 100,
                    "encoder_layers": 6,
                    "decoder_layers": 10,
                    "backbone_config": _swin(96, [2, 2, 6, 2], [3, 6, 12, 24], 7),
                },
                _pixels(384),
            ),
            "tiny": Size(
                "a Swin 16 wide, 10 queries, for a CPU: 64x64",
                0.5,
                {
                    "num_queries": 10,
                    "encoder_layers": 1,
                    "decoder_layers": 2,
                    "feature_size": 32,
                    "mask_feature_size": 32,
                    "hidden_dim": 32,
                    "encoder_feedforward_dim": 64,
                    "dim_feedforward": 64,
                    "num_attention_heads": 2,
                    "backbone_config": _swin(16, [1, 1, 1, 1], [1, 2, 2, 2], 4),
                },
                _pixels(64),
            ),
        },
        shared={"num_labels": 133},
        draws="images",
        does="segments images of {height}x{width}",
        outputs=("class_queries_logits", "masks_queries_logits"),
        inputs="pixel_values 1x3x384x384",
        parameters=47_436_800,
        checkpoint="facebook/mask2former-swin-tiny-coco-panoptic",
        # Their loss wants it, and is built with the model.
        needs=("scipy",),
    ),
    OneForward(
        name="maskformer",
        title="MaskFormer (Swin-B) segmentation: transformers.MaskFormerForInstanceSegmentation",
        kind="MaskFormerForInstanceSegmentation",
        sizes={
            "full": Size(
                "the published architecture: Swin-B, 100 queries, 640x640",
                2.0,
                {
                    "backbone_config": _swin(128, [2, 2, 18, 2], [4, 8, 16, 32], 12, image_size=384),
                    # Of DETR it takes the decoder alone.
                    "decoder_config": Nested("DetrConfig", {"num_queries": 100, "decoder_layers": 6}),
                    "fpn_feature_size": 256,
                    "mask_feature_size": 256,
                },
                _pixels(640),
            ),
            "tiny": Size(
                "a Swin 16 wide, 10 queries, for a CPU: 64x64",
                0.5,
                {
                    "backbone_config": _swin(16, [2, 1, 1, 1], [1, 2, 2, 2], 4, image_size=64),
                    "decoder_config": Nested(
                        "DetrConfig",
                        {
                            "num_queries": 10,
                            "encoder_layers": 1,
                            "decoder_layers": 1,
                            "d_model": 32,
                            "decoder_ffn_dim": 64,
                            "decoder_attention_heads": 2,
                        },
                    ),
                    "fpn_feature_size": 32,
                    "mask_feature_size": 32,
                },
                _pixels(64),
            ),
        },
        shared={"num_labels": 150},
        draws="images",
        does="segments images of {height}x{width}",
        outputs=("class_queries_logits", "masks_queries_logits"),
        inputs="pixel_values 1x3x640x640",
        parameters=101_831_439,
        checkpoint="facebook/maskformer-swin-base-ade",
        needs=("scipy",),
        dtype="float32",
    ),
    OneForward(
        name="deeplabv3-mobilenet",
        title="DeepLabV3 (MobileNetV2) segmentation: transformers.MobileNetV2ForSemanticSegmentation",
        kind="MobileNetV2ForSemanticSegmentation",
        sizes={
            "full": Size(
                "the published architecture: full width, 513x513",
                1.0,
                {"depth_multiplier": 1.0, "image_size": 513},
                _pixels(513),
            ),
            "tiny": Size(
                "a quarter of the width, for a CPU: 65x65",
                0.5,
                {"depth_multiplier": 0.25, "image_size": 65},
                _pixels(65),
            ),
        },
        shared={
            "output_stride": 8,
            "expand_ratio": 6.0,
            "finegrained_output": True,
            "first_layer_is_expansion": True,
            "tf_padding": True,
            "hidden_act": "relu6",
            "num_labels": 21,
        },
        draws="images",
        does="segments images of {height}x{width}",
        inputs="pixel_values 1x3x513x513",
        parameters=2_525_717,
        checkpoint="google/deeplabv3_mobilenet_v2_1.0_513",
    ),
    OneForward(
        name="owlvit",
        title="OWL-ViT-B/32 detection by words: transformers.OwlViTForObjectDetection",
        kind="OwlViTForObjectDetection",
        sizes={
            "full": Size(
                "the published architecture: 12 layers, 768 wide, 768x768 in patches of 32",
                1.5,
                {
                    "text_config": {
                        **_layers(12, 512, 8, 2048),
                        "max_position_embeddings": 16,
                        "hidden_act": "quick_gelu",
                    },
                    "vision_config": {**BASE, "image_size": 768, "patch_size": 32, "hidden_act": "quick_gelu"},
                    "projection_dim": 512,
                },
                {**_pixels(768), "tokens": 16},
            ),
            "tiny": Size(
                "64 wide, 2 layers, for a CPU: 64x64",
                0.5,
                {
                    "text_config": {
                        **_layers(2, 32, 2, 64),
                        "max_position_embeddings": 16,
                        "hidden_act": "quick_gelu",
                    },
                    "vision_config": {**TINY, "image_size": 64, "patch_size": 32, "hidden_act": "quick_gelu"},
                    "projection_dim": 32,
                },
                {**_pixels(64), "tokens": 16},
            ),
        },
        draws="images and phrases",
        does="looks for two phrases in images of {height}x{width}",
        outputs=("logits", "pred_boxes"),
        inputs="pixel_values 1x3x768x768, input_ids 2x16, attention_mask 2x16",
        parameters=153_231_879,
        checkpoint="google/owlvit-base-patch32",
    ),
    _detr(
        depth=50,
        depths=[3, 4, 6, 3],
        queries=100,
        name="detr",
        title="DETR (ResNet-50) object detection: transformers.DetrForObjectDetection",
        kind="DetrForObjectDetection",
        parameters=41_524_768,
        checkpoint="facebook/detr-resnet-50",
    ),
    _detr(
        depth=101,
        depths=[3, 4, 23, 3],
        queries=100,
        name="detr-resnet-101",
        title="DETR (ResNet-101) object detection: transformers.DetrForObjectDetection",
        kind="DetrForObjectDetection",
        parameters=60_464_672,
        checkpoint="facebook/detr-resnet-101",
    ),
    _detr(
        depth=50,
        depths=[3, 4, 6, 3],
        queries=300,
        name="conditional-detr",
        title="Conditional DETR (ResNet-50): transformers.ConditionalDetrForObjectDetection",
        kind="ConditionalDetrForObjectDetection",
        parameters=43_418_401,
        checkpoint="microsoft/conditional-detr-resnet-50",
    ),
    OneForward(
        name="sdxl",
        title="Stable Diffusion XL's UNet, one denoising step: diffusers.UNet2DConditionModel",
        kind="UNet2DConditionModel",
        family="diffusers_forward",
        sizes={
            "full": Size(
                "the published architecture: 320 to 1280 wide; 1024x1024, with guidance",
                9.0,
                {
                    "sample_size": 128,
                    "block_out_channels": (320, 640, 1280),
                    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
                    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
                    "attention_head_dim": (5, 10, 20),
                    "transformer_layers_per_block": (1, 2, 10),
                    "cross_attention_dim": 2048,
                    "addition_time_embed_dim": 256,
                    "projection_class_embeddings_input_dim": 2816,
                },
                _pixels(1024),
            ),
            "tiny": Size(
                "32 to 64 wide, for a CPU; 128x128, with guidance",
                0.5,
                {
                    "sample_size": 16,
                    "block_out_channels": (32, 64),
                    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
                    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
                    "layers_per_block": 1,
                    "attention_head_dim": (1, 2),
                    "transformer_layers_per_block": (1, 1),
                    "cross_attention_dim": 32,
                    "addition_time_embed_dim": 8,
                    "projection_class_embeddings_input_dim": 64,
                },
                _pixels(128),
            ),
        },
        shared={"use_linear_projection": True, "addition_embed_type": "text_time"},
        draws="a denoising step",
        does="takes one denoising step of pictures of {height}x{width}, each with its prompt and without",
        outputs=("sample",),
        inputs="sample 2x4x128x128, timestep scalar, encoder_hidden_states 2x77x2048, text_embeds 2x1280, time_ids 2x6",
        parameters=2_567_463_684,
        gpu_iterations=20,
    ),
    OneForward(
        name="bert",
        title="BERT-base guessing masked words: transformers.BertForMaskedLM",
        kind="BertForMaskedLM",
        sizes={
            "full": Size(
                "the published architecture: 12 layers, 768 wide; 128 tokens",
                1.5,
                {**BASE, "vocab_size": 30_522},
                {"tokens": 128},
            ),
            "tiny": Size("64 wide, 2 layers, for a CPU; 16 tokens", 0.5, {**TINY, "vocab_size": 1000}, {"tokens": 16}),
        },
        draws="sentences",
        does="reads sentences of {tokens} tokens, drawn as ids by the seed",
        inputs="input_ids 1x128, attention_mask 1x128",
        parameters=109_514_298,
        checkpoint="google-bert/bert-base-uncased",
    ),
    OneForward(
        name="whisper",
        title="Whisper-small, one forward: transformers.WhisperForConditionalGeneration",
        kind="WhisperForConditionalGeneration",
        sizes={
            # Two frames of the spectrum, each 10 ms, become one position.
            "full": Size(
                "the published architecture: 12 + 12 layers, 768 wide; 30 s of sound, 64 words",
                2.0,
                _whisper(layers=12, width=768, heads=12, feed_forward=3072, positions=1500),
                {"seconds": 30, "tokens": 64},
            ),
            "tiny": Size(
                "64 wide, 2 + 2 layers, for a CPU; 1 s of sound, 8 words",
                0.5,
                _whisper(layers=2, width=64, heads=2, feed_forward=128, positions=50),
                {"seconds": 1, "tokens": 8},
            ),
        },
        # Nothing is written after what is read.
        shared={"vocab_size": 51_865, "use_cache": False},
        draws="sounds",
        does="encodes sounds of {seconds} s, as spectra, and decodes {tokens} words of each at once",
        inputs="input_features 1x80x3000, decoder_input_ids 1x64",
        parameters=241_734_912,
        checkpoint="openai/whisper-small",
    ),
    OneForward(
        name="mlp",
        title="a few blocks of LayerNorm, Linear, GELU, Linear: compiles in seconds, to learn and to try things with",
        kind="Sequential",
        family="mlp",
        sizes={
            "full": Size(
                "4 blocks, 1024 wide, 512 tokens", 1.0, {"blocks": 4, "width": 1024}, {"tokens": 512, "width": 1024}
            ),
            "tiny": Size(
                "2 blocks, 64 wide, 32 tokens, for a CPU", 0.5, {"blocks": 2, "width": 64}, {"tokens": 32, "width": 64}
            ),
        },
        draws="hidden states",
        does="takes sequences of {tokens} tokens of width {width} through every block",
        outputs=("hidden states",),
        bare=True,
        inputs="x 1x512x1024",
        parameters=33_583_104,
        resizes=True,
        torch_alone=True,
    ),
)

#: The rows by their names.
ROWS = {row.name: row for row in ONE_FORWARD}
