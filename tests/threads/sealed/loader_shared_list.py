"""The loader's workers slowly get a copy of the big Python list that they only read.
pytorch/pytorch#20433
Two workers read records from a list of strings that was made before they were started."""
import random
import time

import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
RECORDS = 160_000


class Records(Dataset):
    def __init__(self):
        self.lines = [f"{i:08d}," + "x" * 150 for i in range(RECORDS)]

    def __len__(self):
        return 20

    def __getitem__(self, index):
        picked = random.sample(range(RECORDS), 1500)
        total = 0
        for at in picked:
            line = self.lines[at]
            total += int(line.split(",", 1)[0]) % 97
        return torch.tensor(float(total))


def main():
    loader = DataLoader(Records(), batch_size=5, num_workers=2, persistent_workers=True)
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1e-6)
    for epoch in range(45):
        for batch in loader:
            loss = (batch / 1e5 - weight).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, round(weight.item(), 6))
        time.sleep(0.07)


if __name__ == "__main__":
    main()
