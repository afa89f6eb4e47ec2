"""Inference at lengths that change from step to step. STEPS"""

import random
import sys

import torch
from torch import nn

GPU = torch.cuda.is_available()
device, width, depth = ("cuda", 1024, 12) if GPU else ("cpu", 32, 2)
model = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, nn.functional.silu, batch_first=True, norm_first=True),
    depth,
    enable_nested_tensor=False,
)
model = torch.compile(model.to(device, torch.bfloat16 if GPU else torch.float32).eval(), dynamic=True)
draw = random.Random(0)
with torch.inference_mode():
    for _ in range(int(sys.argv[1])):
        x = torch.randn(1, draw.choice((64, 128, 256)), width, device=device, dtype=next(model.parameters()).dtype)
        model(x).float().mean().item()
print("inferred")
