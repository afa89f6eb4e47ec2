"""Inference with each block compiled by itself. STEPS"""

import sys

import torch
from torch import nn

GPU = torch.cuda.is_available()
device, width, depth, length = ("cuda", 1024, 16, 256) if GPU else ("cpu", 32, 3, 16)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True, norm_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * 0.5 + x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


model = Net().to(device, torch.bfloat16 if GPU else torch.float32).eval()
for block in model.blocks:
    block.compile()
with torch.inference_mode():
    for _ in range(int(sys.argv[1])):
        x = torch.randn(1, length, width, device=device, dtype=next(model.parameters()).dtype)
        model(x).float().mean().item()
print("inferred")
