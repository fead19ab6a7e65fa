"""The plug-in loss in the Trainer of Hugging Face, without a change of model or Trainer: a small BERT on synthetic sentences.

    pip install "negscale[torch]" "transformers[torch]"
    python hf_trainer_noisy_labels.py [--epochs 4]

Prints the accuracy on clean sentences. This shows how to add the loss, not what it gains.
"""

import argparse
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import negscale
from negscale.torch import attach

TREE = negscale.Taxonomy.from_indented("text\n  sport: football, tennis, cycling\n  money: banks, markets\n  science: physics, biology\n")


class Sentences(torch.utils.data.Dataset):
    """Twelve words each, some of which belong to the class; `noise` of the labels are drawn again."""

    def __init__(self, count: int, noise: float, seed: int):
        generator = torch.Generator().manual_seed(seed)
        classes = len(TREE)
        labels = torch.randint(0, classes, (count,), generator=generator)
        words = torch.randint(80, 200, (count, 12), generator=generator)
        own = 10 * labels[:, None] + torch.randint(0, 10, (count, 12), generator=generator)
        self.words = torch.where(torch.rand(count, 12, generator=generator) < 0.5, own, words)
        again = torch.rand(count, generator=generator) < noise
        self.labels = torch.where(again, torch.randint(0, classes, (count,), generator=generator), labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.labels[index]}


def main(arguments=None) -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    shape = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    model = BertForSequenceClassification(BertConfig(vocab_size=200, num_labels=len(TREE), **shape))
    # All there is to it: the Trainer hands the labels to the model, whose loss the hook adds to. In this shallow tree
    # classes of different groups are 4 apart, so that more than 3 is unrelated.
    handle = attach(model, "bert.pooler", TREE, eta_max=3)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model,
            TrainingArguments(
                folder, num_train_epochs=options.epochs, per_device_train_batch_size=64,
                learning_rate=2e-3, report_to=[], save_strategy="no", logging_steps=20, use_cpu=True, disable_tqdm=True,
                dataloader_pin_memory=False,
            ),
            train_dataset=Sentences(1500, 0.3, 1),
            eval_dataset=Sentences(500, 0.0, 2),
            compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
        )
        trainer.train()
        accuracy = trainer.evaluate()["eval_accuracy"]
    print(f"accuracy on clean sentences: {100 * accuracy:.1f} %; last batch: {handle.terms}")
    return accuracy


if __name__ == "__main__":
    main()
