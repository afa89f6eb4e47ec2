"""Inference of two modules, each compiled by itself: one of small operations, one of products. STEPS"""

import sys

import torch
from torch import nn

GPU = torch.cuda.is_available()
device, width, length = ("cuda", 2048, 4096) if GPU else ("cpu", 64, 64)


class Small(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            x = torch.tanh(x * 0.5 + 0.1) * torch.sigmoid(x)
        return x


class Large(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(6)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


torch.manual_seed(0)
dtype = torch.bfloat16 if GPU else torch.float32
small, large = torch.compile(Small()), torch.compile(Large().to(device, dtype).eval())
with torch.inference_mode():
    for _ in range(int(sys.argv[1])):
        x = torch.randn(length, width, device=device, dtype=dtype)
        large(small(x)).float().mean().item()
print("inferred")
