"""Persistent loader workers take more memory with every epoch.
pytorch/pytorch#62066
Trains on augmented pictures that one persistent worker prepares."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Augmented(Dataset):
    def __init__(self, count):
        self.rng = np.random.default_rng(17)
        self.base = self.rng.random((count, 3, 64, 64), dtype=np.float32)
        self.memo = {}

    def __len__(self):
        return len(self.base)

    def augment(self, index, shift):
        key = (index, shift)
        if key not in self.memo:
            self.memo[key] = np.roll(self.base[index], shift % 64, axis=2) * (1 + shift * 1e-6)
        return self.memo[key]

    def __getitem__(self, index):
        shift = int(self.rng.integers(0, 1_000_000))
        return torch.from_numpy(self.augment(index, shift)), index % 10


def main():
    loader = DataLoader(Augmented(96), batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
    model = torch.nn.Sequential(torch.nn.AvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(3072, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(24):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
        time.sleep(0.12)


if __name__ == "__main__":
    main()
