"""What is kept by an attribute: for every version of Python."""
import time

import known


class Trainer:
    def __init__(self):
        self.history = []

    def step(self):
        batch = bytearray(b"x" * 400_000)  # born
        self.history.append(batch)  # keeps


trainer = Trainer()
for epoch in range(60):
    trainer.step()
    known.kept(400_000 * (epoch + 1), call=epoch + 1, epoch=epoch + 1)
    time.sleep(0.08)
    print("epoch", epoch, flush=True)
