"""Making sentence vectors with a BERT model eats more memory with each sentence.
huggingface/transformers#197
Runs a tiny random BERT over batches of text ids and collects the first token's vector of each sentence."""
import torch
from transformers import BertConfig, BertModel

torch.set_num_threads(1)
STEPS, BATCH, LENGTH, HIDDEN = 160, 8, 64, 128


class Embedder:
    def __init__(self):
        torch.manual_seed(3)
        self.model = BertModel(BertConfig(vocab_size=1000, hidden_size=HIDDEN, num_hidden_layers=1, num_attention_heads=4,
                                          intermediate_size=64, max_position_embeddings=LENGTH)).eval()
        self.vectors = []

    def encode(self, ids):
        with torch.no_grad():
            out = self.model(input_ids=ids)
        first = out.last_hidden_state[:, 0]
        self.vectors.append(first)
        return first.shape[0]


def main():
    embedder = Embedder()
    done = 0
    for step in range(STEPS):
        ids = torch.randint(0, 1000, (BATCH, LENGTH))
        done += embedder.encode(ids)
        if step % 20 == 19:
            print(f"step {step + 1}: {done} sentences")
    print(torch.cat(embedder.vectors).shape)


if __name__ == "__main__":
    main()
