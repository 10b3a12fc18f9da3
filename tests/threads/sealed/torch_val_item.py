"""The loss history held the whole computation graph of each iteration; numbers should be kept instead.
rballester/tntorch#19
Fits a factorised table to data and keeps the history of its losses as numbers."""
import torch

torch.set_num_threads(1)


class Factors(torch.nn.Module):
    def __init__(self, rows, columns, rank):
        super().__init__()
        self.left = torch.nn.Parameter(torch.randn(rows, rank) * 0.1)
        self.right = torch.nn.Parameter(torch.randn(rank, columns) * 0.1)

    def forward(self):
        return torch.tanh(self.left @ self.right)


def fit(target, rank=20, rounds=60, steps=7):
    model = Factors(*target.shape, rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_history, check_history = [], []
    for _ in range(rounds):
        for _ in range(steps):
            loss = (model() - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        loss_history.append(loss.item())
        check_history.append((model() - target).abs().mean().item())
    return loss_history, check_history


if __name__ == "__main__":
    torch.manual_seed(7)
    table = torch.rand(400, 600)
    losses, checks = fit(table)
    print(losses[0], losses[-1], checks[-1])
