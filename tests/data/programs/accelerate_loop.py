"""Accelerate's loop around a compiled model. STEPS"""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(dynamo_backend="inductor", cpu=not torch.cuda.is_available())
GPU = accelerator.device.type == "cuda"
width, batch = (2048, 512) if GPU else (32, 8)
model = nn.Sequential(*(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(6)))
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
steps = int(sys.argv[1])
loader = DataLoader(TensorDataset(torch.randn(steps * batch, width)), batch)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

for (x,) in loader:
    loss = model(x).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
print("trained")
