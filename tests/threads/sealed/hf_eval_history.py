"""Host memory runs out during long runs with evaluation after each epoch.
huggingface/transformers#8143
Token classification with a tiny random BERT and the Trainer; metrics are computed after each epoch."""
import numpy as np
import torch
from datasets import Dataset
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments

torch.set_num_threads(1)
LABELS, LENGTH = 40, 32
rng = np.random.default_rng(5)


def examples(rows):
    return Dataset.from_dict({
        "input_ids": rng.integers(1, 400, (rows, LENGTH)).tolist(),
        "labels": rng.integers(0, LABELS, (rows, LENGTH)).tolist(),
    })


class Metrics:
    def __init__(self):
        self.runs = []

    def __call__(self, prediction):
        best = prediction.predictions.argmax(-1)
        accuracy = float((best == prediction.label_ids).mean())
        self.runs.append({"accuracy": accuracy, "prediction": prediction})
        return {"accuracy": accuracy}


def main():
    config = BertConfig(vocab_size=400, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
                        max_position_embeddings=LENGTH, num_labels=LABELS)
    arguments = TrainingArguments("out", num_train_epochs=20, per_device_train_batch_size=32, per_device_eval_batch_size=64,
                                  evaluation_strategy="epoch", logging_strategy="epoch", save_strategy="no", report_to=[],
                                  disable_tqdm=True, no_cuda=True)
    trainer = Trainer(BertForTokenClassification(config), arguments, train_dataset=examples(160), eval_dataset=examples(512),
                      compute_metrics=Metrics())
    trainer.train()


if __name__ == "__main__":
    main()
