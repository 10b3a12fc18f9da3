"""Pinned buffers of the host in a list that several lines add to; one of them never runs."""
import torch
from common import Rounds


class Loader:
    def __init__(self):
        self.buffers = []

    def stage(self, kind):
        if kind == 0:
            self.buffers.append(torch.empty(2 << 20, dtype=torch.uint8).pin_memory())
        elif kind == 1:
            self.buffers.append(torch.empty(8 << 20, dtype=torch.uint8).pin_memory())
        else:
            self.buffers.append(None)


def main():
    loader = Loader()
    torch.zeros(1, device="cuda")
    for _ in Rounds(45):
        loader.stage(0)
        loader.stage(1)


main()
