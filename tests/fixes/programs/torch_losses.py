import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 800), nn.ReLU(), nn.Linear(800, 1))
history = []
for epoch in range(30):
    for _ in range(4):
        x = torch.randn(100, 64)
        loss = (model(x) - x.sum(dim=1, keepdim=True)).pow(2).mean()
        history.append((epoch, loss))
    print(f"epoch {epoch}: loss {float(history[-1][1]):.4f}", flush=True)
