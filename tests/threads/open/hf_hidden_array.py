"""Memory of a feature extractor grows with each document that is encoded.
huggingface/transformers#24542
Encodes batches with a tiny random BERT and writes the vectors into an array of known size."""
import numpy as np
import torch
from transformers import BertConfig, BertModel

torch.set_num_threads(1)


def build(hidden, length):
    return BertModel(BertConfig(vocab_size=800, hidden_size=hidden, num_hidden_layers=1, num_attention_heads=4,
                                intermediate_size=hidden // 2, max_position_embeddings=length)).eval()


@torch.inference_mode()
def encode(model, ids, into):
    into[:] = model(input_ids=ids).last_hidden_state[:, 0].numpy()


def main(steps=120, batch=8, length=72, hidden=128):
    torch.manual_seed(8)
    model = build(hidden, length)
    table = np.zeros((steps * batch, hidden), np.float32)
    for step in range(steps):
        ids = torch.randint(0, 800, (batch, length))
        encode(model, ids, table[step * batch:(step + 1) * batch])
    print(float(table.mean()))


if __name__ == "__main__":
    main()
