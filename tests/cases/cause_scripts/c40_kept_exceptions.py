import time

import torch
from torch import nn

EPOCHS = 20
STEPS = 12

failures = []


def forward_loss(model, x):
    hidden = model[0](x)
    scores = model[2](model[1](hidden))
    if not torch.isfinite(scores).all():
        raise FloatingPointError("batch has infinite scores")
    return scores.pow(2).mean()


def main():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(64, 800), nn.ReLU(), nn.Linear(800, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss = torch.zeros(())
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            x = torch.randn(700, 64)
            if step % 4 == 3:
                x[0, 0] = float("inf")  # broken sensor rows
            try:
                loss = forward_loss(model, x)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            except FloatingPointError as error:
                failures.append(error)
            time.sleep(0.005)
        print(f"epoch {epoch}: loss {loss.item():.4f}, {len(failures)} bad batches", flush=True)


if __name__ == "__main__":
    main()
