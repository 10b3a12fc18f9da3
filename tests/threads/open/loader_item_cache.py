"""Memory goes up during training although the data does not: items are cached when they are first read.
pytorch/pytorch#122935
A data set that caches decoded items; each epoch reads a random part of them until all are there."""
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

torch.set_num_threads(1)


class Decoded(Dataset):
    """Items are decoded once and then come from memory."""

    def __init__(self, count):
        self.count = count
        self.items = [None] * count

    def __len__(self):
        return self.count

    def decode(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, 72, 72, generator=generator)

    def __getitem__(self, index):
        if self.items[index] is None:
            self.items[index] = self.decode(index)
        return self.items[index]


def main():
    data = Decoded(600)
    loader = DataLoader(data, batch_size=20, sampler=RandomSampler(data, replacement=True, num_samples=300))
    filters = torch.nn.Conv2d(3, 12, 7, stride=2)
    optimizer = torch.optim.SGD(filters.parameters(), lr=0.01)
    for epoch in range(40):
        for batch in loader:
            loss = filters(batch).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        known = sum(item is not None for item in data.items)
        print(f"epoch {epoch}: loss {loss.item():.5f}, {known} items known")


if __name__ == "__main__":
    main()
