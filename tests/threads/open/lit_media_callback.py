"""A callback that takes pictures out of the training step's outputs costs more and more memory.
Lightning-AI/pytorch-lightning#1243
Trains a tiny convolution net; a callback takes a look at some inputs every few steps."""
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
                                  nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.body(x), y)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


class LogMedia(pl.Callback):
    def __init__(self, every_n_steps):
        self.every_n_steps = every_n_steps
        self.shown = {}

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx):
        step = trainer.global_step
        if step % self.every_n_steps == 0:
            pictures = batch[0].mul(0.5)
            self.shown[step] = {"pictures": pictures, "mean": pictures.mean().item()}

    def on_train_epoch_end(self, trainer, pl_module):
        print(f"epoch {trainer.current_epoch}: {len(self.shown)} times shown")


def main():
    pl.seed_everything(0)
    data = TensorDataset(torch.randn(960, 3, 32, 32), torch.randint(0, 10, (960,)))
    media = LogMedia(every_n_steps=5)
    trainer = pl.Trainer(max_epochs=40, callbacks=[media], logger=False, checkpoint_callback=False,
                         progress_bar_refresh_rate=0, weights_summary=None)
    trainer.fit(Net(), DataLoader(data, batch_size=48, shuffle=True))


main()
