"""Hooks held on to tensors until they were removed; now the references are dropped when the pass is over.
chr5tphr/zennit#13
Computes attributions of a net epoch by epoch; hooks collect inputs and are emptied after each epoch."""
import torch
from torch import nn

torch.set_num_threads(1)
EPOCHS, PASSES = 22, 12


def build():
    return nn.Sequential(nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 5))


stored = []


def remember(module, inputs, output):
    stored.append((inputs[0].detach().clone(), output.detach()))


def attribute(model, x):
    x = x.requires_grad_()
    model(x)[:, 0].sum().backward()
    return x.grad.abs().mean().item()


model = build()
for layer in model:
    if isinstance(layer, nn.Linear):
        layer.register_forward_hook(remember)

for epoch in range(EPOCHS):
    scores = [attribute(model, torch.randn(96, 300)) for _ in range(PASSES)]
    relevance = sum(float(i.abs().mean()) * float(o.abs().mean()) for i, o in stored)
    stored.clear()
    model.zero_grad(set_to_none=True)
    print(f"epoch {epoch} score {sum(scores):.3f} relevance {relevance:.3f}")
