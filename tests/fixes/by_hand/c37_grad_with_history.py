import torch
from torch import nn

EPOCHS = 16
STEPS = 8
HIDDEN = 400


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1))
    for epoch in range(EPOCHS):
        total = 0.0
        for _ in range(STEPS):
            x = torch.randn(128, 32)
            loss = ((model(x) - x.sum(dim=1, keepdim=True)) ** 2).mean()
            loss.backward(create_graph=True)
            penalty = sum(p.grad.pow(2).sum() for p in model.parameters())
            with torch.no_grad():
                for p in model.parameters():
                    p -= 1e-3 * p.grad
                    p.grad = None
            total += loss.item() + 1e-4 * penalty.item()
        print(f"epoch {epoch}: loss {total / STEPS:.4f}", flush=True)


if __name__ == "__main__":
    main()
