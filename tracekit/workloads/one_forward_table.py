"""Workloads whose call is one forward: a row each. Imports no torch.

Architecture figures are those of the published configuration files that `checkpoint` names, and of
stabilityai/stable-diffusion-xl-base-1.0. What a configuration's class has by default as published is not repeated.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tracekit.model.workload import NO_BREAKS, WorkloadInfo


class Size(Struct, frozen=True):
    """What it is, in words; sizes of what is drawn for its inputs; the memory it needs in bfloat16."""

    what: str
    drawn: Mapping[str, int]
    memory_gib: float = 0.5


class OneForward(Struct, frozen=True, kw_only=True):
    """A row. `family` is the module that builds it, `kind` the model's class there, `figures` the arguments of its
    configuration, and `tiny_figures` those that the tiny size has in their place. `draws` names what the family draws
    for the inputs, `does` says in the report's notes what a call does with it, `outputs` names what a call gives: a
    tuple, or the one output itself where it is `bare`. `needs` are further packages. The rest is as in `WorkloadInfo`;
    `inputs` of None are images, and `checkpoint` is of the full size."""

    name: str
    title: str
    kind: str
    full: Size
    tiny: Size
    tiny_figures: Mapping[str, Any]
    parameters: int
    figures: Mapping[str, Any] = {}
    does: str = "classifies images of {height}x{width}"
    draws: str = "images"
    inputs: str | None = None
    checkpoint: str | None = None
    outputs: tuple[str, ...] = ("logits",)
    bare: bool = False
    family: str = "transformers_forward"
    needs: tuple[str, ...] = ()
    dtype: str | None = None
    resizes: bool = False
    needs_only_torch: bool = False
    gpu_iterations: int = 100

    @property
    def sizes(self) -> dict[str, Size]:
        """The sizes by their names, the largest first."""
        return {"full": self.full, "tiny": self.tiny}

    def figures_at(self, size: str) -> dict[str, Any]:
        """The arguments of the model's configuration at one size."""
        return {**self.figures, **(self.tiny_figures if size == "tiny" else {})}

    @property
    def info(self) -> WorkloadInfo:
        """The row as a line of the list."""
        drawn = self.full.drawn
        return WorkloadInfo(
            name=self.name,
            title=self.title,
            module=f"tracekit.workloads.{self.family}",
            sizes={name: size.what for name, size in self.sizes.items()},
            memory_gib={name: size.memory_gib for name, size in self.sizes.items()},
            scopes={"model": "the whole model"},
            fullgraph=True,
            takes=("pretrained",) if self.checkpoint else (),
            resizes=self.resizes,
            dtype=self.dtype,
            inputs=self.inputs or f"pixel_values 1x3x{drawn['height']}x{drawn['width']}",
            parameters=self.parameters,
            breaks=NO_BREAKS,
            checkpoints={"full": self.checkpoint} if self.checkpoint else {},
            needs_only_torch=self.needs_only_torch,
        )


def _pixels(height: int, width: int | None = None) -> dict[str, int]:
    return {"height": height, "width": width or height}


#: Figures of tiny models, as most configurations name them.
STACK = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128}
RESNET = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 64, 128], "embedding_size": 8}
SWIN = {"embed_dim": 16, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 2, 2], "window_size": 4}
#: A ResNet or a Swin that another model takes all four stages of.
STAGES = {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
RESNET_STAGES = {"model_type": "resnet", **STAGES}
SWIN_STAGES = {"model_type": "swin", **STAGES}
#: A transformer over patches of 16x16 pixels.
B_16_FULL = Size("the published architecture: 12 layers, 768 wide, 224x224 in patches of 16", _pixels(224), 1.5)
B_16_TINY = Size("64 wide, 2 layers, for a CPU: 64x64", _pixels(64))
WHISPER = "the published architecture: 12 + 12 layers, 768 wide; 30 s of audio, 64 tokens"
SEGMENTS = "segments images of {height}x{width}"
MASKS = ("class_queries_logits", "masks_queries_logits")
BOXES = ("logits", "pred_boxes")


def _both_stacks(layers: int, width: int, heads: int, feed_forward: int) -> dict[str, int]:
    """An encoder and a decoder of the same figures."""
    figures = {"layers": layers, "attention_heads": heads, "ffn_dim": feed_forward}
    stacks = {f"{stack}_{name}": each for stack in ("encoder", "decoder") for name, each in figures.items()}
    return {"d_model": width, **stacks}


#: Of a tiny DETR.
DETR = {"num_queries": 10, **_both_stacks(1, 32, 2, 64)}


def _detr(depth: int, depths: list[int], queries: int = 100, **row: Any) -> OneForward:
    """A DETR with transformers' own ResNet, where the published configurations name timm's: the same layers, and no
    package nor weights to fetch."""
    full = f"the published architecture: ResNet-{depth}, 6 + 6 layers, {queries} queries, 800x1066"
    return OneForward(
        full=Size(full, _pixels(800, 1066), 1.5),
        tiny=Size("a ResNet of 4 blocks, 10 queries, for a CPU: 64x96", _pixels(64, 96)),
        figures={
            "backbone": None,
            "use_timm_backbone": False,
            "use_pretrained_backbone": False,
            "num_labels": 91,
            "num_queries": queries,
            "backbone_config": {**RESNET_STAGES, "depths": depths},
        },
        tiny_figures={**DETR, "backbone_config": {**RESNET_STAGES, **RESNET}},
        does="detects objects in images of {height}x{width}",
        outputs=BOXES,
        **row,
    )


ONE_FORWARD = (
    OneForward(
        name="vit",
        title="ViT-B/16 image classification: transformers.ViTForImageClassification, from pixels to logits",
        kind="ViTForImageClassification",
        full=B_16_FULL,
        tiny=B_16_TINY,
        figures={"num_labels": 1000},
        tiny_figures={**STACK, "image_size": 64},
        bare=True,
        parameters=86_567_656,
        checkpoint="google/vit-base-patch16-224",
        resizes=True,
    ),
    OneForward(
        name="beit",
        title="BEiT-B/16 image classification: transformers.BeitForImageClassification",
        kind="BeitForImageClassification",
        full=B_16_FULL,
        tiny=B_16_TINY,
        figures={"use_relative_position_bias": True, "num_labels": 21_841},
        tiny_figures={**STACK, "image_size": 64},
        parameters=102_557_713,
        checkpoint="microsoft/beit-base-patch16-224-pt22k-ft22k",
    ),
    OneForward(
        name="convnext",
        title="ConvNeXt-L image classification: transformers.ConvNextForImageClassification",
        kind="ConvNextForImageClassification",
        full=Size("the published architecture: 36 blocks, 192 to 1536 wide, 224x224", _pixels(224), 1.5),
        tiny=Size("4 blocks, 16 to 128 wide, for a CPU: 64x64", _pixels(64)),
        figures={"depths": [3, 3, 27, 3], "hidden_sizes": [192, 384, 768, 1536], "num_labels": 1000},
        tiny_figures={"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 64, 128]},
        parameters=197_767_336,
        checkpoint="facebook/convnext-large-224",
    ),
    OneForward(
        name="resnet",
        title="ResNet-50 image classification: transformers.ResNetForImageClassification",
        kind="ResNetForImageClassification",
        full=Size("the published architecture: 16 bottleneck blocks, 224x224", _pixels(224), 1.0),
        tiny=Size("4 bottleneck blocks, for a CPU: 64x64", _pixels(64)),
        figures={"num_labels": 1000},
        tiny_figures=RESNET,
        parameters=25_557_032,
        checkpoint="microsoft/resnet-50",
    ),
    OneForward(
        name="segformer",
        title="SegFormer-B0 segmentation: transformers.SegformerForSemanticSegmentation",
        kind="SegformerForSemanticSegmentation",
        full=Size("the published architecture: 8 layers, 32 to 256 wide, 512x512", _pixels(512), 1.0),
        tiny=Size("4 layers, 16 to 32 wide, for a CPU: 64x64", _pixels(64)),
        figures={"num_labels": 150},
        tiny_figures={
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [16, 16, 32, 32],
            "num_attention_heads": [1, 1, 2, 2],
            "decoder_hidden_size": 32,
        },
        does=SEGMENTS,
        parameters=3_752_694,
        checkpoint="nvidia/segformer-b0-finetuned-ade-512-512",
    ),
    OneForward(
        name="mask2former",
        title="Mask2Former (Swin-T) segmentation: transformers.Mask2FormerForUniversalSegmentation",
        kind="Mask2FormerForUniversalSegmentation",
        full=Size("the published architecture: Swin-T, 100 queries, 384x384", _pixels(384), 1.5),
        tiny=Size("a Swin 16 wide, 10 queries, for a CPU: 64x64", _pixels(64)),
        figures={"backbone_config": SWIN_STAGES, "num_labels": 133},
        tiny_figures={
            "num_queries": 10,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "feature_size": 32,
            "mask_feature_size": 32,
            "hidden_dim": 32,
            "encoder_feedforward_dim": 64,
            "dim_feedforward": 64,
            "num_attention_heads": 2,
            "backbone_config": {**SWIN_STAGES, **SWIN},
        },
        does=SEGMENTS,
        outputs=MASKS,
        parameters=47_436_800,
        checkpoint="facebook/mask2former-swin-tiny-coco-panoptic",
        # Their loss wants it, and is built with the model.
        needs=("scipy",),
    ),
    OneForward(
        name="maskformer",
        title="MaskFormer (Swin-B) segmentation: transformers.MaskFormerForInstanceSegmentation",
        kind="MaskFormerForInstanceSegmentation",
        full=Size("the published architecture: Swin-B, 100 queries, 640x640", _pixels(640), 2.0),
        tiny=Size("a Swin 16 wide, 10 queries, for a CPU: 64x64", _pixels(64)),
        figures={
            "backbone_config": {
                **SWIN_STAGES,
                "image_size": 384,
                "embed_dim": 128,
                "depths": [2, 2, 18, 2],
                "num_heads": [4, 8, 16, 32],
                "window_size": 12,
            },
            "num_labels": 150,
        },
        tiny_figures={
            "backbone_config": {**SWIN_STAGES, **SWIN, "depths": [2, 1, 1, 1], "image_size": 64},
            # Of DETR it takes the decoder alone.
            "decoder_config": {"model_type": "detr", **DETR},
            "fpn_feature_size": 32,
            "mask_feature_size": 32,
        },
        does=SEGMENTS,
        outputs=MASKS,
        parameters=101_831_439,
        checkpoint="facebook/maskformer-swin-base-ade",
        needs=("scipy",),
        dtype="float32",
    ),
    OneForward(
        name="deeplabv3-mobilenet",
        title="DeepLabV3 (MobileNetV2) segmentation: transformers.MobileNetV2ForSemanticSegmentation",
        kind="MobileNetV2ForSemanticSegmentation",
        full=Size("the published architecture: full width, 513x513", _pixels(513), 1.0),
        tiny=Size("a quarter of the width, for a CPU: 65x65", _pixels(65)),
        figures={"image_size": 513, "output_stride": 8, "num_labels": 21},
        tiny_figures={"image_size": 65, "depth_multiplier": 0.25},
        does=SEGMENTS,
        parameters=2_525_717,
        checkpoint="google/deeplabv3_mobilenet_v2_1.0_513",
    ),
    OneForward(
        name="owlvit",
        title="OWL-ViT-B/32 text-conditioned detection: transformers.OwlViTForObjectDetection",
        kind="OwlViTForObjectDetection",
        full=Size("the published architecture: 12 layers, 768 wide, 768x768 in patches of 32", _pixels(768), 1.5),
        tiny=B_16_TINY,
        tiny_figures={
            "text_config": {**STACK, "hidden_size": 32, "intermediate_size": 64},
            "vision_config": {**STACK, "image_size": 64},
            "projection_dim": 32,
        },
        draws="images and phrases",
        does="detects two phrases in images of {height}x{width}",
        outputs=BOXES,
        inputs="pixel_values 1x3x768x768, input_ids 2x16, attention_mask 2x16",
        parameters=153_231_879,
        checkpoint="google/owlvit-base-patch32",
    ),
    _detr(
        50,
        [3, 4, 6, 3],
        name="detr",
        title="DETR (ResNet-50) object detection: transformers.DetrForObjectDetection",
        kind="DetrForObjectDetection",
        parameters=41_524_768,
        checkpoint="facebook/detr-resnet-50",
    ),
    _detr(
        101,
        [3, 4, 23, 3],
        name="detr-resnet-101",
        title="DETR (ResNet-101) object detection: transformers.DetrForObjectDetection",
        kind="DetrForObjectDetection",
        parameters=60_464_672,
        checkpoint="facebook/detr-resnet-101",
    ),
    _detr(
        50,
        [3, 4, 6, 3],
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
        family="diffusers_model",
        full=Size("the published architecture: 320 to 1280 wide; 1024x1024, with guidance", _pixels(1024), 9.0),
        tiny=Size("32 to 64 wide, for a CPU; 128x128, with guidance", _pixels(128)),
        figures={
            "sample_size": 128,
            "block_out_channels": (320, 640, 1280),
            "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
            "attention_head_dim": (5, 10, 20),
            "transformer_layers_per_block": (1, 2, 10),
            "cross_attention_dim": 2048,
            "addition_time_embed_dim": 256,
            "projection_class_embeddings_input_dim": 2816,
            "use_linear_projection": True,
            "addition_embed_type": "text_time",
        },
        tiny_figures={
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
        does="runs one denoising step of images of {height}x{width}, with and without prompt (guidance)",
        outputs=("sample",),
        inputs="sample 2x4x128x128, timestep scalar, encoder_hidden_states 2x77x2048, text_embeds 2x1280, time_ids 2x6",
        parameters=2_567_463_684,
        gpu_iterations=20,
    ),
    OneForward(
        name="bert",
        title="BERT-base masked language model: transformers.BertForMaskedLM",
        kind="BertForMaskedLM",
        full=Size("the published architecture: 12 layers, 768 wide; 128 tokens", {"tokens": 128}, 1.5),
        tiny=Size("64 wide, 2 layers, for a CPU; 16 tokens", {"tokens": 16}),
        tiny_figures={**STACK, "vocab_size": 1000},
        draws="sentences",
        does="encodes sequences of {tokens} random token ids",
        inputs="input_ids 1x128, attention_mask 1x128",
        parameters=109_514_298,
        checkpoint="google-bert/bert-base-uncased",
    ),
    OneForward(
        name="whisper",
        title="Whisper-small, one forward: transformers.WhisperForConditionalGeneration",
        kind="WhisperForConditionalGeneration",
        full=Size(WHISPER, {"seconds": 30, "tokens": 64}, 2.0),
        tiny=Size("64 wide, 2 + 2 layers, for a CPU; 1 s of audio, 8 tokens", {"seconds": 1, "tokens": 8}),
        # Nothing is written after what is read.
        figures={**_both_stacks(12, 768, 12, 3072), "use_cache": False},
        # Two frames of the spectrum, each 10 ms, become one position.
        tiny_figures={**_both_stacks(2, 64, 2, 128), "max_source_positions": 50},
        draws="sounds",
        does="encodes spectrograms of {seconds} s of audio and decodes {tokens} tokens of each in one forward",
        inputs="input_features 1x80x3000, decoder_input_ids 1x64",
        parameters=241_734_912,
        checkpoint="openai/whisper-small",
    ),
    OneForward(
        name="mlp",
        title="blocks of LayerNorm, Linear, GELU, Linear: a small model for first steps, compiles in seconds",
        kind="Sequential",
        family="one_forward",
        full=Size("4 blocks, 1024 wide, 512 tokens", {"tokens": 512, "width": 1024}, 1.0),
        tiny=Size("2 blocks, 64 wide, 32 tokens, for a CPU", {"tokens": 32, "width": 64}),
        figures={"blocks": 4, "width": 1024},
        tiny_figures={"blocks": 2, "width": 64},
        does="runs sequences of {tokens} tokens of width {width} through every block",
        outputs=("hidden states",),
        bare=True,
        inputs="x 1x512x1024",
        parameters=33_583_104,
        resizes=True,
        needs_only_torch=True,
    ),
)

#: The rows by their names.
ROWS = {row.name: row for row in ONE_FORWARD}
