"""Writes minilm.json beside this file: sentences, and what their embeddings are in Python.

    python minilm.py FOLDER        (needs: pip install torch transformers)

FOLDER holds the weights (`negscale data get minilm`). The embedding is that of Sentence Transformers: mean of the last hidden states over at most 256
tokens, with length 1, in f32. Of its 384 numbers x, sixteen sums are kept: sum k is over x[i] with the sign of bit 31 of (k + 1)(i + 1) 2654435761.
"""
import json
import pathlib
import sys

import torch
from transformers import AutoModel, AutoTokenizer

TEXTS = [
    "",
    "!",
    "The cat sat on the mat.",
    "A quick brown fox jumps over the lazy dog, and nobody minds.",
    "I bought this two weeks ago and it already broke; the seller does not answer my messages.",
    "Ünïcödé naïve café, 東京 and 🙂: \u0000 \ufffd \u200d e\u0301",
    "[CLS] [MASK] tokens in a text are what they say [SEP]",
    "antidisestablishmentarianism" * 5,
    "0x7f 3.14159 1e-3 foo_bar() {return;} https://example.org/?q=1&r=2",
    "label noise " * 200,
    "one\ttwo\r\nthree\u3000four\u00a0five " * 3,
]


def main():
    tokenizer, network = AutoTokenizer.from_pretrained(sys.argv[1]), AutoModel.from_pretrained(sys.argv[1]).eval()
    signs = torch.tensor([[1 - 2 * ((k + 1) * (i + 1) * 2654435761 >> 31 & 1) for i in range(384)] for k in range(16)], dtype=torch.float64)
    rows = []
    for text in TEXTS:
        batch = tokenizer([text], truncation=True, max_length=256, padding=False, return_tensors="pt")
        with torch.inference_mode():
            mean = network(**batch).last_hidden_state[0].mean(0)
        sums = signs @ torch.nn.functional.normalize(mean, dim=0).double()
        rows.append({"text": text, "tokens": batch["input_ids"].shape[1], "sums": [round(float(x), 7) for x in sums]})
    lines = ",\n".join(json.dumps(row) for row in rows)
    (pathlib.Path(__file__).parent / "minilm.json").write_text(f"[\n{lines}\n]\n")


main()
