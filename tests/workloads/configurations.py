"""Configurations of tiny models, as repositories hold them."""

from pathlib import Path
from typing import Any

STACK: dict[str, Any] = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
IMAGES = {"image_size": 32, "patch_size": 8}
TEXT = {"vocab_size": 200, "max_position_embeddings": 40, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
ENCODER_DECODER = {
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "decoder_start_token_id": 3,
}


def transformers_config(name: str) -> Any:
    """The configuration of a tiny model, naming its class."""
    import transformers as hf

    layers = {**STACK, "num_hidden_layers": 3}
    backbone = hf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], out_features=["stage4"]
    )
    makers: dict[str, Any] = {
        "ViTForImageClassification": lambda: hf.ViTConfig(**layers, **IMAGES),
        "BertForMaskedLM": lambda: hf.BertConfig(**layers, **TEXT),
        "LlamaForCausalLM": lambda: hf.LlamaConfig(**layers, **TEXT, num_key_value_heads=1),
        "GPT2LMHeadModel": lambda: hf.GPT2Config(
            n_layer=3, n_embd=32, n_head=2, vocab_size=200, n_positions=40, bos_token_id=0, eos_token_id=1
        ),
        "T5ForConditionalGeneration": lambda: hf.T5Config(
            d_model=32, d_kv=16, d_ff=64, num_layers=3, num_heads=2, vocab_size=200, decoder_start_token_id=0
        ),
        "BartForSequenceClassification": lambda: hf.BartConfig(**ENCODER_DECODER, **TEXT),
        "WhisperForConditionalGeneration": lambda: hf.WhisperConfig(
            **ENCODER_DECODER,
            vocab_size=200,
            max_source_positions=50,
            max_target_positions=16,
            num_mel_bins=8,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        ),
        "DetrForObjectDetection": lambda: hf.DetrConfig(
            **ENCODER_DECODER, num_queries=5, use_timm_backbone=False, backbone=None, backbone_config=backbone
        ),
        "SegformerForSemanticSegmentation": lambda: hf.SegformerConfig(
            hidden_sizes=[8, 16, 16, 32], num_attention_heads=[1, 1, 2, 2], depths=[1, 1, 1, 1], decoder_hidden_size=16
        ),
        "CLIPModel": lambda: hf.CLIPConfig(
            text_config={**layers, **TEXT}, vision_config={**layers, **IMAGES}, projection_dim=16
        ),
        "Wav2Vec2ForCTC": lambda: hf.Wav2Vec2Config(**layers, conv_dim=[8] * 7, vocab_size=32),
        "ASTForAudioClassification": lambda: hf.ASTConfig(**layers, max_length=64, num_mel_bins=16),
        "VideoMAEForVideoClassification": lambda: hf.VideoMAEConfig(**layers, **IMAGES, num_frames=4),
        "LayoutLMv3ForSequenceClassification": lambda: hf.LayoutLMv3Config(**layers, vocab_size=200, input_size=32),
    }
    config = makers[name]()
    config.architectures = [name]
    return config


BLOCKS = {"attention_head_dim": 16, "num_attention_heads": 2, "num_layers": 1}
LATENTS = {"in_channels": 4, "out_channels": 4}
SQUARE = {"sample_size": 8}
JOINT = {"joint_attention_dim": 32, "caption_projection_dim": 32, **SQUARE}
CAPTIONS = {"cross_attention_dim": 32, "caption_channels": 24, **SQUARE}
UNET = {"block_out_channels": (32, 64), "layers_per_block": 1, "attention_head_dim": 8, **SQUARE}
WAN = {"attention_head_dim": 12, "text_dim": 32, "freq_dim": 16, "ffn_dim": 32}
TEXT_TIME = {"addition_embed_type": "text_time", "addition_time_embed_dim": 8, "cross_attention_dim": 16}


def ends(kind: str) -> dict[str, tuple[str, str]]:
    """The blocks of a UNet, of which the inner ones are of this kind."""
    down, up = ("DownBlock2D", f"{kind}DownBlock2D"), (f"{kind}UpBlock2D", "UpBlock2D")
    return {"down_block_types": down, "up_block_types": up}


#: Denoisers of diffusers, by their classes.
DENOISERS: dict[str, dict[str, Any]] = {
    "UNet2DConditionModel": {**UNET, **ends("CrossAttn"), **TEXT_TIME, "projection_class_embeddings_input_dim": 64},
    "UNet2DModel": {**UNET, **ends("Attn")},
    "FluxTransformer2DModel": {
        **BLOCKS,
        "num_single_layers": 1,
        "joint_attention_dim": 32,
        "pooled_projection_dim": 16,
        "axes_dims_rope": (4, 6, 6),
        "in_channels": 16,
        "guidance_embeds": True,
    },
    "SD3Transformer2DModel": {**BLOCKS, **JOINT, **LATENTS, "pooled_projection_dim": 16, "pos_embed_max_size": 16},
    "PixArtTransformer2DModel": {**BLOCKS, **CAPTIONS},
    "SanaTransformer2DModel": {
        **BLOCKS,
        **CAPTIONS,
        **LATENTS,
        "num_cross_attention_heads": 2,
        "cross_attention_head_dim": 16,
    },
    "AuraFlowTransformer2DModel": {
        **JOINT,
        "attention_head_dim": 16,
        "num_attention_heads": 2,
        "num_mmdit_layers": 1,
        "num_single_dit_layers": 1,
        "pos_embed_max_size": 64,
    },
    "DiTTransformer2DModel": {**BLOCKS, **SQUARE, "in_channels": 4, "out_channels": 8},
    "WanTransformer3DModel": {**BLOCKS, **LATENTS, **WAN},
}


def denoiser(name: str) -> Any:
    """A tiny denoiser, on the meta device."""
    import diffusers
    import torch

    with torch.device("meta"):
        return getattr(diffusers, name)(**DENOISERS[name])


def save(name: str, folder: Path) -> str:
    """The workload that is a tiny model of this class, by its `config.json` in `folder`."""
    if name in DENOISERS:
        denoiser(name).save_config(folder)
        return f"diffusers:{folder}"
    transformers_config(name).save_pretrained(folder)
    return f"hf:{folder}"
