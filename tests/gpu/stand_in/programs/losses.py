"""Losses are kept with the graphs that made them: what a graph has saved lies on the device."""
import time

import torch


def train(losses):
    hidden = torch.zeros(1_000_000)
    loss = torch.Tensor(4, made_of=[hidden])
    losses.append(loss)


def main():
    losses = []
    weights = [torch.zeros(1 << 20) for _ in range(4)]
    for epoch in range(40):
        train(losses)
        print("epoch %d" % epoch, len(weights), flush=True)
        time.sleep(0.2)


main()
