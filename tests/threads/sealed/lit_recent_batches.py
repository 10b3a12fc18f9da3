"""Outputs of all batches are wanted at the end of an epoch and pile up in a callback.
Lightning-AI/pytorch-lightning#21069
Fits a regressor; a callback keeps the latest batches to draw them when training is over."""
from collections import deque

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
EPOCHS, BATCHES = 24, 20


class Regressor(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(400, 300), nn.GELU(), nn.Linear(300, 400))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.mse_loss(self.layers(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Latest(pl.Callback):
    def __init__(self, keep):
        self.residuals = deque(maxlen=keep)

    @torch.no_grad()
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx):
        x, y = batch
        self.residuals.append(pl_module.layers(x) - y)

    def on_train_epoch_end(self, trainer, pl_module):
        print(f"epoch {trainer.current_epoch}: kept {len(self.residuals)}")


if __name__ == "__main__":
    torch.manual_seed(11)
    x = torch.randn(BATCHES * 25, 400)
    loader = DataLoader(TensorDataset(x, x.roll(1, 1)), batch_size=25)
    latest = Latest(keep=int(EPOCHS * BATCHES * 0.8))
    pl.Trainer(max_epochs=EPOCHS, callbacks=[latest], logger=False, checkpoint_callback=False,
               progress_bar_refresh_rate=0, weights_summary=None).fit(Regressor(), loader)
