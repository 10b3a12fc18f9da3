"""Validation makes host memory climb epoch after epoch.
Lightning-AI/pytorch-lightning#8453
Fits a small classifier with Lightning and looks at the validation logits at the end of every epoch."""
import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
CLASSES = 256


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, CLASSES))
        self.val_logits = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        self.val_logits.append(logits)

    def on_validation_epoch_end(self):
        spread = torch.cat(self.val_logits[-8:]).std()
        print(f"epoch {self.current_epoch}: spread {spread:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


def split(rows):
    return TensorDataset(torch.randn(rows, 64), torch.randint(0, CLASSES, (rows,)))


if __name__ == "__main__":
    pl.seed_everything(1)
    train = DataLoader(split(800), batch_size=50, shuffle=True)
    val = DataLoader(split(2048), batch_size=256)
    trainer = pl.Trainer(max_epochs=20, logger=False, checkpoint_callback=False, progress_bar_refresh_rate=0,
                         weights_summary=None, num_sanity_val_steps=0)
    trainer.fit(Classifier(), train, val)
