"""Forward hooks store activations that nobody deletes.
meta-pytorch/opacus#176
Trains a convolution net while hooks collect activation statistics per layer."""
import torch
from torch import nn

torch.set_num_threads(1)


class ActivationStats:
    def __init__(self, model):
        self.activations = {}
        self.handles = [m.register_forward_hook(self.keep(name)) for name, m in model.named_modules() if isinstance(m, nn.Conv2d)]

    def keep(self, name):
        def hook(module, inputs, output):
            self.activations.setdefault(name, []).append(output.detach())
        return hook

    def dead_units(self):
        return {name: float((kept[-1] <= 0).float().mean()) for name, kept in self.activations.items()}


def main():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.Tanh(), nn.Conv2d(8, 8, 3, padding=1), nn.Tanh(), nn.AdaptiveMaxPool2d(4),
                          nn.Flatten(), nn.Linear(128, 10))
    stats = ActivationStats(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(180):
        x, y = torch.randn(24, 1, 28, 28), torch.randint(0, 10, (24,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print("step", step, round(loss.item(), 4), stats.dead_units())


if __name__ == "__main__":
    main()
