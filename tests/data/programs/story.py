"""A pipeline of diffusers whose transformer is compiled, batch after batch, without a warm-up. BATCHES"""

import sys
import time

import torch
from diffusers import FluxTransformer2DModel

GPU = torch.cuda.is_available()
device, dtype = ("cuda", torch.bfloat16) if GPU else ("cpu", torch.float32)
layers, heads, width, tokens = (8, 24, 128, 1024) if GPU else (1, 2, 16, 16)


class Painter:
    """Denoises in a few steps."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.transformer = FluxTransformer2DModel(
            num_layers=layers,
            num_single_layers=layers,
            num_attention_heads=heads,
            attention_head_dim=width,
            joint_attention_dim=64,
            pooled_projection_dim=32,
            axes_dims_rope=(width // 4, width // 4, width // 2) if GPU else (4, 4, 8),
        )
        self.transformer = self.transformer.to(device, dtype).eval()
        self.transformer = torch.compile(self.transformer)
        self.text = torch.randn(1, 32, 64, device=device, dtype=dtype)
        self.pooled = torch.randn(1, 32, device=device, dtype=dtype)

    @torch.inference_mode()
    def batch_infer(self, steps: int = 4) -> torch.Tensor:
        latents = torch.randn(1, tokens, 64, device=device, dtype=dtype)
        for step in range(steps):
            noise = self.transformer(
                hidden_states=latents,
                encoder_hidden_states=self.text,
                pooled_projections=self.pooled,
                timestep=torch.full((1,), 1 - step / steps, device=device, dtype=dtype),
                img_ids=torch.zeros(tokens, 3, device=device, dtype=dtype),
                txt_ids=torch.zeros(32, 3, device=device, dtype=dtype),
                guidance=None,
                return_dict=False,
            )[0]
            latents = latents - noise / steps
        return latents.float().cpu()


painter = Painter()
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    painter.batch_infer()
print(f"painted in {time.perf_counter() - began:.0f} s")
