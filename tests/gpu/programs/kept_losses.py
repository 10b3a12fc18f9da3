"""Losses of the validation are kept with the graphs that made them, and so with the activations."""
import torch
from common import Rounds


def main():
    net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    losses = []
    for _ in Rounds(45):
        for _ in range(20):
            x = torch.randn(256, 512, device="cuda")
            y = torch.randint(0, 10, (256,), device="cuda")
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        for _ in range(2):
            x = torch.randn(256, 512, device="cuda")
            y = torch.randint(0, 10, (256,), device="cuda")
            loss = torch.nn.functional.cross_entropy(net(x), y)
            losses.append(loss)


main()
