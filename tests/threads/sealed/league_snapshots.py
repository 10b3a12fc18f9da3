"""Out of memory after hours; copies of the state_dict are made to hand the model over to the actors.
facebookresearch/hanabi_SAD#14
Self-play training: after a warm-up the policy plays against earlier versions of itself."""
import copy
import random

import torch
from torch import nn

torch.set_num_threads(1)
EPOCHS, WARM_UP = 40, 16


def policy():
    return nn.Sequential(nn.Linear(100, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 20))


def play(model, rival, games=4):
    won = 0
    for _ in range(games):
        table = torch.randn(64, 100)
        with torch.no_grad():
            won += int((model(table).max() > rival(table).max()))
    return won / games


def main():
    torch.manual_seed(1)
    random.seed(1)
    model, rival = policy(), policy()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    league = []
    for epoch in range(EPOCHS):
        for _ in range(6):
            x = torch.randn(32, 100)
            loss = -model(x).log_softmax(1)[:, 0].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch >= WARM_UP:
            league.append(copy.deepcopy(model.state_dict()))
            rival.load_state_dict(random.choice(league))
        print(f"epoch {epoch}: won {play(model, rival):.2f}")


main()
