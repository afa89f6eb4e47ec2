"""A train step that is compiled as a whole, optimizer and all. STEPS"""

import sys

import torch
from torch import nn

GPU = torch.cuda.is_available()
device, width, batch = ("cuda", 2048, 512) if GPU else ("cpu", 32, 8)
model = nn.Sequential(*(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(6)))
model = model.to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-4, capturable=GPU)


@torch.compile
def train_step(x: torch.Tensor) -> torch.Tensor:
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


for _ in range(int(sys.argv[1])):
    loss = train_step(torch.randn(batch, width, device=device))
print("trained", loss.item() >= 0)
