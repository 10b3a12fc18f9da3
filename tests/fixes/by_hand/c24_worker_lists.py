import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

EPOCHS = 18
ITEMS = 400000


class Reviews(Dataset):
    def __init__(self):
        rng = random.Random(1)
        self.lengths = torch.zeros(ITEMS)
        self.stars = torch.zeros(ITEMS)
        for i in range(ITEMS):
            self.lengths[i] = len("item %d stars %d" % (i, rng.randrange(5)))
            self.stars[i] = rng.random()

    def __len__(self):
        return len(self.stars)

    def __getitem__(self, index):
        return torch.stack([self.lengths[index] / 30.0, torch.ones(())]), self.stars[index:index + 1]


def main():
    data = Reviews()
    sampler = RandomSampler(data, replacement=True, num_samples=1000)
    loader = DataLoader(data, batch_size=100, sampler=sampler, num_workers=2, persistent_workers=True)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        for x, y in loader:
            loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.02)  # a larger model
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
