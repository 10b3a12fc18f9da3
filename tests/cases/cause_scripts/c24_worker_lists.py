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
        self.rows = [{"text": "item %d stars %d" % (i, rng.randrange(5)), "stars": rng.random()} for i in range(ITEMS)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return torch.tensor([len(row["text"]) / 30.0, 1.0]), torch.tensor([row["stars"]])


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
