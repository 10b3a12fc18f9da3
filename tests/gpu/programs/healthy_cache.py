"""Features that are computed once for each part of the data and then found again: full after a third of the run."""
import torch
from common import Rounds


def main():
    net = torch.nn.Linear(512, 2048).cuda()
    features = {}
    for index in Rounds(45):
        part = index % 15
        if part not in features:
            with torch.no_grad():
                features[part] = net(torch.randn(2048, 512, device="cuda"))
        features[part].sum().item()


main()
