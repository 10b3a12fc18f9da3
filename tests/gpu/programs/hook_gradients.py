"""A hook of a parameter keeps the gradient of every backward pass."""
import torch
from common import Rounds

gradients = []


def keep(gradient):
    gradients.append(gradient)


def main():
    net = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
    net[0].weight.register_hook(keep)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in Rounds(45):
        for _ in range(5):
            x = torch.randn(128, 1024, device="cuda")
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()


main()
