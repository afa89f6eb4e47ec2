"""Plain training of a compiled model. STEPS [MODE]"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

GPU = torch.cuda.is_available()
device, width, depth, batch, length = ("cuda", 1024, 12, 8, 512) if GPU else ("cpu", 32, 2, 2, 16)
steps, mode = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "default"

torch.manual_seed(0)
layers = [nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True, norm_first=True) for _ in range(depth)]
model = nn.Sequential(nn.Embedding(1000, width), *layers, nn.Linear(width, 1000)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
model = torch.compile(model, mode=mode)

for step in range(steps):
    tokens, labels = torch.randint(0, 1000, (2, batch, length), device=device)
    with torch.autocast(device, torch.bfloat16, enabled=GPU):
        loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 50 == 0:
        print("step", step, "loss", f"{loss.item():.3f}")
print("trained")
