"""Training with accumulated gradients and a scaler, which skips its first optimizer steps. STEPS"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

GPU = torch.cuda.is_available()
device, width, depth, batch = ("cuda", 2048, 8, 256) if GPU else ("cpu", 32, 2, 8)
EVERY = 4


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + F.gelu(layer(F.layer_norm(x, x.shape[-1:])))
        return x


model = Net().to(device)
model.compile()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
scaler = torch.amp.GradScaler(device, init_scale=2.0**40 if GPU else 2.0, enabled=GPU)

for step in range(int(sys.argv[1])):
    for _ in range(EVERY):
        x = torch.randn(batch, width, device=device)
        with torch.autocast(device, torch.float16, enabled=GPU):
            loss = model(x).float().square().mean() / EVERY
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
print("trained")
