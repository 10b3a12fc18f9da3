"""The hidden state goes on from batch to batch with its graph: each step keeps all steps before it."""
import torch
from common import Rounds


def main():
    cell = torch.nn.GRUCell(128, 1024).cuda()
    hidden = torch.zeros(256, 1024, device="cuda")
    for _ in Rounds(45):
        for _ in range(3):
            x = torch.randn(256, 128, device="cuda")
            hidden = cell(x, hidden)


main()
