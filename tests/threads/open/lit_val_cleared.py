"""Validation results were collected and never thrown away; emptying the list after each epoch was the answer.
Lightning-AI/pytorch-lightning#8583
Fits an autoencoder with Lightning and reports the reconstruction error of each validation epoch."""
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)


class Coder(pl.LightningModule):
    def __init__(self, width=512):
        super().__init__()
        self.down = nn.Linear(width, 32)
        self.up = nn.Linear(32, width)
        self.outputs = []

    def forward(self, x):
        return self.up(torch.tanh(self.down(x)))

    def training_step(self, x, batch_idx):
        return nn.functional.mse_loss(self(x), x)

    def validation_step(self, x, batch_idx):
        self.outputs.append(self(x) - x)

    def on_validation_epoch_end(self):
        error = torch.cat(self.outputs).pow(2).mean()
        self.outputs.clear()
        print("epoch", self.current_epoch, "error", round(error.item(), 4))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main():
    torch.manual_seed(4)
    train, val = torch.randn(2000, 512), torch.randn(3000, 512)
    trainer = pl.Trainer(max_epochs=25, logger=False, checkpoint_callback=False, progress_bar_refresh_rate=0,
                         weights_summary=None, num_sanity_val_steps=0)
    trainer.fit(Coder(), DataLoader(train, batch_size=100), DataLoader(val, batch_size=300))


if __name__ == "__main__":
    main()
