"""The plug-in loss in a Lightning module: an MLP on synthetic features of which four labels in ten are wrong.

    pip install "negscale[torch]" lightning
    python lightning_noisy_labels.py [--epochs 10] [--without]

Prints the accuracy on clean data. This shows how to call the loss, not what it gains; for that see the measured results in the book.
"""

import argparse

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import negscale
from negscale.torch import NegScaleLoss


class Classifier(lightning.LightningModule):
    def __init__(self, weight: float):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
        self.head = nn.Linear(64, 10)
        # A module of the module, so that Lightning moves it to the device and checkpoints do not change.
        self.negscale = NegScaleLoss("cifar10", lam=weight, mu=weight)

    def forward(self, x):
        return self.head(self.body(x).relu())

    def training_step(self, batch, _):
        x, labels = batch
        features = self.body(x)
        logits = self.head(features.relu())
        loss = nn.functional.cross_entropy(logits, labels)
        # Features from before the last ReLU, so that they can point away from each other.
        loss = loss + self.negscale(features, labels, logits=logits)
        terms = self.negscale.terms
        self.log_dict({"loss": loss, "snop_global": terms.snop_global, "dcsa": terms.dcsa}, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        x, labels = batch
        self.log("accuracy", (self(x).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 2e-3)


def samples(count: int, noise: float, seed: int) -> TensorDataset:
    """Ten clouds whose centres follow the class tree of CIFAR-10; `noise` of the labels are drawn again."""
    distances = torch.from_numpy(negscale.Taxonomy("cifar10").distances()).double()
    # Points whose inner products fall with the distance in the tree.
    values, vectors = torch.linalg.eigh(1 - distances / distances.max())
    centres = vectors * values.clamp(min=0).sqrt()
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=generator)
    turn = torch.randn(10, 64, generator=torch.Generator().manual_seed(0))
    x = centres[labels].float() @ turn + 1.5 * torch.randn(count, 64, generator=generator)
    again = torch.rand(count, generator=generator) < noise
    return TensorDataset(x, torch.where(again, torch.randint(0, 10, (count,), generator=generator), labels))


def main(arguments=None) -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--without", action="store_true", help="train without the plug-in")
    options = parser.parse_args(arguments)
    lightning.seed_everything(0)
    model = Classifier(0.0 if options.without else 1.0)
    trainer = lightning.Trainer(
        max_epochs=options.epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_model_summary=False
    )
    trainer.fit(
        model,
        DataLoader(samples(2000, 0.4, 1), batch_size=128, shuffle=True),
        DataLoader(samples(2000, 0.0, 2), batch_size=1000),
    )
    accuracy = trainer.callback_metrics["accuracy"].item()
    print(f"accuracy on clean data: {100 * accuracy:.1f} %; last batch: {model.negscale.terms}")
    return accuracy


if __name__ == "__main__":
    main()
