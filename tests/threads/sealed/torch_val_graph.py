"""After every epoch a bit more memory is used, until nothing is left; a missing item() was the reason.
pytorch/pytorch#64586
Trains a perceptron and notes the validation loss of each epoch."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
train_x, train_y = torch.randn(512, 64), torch.randint(0, 10, (512,))
val_x, val_y = torch.randn(1024, 64), torch.randint(0, 10, (1024,))

history = {"train": [], "val": []}
for epoch in range(40):
    model.train()
    running = 0.0
    for start in range(0, 512, 64):
        optimizer.zero_grad()
        loss = criterion(model(train_x[start:start + 64]), train_y[start:start + 64])
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    val_loss = criterion(model(val_x), val_y)
    history["train"].append(running / 8)
    history["val"].append(val_loss)
    print(f"epoch {epoch}: train {running / 8:.4f} val {val_loss:.4f}")
