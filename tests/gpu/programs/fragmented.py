"""Batches of ever longer sequences: what was freed is too small for the next one, and a small block of each stays for a while."""
from collections import deque

import torch
from common import Rounds


def main():
    net = torch.nn.Linear(256, 256).cuda()
    last = deque(maxlen=16)
    for index in Rounds(45):
        with torch.no_grad():
            x = torch.empty((16 + 2 * index) << 12, 256, device="cuda")
            y = net(x)
            last.append(y[:2048].clone())
            del x, y


main()
