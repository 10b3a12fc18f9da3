"""All predictions of the evaluation are gathered in memory before the metric is computed; only the metric should stay.
huggingface/transformers#10722
Fine-tunes a tiny random BERT as a tagger and keeps one number per evaluation."""
import torch
from datasets import Dataset
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments

torch.set_num_threads(1)
torch.manual_seed(0)
LENGTH, LABELS = 48, 30


def make(rows):
    ids = torch.randint(1, 300, (rows, LENGTH))
    return Dataset.from_dict({"input_ids": ids.tolist(), "labels": (ids % LABELS).tolist()}).with_format("torch")


scores = []


def compute_metrics(result):
    predicted = result.predictions.argmax(-1)
    score = (predicted == result.label_ids).mean().item()
    scores.append(score)
    return {"accuracy": score}


config = BertConfig(vocab_size=300, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48,
                    max_position_embeddings=LENGTH, num_labels=LABELS)
trainer = Trainer(
    model=BertForTokenClassification(config),
    args=TrainingArguments("tagger", num_train_epochs=18, per_device_train_batch_size=16, per_device_eval_batch_size=32,
                           evaluation_strategy="epoch", save_strategy="no", logging_strategy="no", report_to=[],
                           disable_tqdm=True, no_cuda=True, log_level="error"),
    train_dataset=make(120),
    eval_dataset=make(480),
    compute_metrics=compute_metrics,
)
trainer.train()
assert len(scores) == 18
