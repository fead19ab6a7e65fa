"""The examples for trainers run and learn, and the calls of pytorch-metric-learning arrive."""

import importlib.util
import math
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

from negscale.torch import NegScaleLoss  # noqa: E402

FOLDER = pathlib.Path(__file__).parents[3] / "examples" / "python"


def example(name):
    path = FOLDER / f"{name}.py"
    if not path.is_file():
        pytest.skip(f"{path} is not here: the tests were moved away from the repository")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "needs", "chance", "epochs"),
    [("lightning_noisy_labels", ["lightning"], 0.1, 3), ("hf_trainer_noisy_labels", ["transformers", "accelerate"], 1 / 7, 3)],
)
def test_an_example_trains_with_the_loss(name, needs, chance, epochs, monkeypatch, capsys):
    for package in needs:
        pytest.importorskip(package, exc_type=ImportError)
    values = []
    forward = NegScaleLoss.forward

    def watched(self, *args, **keywords):
        value = forward(self, *args, **keywords)
        values.append((value.item(), value.requires_grad))
        return value

    monkeypatch.setattr(NegScaleLoss, "forward", watched)
    monkeypatch.setattr(sys, "argv", [name])
    # Well above what guessing gives, and above what the noise alone would leave of it.
    assert example(name).main(["--epochs", str(epochs)]) > 2 * chance
    assert len(values) > 20 and all(math.isfinite(value) and value > 0 and graph for value, graph in values)
    assert "snop_state='active', dcsa_state='active'" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_it_is_a_loss_among_others_for_pytorch_metric_learning():
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    features, labels = torch.randn(24, 8, requires_grad=True), torch.arange(24) % 10
    own, other = NegScaleLoss("cifar10"), losses.ContrastiveLoss()
    both = losses.MultipleLosses([own, other], weights=[0.5, 1.0])
    assert both(features, labels).item() == pytest.approx(0.5 * own(features, labels).item() + other(features, labels).item())
