import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 800), nn.ReLU(), nn.Linear(800, 1))
total = torch.zeros(())
for epoch in range(30):
    for _ in range(4):
        x = torch.randn(100, 64)
        total += (model(x) - x.sum(dim=1, keepdim=True)).pow(2).mean()
    print(f"epoch {epoch}: total {total.item():.3f}", flush=True)
