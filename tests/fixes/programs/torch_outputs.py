import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Evaluator:
    def __init__(self):
        self.model = nn.Linear(512, 512)
        self.outputs = []

    @torch.no_grad()
    def run(self, x):
        y = self.model(x)
        self.outputs.append(y)
        return y.mean().item()


def main():
    evaluator = Evaluator()
    for epoch in range(30):
        score = sum(evaluator.run(torch.randn(300, 512)) for _ in range(3))
        print(f"epoch {epoch}: score {score:.4f}", flush=True)


if __name__ == "__main__":
    main()
