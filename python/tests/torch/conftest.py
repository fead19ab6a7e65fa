"""The printed formulas as an oracle, and batches to try."""

import pytest

torch = pytest.importorskip("torch")

import negscale  # noqa: E402

# Tensors here are small: more threads would only wait for each other. The compiled kernel has threads of its own.
torch.set_num_threads(1)


def literal(features, labels, confidence, distances, eta_min=3, eta_max=5, reduction="mean", self_anchor=True):
    """(global, local, dcsa) over lists of pairs, with the P x P matrix of the directions; by autograd alone."""
    x = features / features.norm(dim=1, keepdim=True)
    gram = x @ x.T
    pairs = [(i, j) for i in range(len(labels)) for j in range(i + 1, len(labels))]
    far = {(i, j): int(distances[labels[i], labels[j]]) for i, j in pairs}
    unrelated = [pair for pair in pairs if far[pair] > eta_max]
    related = [pair for pair in pairs if 0 < far[pair] <= eta_min]
    p, q, mean = len(unrelated), len(related), reduction == "mean"
    spread = local = dcsa = features.sum() * 0
    if p:
        v = torch.stack([(x[i] - x[j]) / (x[i] - x[j]).norm() for i, j in unrelated])
        if mean:
            spread = ((v @ v.T - torch.eye(p, dtype=v.dtype)) ** 2).sum() / p**2
        else:
            spread = ((v.T @ v - torch.eye(v.shape[1], dtype=v.dtype)) ** 2).sum()
        local = sum((1 - confidence[i]) * (1 - confidence[j]) * gram[i, j] ** 2 for i, j in unrelated) / (p if mean else 1)
    if p and q:
        fixed = gram.detach()
        both = unrelated + [(j, i) for i, j in unrelated]
        for i, j in related:
            sums = [fixed[i, m] + fixed[j, n] for m, n in both if self_anchor or (m != i and n != j)]
            if sums:
                dcsa = dcsa + torch.relu(gram[i, j] - (1 - max(sums) / 2)) ** 2
        dcsa = dcsa / (q if mean else 1)
    return spread, local, dcsa


def batch(b=24, d=8, tree="cifar10", seed=0, dtype=torch.float64):
    """Features with a common part, so that all terms have something to say; labels; confidences."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(b, d, dtype=dtype, generator=generator) + 0.8
    labels = torch.randint(0, len(negscale.Taxonomy(tree)), (b,), generator=generator)
    return features, labels, torch.rand(b, dtype=dtype, generator=generator)


def with_gradient(loss, features, *others, **keywords):
    """Value and gradient of the features."""
    features = features.detach().requires_grad_()
    value = loss(features, *others, **keywords)
    value.backward()
    return value.item(), features.grad


def agree(one, other, tolerance, smallest=1e-3):
    """Two pairs of value and gradient are the same up to rounding; gradients relative to their largest entry, but `smallest`."""
    (a, grad_a), (b, grad_b) = one, other
    assert a == pytest.approx(b, rel=tolerance, abs=tolerance)
    assert grad_a.shape == grad_b.shape and grad_a.dtype == grad_b.dtype
    if len(grad_b):
        assert (grad_a - grad_b).abs().max().item() <= tolerance * max(smallest, grad_b.abs().max().item())


@pytest.fixture(name="literal", scope="session")
def _literal():
    return literal


@pytest.fixture(name="batch", scope="session")
def _batch():
    return batch


@pytest.fixture(name="with_gradient", scope="session")
def _with_gradient():
    return with_gradient


@pytest.fixture(name="agree", scope="session")
def _agree():
    return agree
