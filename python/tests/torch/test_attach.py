"""`attach`: the loss on a layer, whose gradient must be that of the loss added by hand."""

import copy
import gc
import pickle
import weakref

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

import negscale  # noqa: E402
from negscale.torch import NegScaleLoss, attach  # noqa: E402


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 10))


def data(seed=1, b=30):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(b, 6, generator=generator), torch.randint(0, 10, (b,), generator=generator)


def gradients(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def by_hand(model, batches, weight=1.0, layers=2, **settings):
    """Gradients of cross-entropy plus the loss on the output of the first layers."""
    model = copy.deepcopy(model)
    loss = NegScaleLoss("cifar10", **settings)
    for x, y in batches:
        features = model[:layers](x)
        logits = model[layers:](features)
        (weight * (cross_entropy(logits, y) + loss(features, y, logits=logits))).backward()
    return gradients(model)


def same(a, b):
    return torch.allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("layer", ["1", "the module"])
@pytest.mark.parametrize("before", [True, False])
def test_labels_add_the_gradient_to_an_untouched_loss(layer, before):
    model, (x, y) = network(), data()
    wanted = by_hand(model, [(x, y)], mu=2.0)
    handle = attach(model, model[1] if layer == "the module" else layer, "cifar10", mu=2.0)
    assert handle.terms is None
    if before:
        handle.labels(y)
    logits = model(x)
    if not before:
        handle.labels(y)
    cross_entropy(logits, y).backward()
    assert same(gradients(model), wanted) and handle.terms.snop_local > 0
    assert not same(wanted, by_hand(network(), [(x, y)], lam=0.0, mu=0.0)), "the loss has no effect to be seen"


def test_a_wrapped_criterion_needs_nothing_else():
    model, (x, y) = network(), data()
    wanted = by_hand(model, [(x, y)])
    handle = attach(model, "1", "cifar10")
    criterion = handle.wrap(nn.CrossEntropyLoss())
    value = criterion(model(x), y)
    assert value.item() == pytest.approx(cross_entropy(model(x), y).item() + handle.terms.value)
    value.backward()
    assert same(gradients(model), wanted)
    model.eval()
    assert criterion(model(x), y).item() == cross_entropy(model(x), y).item()
    model.train()
    with torch.no_grad():
        assert criterion(model(x), y).item() == cross_entropy(model(x), y).item()


@pytest.mark.parametrize("way", ["labels", "wrap"])
def test_gradients_are_accumulated_with_the_weight_of_the_host(way):
    model, batches = network(), [data(seed) for seed in range(4)]
    wanted = by_hand(model, batches, weight=0.25)
    handle = attach(model, "1", "cifar10")
    criterion = handle.wrap(cross_entropy) if way == "wrap" else cross_entropy
    for x, y in batches:
        if way == "labels":
            handle.labels(y, weight=0.25)
        (criterion(model(x), y) / 4).backward()
    assert same(gradients(model), wanted)


def test_passes_before_one_backward_pass_keep_their_own_labels():
    model, batches = network(), [data(seed) for seed in range(3)]
    wanted = by_hand(model, batches)
    handle = attach(model, "1", "cifar10")
    total = 0
    for x, y in batches:
        handle.labels(y)
        total = total + cross_entropy(model(x), y)
    total.backward()
    assert same(gradients(model), wanted)


def test_evaluation_is_left_alone_and_forgotten_labels_are_an_error():
    model, (x, y) = network(), data()
    handle = attach(model, "1", "cifar10")
    plain = network()
    model.eval()
    cross_entropy(model(x), y).backward()
    cross_entropy(plain(x), y).backward()
    assert torch.equal(gradients(model), gradients(plain)) and handle.terms is None
    model.train()
    with torch.no_grad():
        model(x)
    for _ in range(2):
        handle.labels(y)
        cross_entropy(model(x), y).backward()
        # Labels are good for one backward pass.
        with pytest.raises(negscale.InputError, match="no labels for this batch"):
            cross_entropy(model(x), y).backward()
    handle.labels(y[1:])
    with pytest.raises(negscale.InputError, match="labels: expected one for each of 30 samples"):
        cross_entropy(model(x), y).backward()


def test_a_graph_can_be_gone_through_twice():
    model, (x, y) = network(), data()
    wanted = by_hand(model, [(x, y)])
    handle = attach(model, "1", "cifar10")
    handle.labels(y)
    loss = cross_entropy(model(x), y)
    loss.backward(retain_graph=True)
    loss.backward()
    assert same(gradients(model), 2 * wanted)


def test_a_removed_handle_leaves_no_trace():
    model, (x, y) = network(), data()
    with attach(model, "1", "cifar10") as handle:
        handle.labels(y)
        cross_entropy(model(x), y).backward()
    assert not any(module._forward_hooks for module in model.modules())
    model.zero_grad()
    cross_entropy(model(x), y).backward()
    plain = network()
    cross_entropy(plain(x), y).backward()
    assert torch.equal(gradients(model), gradients(plain))


@pytest.mark.parametrize("way", ["labels", "wrap"])
def test_nothing_is_kept_of_batches_that_are_done(way):
    model = network()
    handle = attach(model, "1", "cifar10")
    criterion = handle.wrap(cross_entropy)
    seen = []
    model[1].register_forward_hook(lambda *parts: seen.append(weakref.ref(parts[2])))
    gc.disable()
    try:
        for seed in range(3):
            x, y = data(seed)
            handle.labels(y)
            (criterion if way == "wrap" else cross_entropy)(model(x), y).backward()
        assert [ref() is None for ref in seen] == [True, True, True]
    finally:
        gc.enable()


def test_a_mixed_precision_host_gets_its_gradient_in_its_own_precision():
    model, (x, y) = network(), data()
    handle = attach(model, "1", "cifar10")
    handle.labels(y)
    with torch.autocast("cpu", torch.bfloat16):
        loss = cross_entropy(model(x), y)
    loss.backward()
    got, exact = gradients(model), by_hand(network(), [(x, y)])
    assert got.dtype == torch.float32 and torch.allclose(got, exact, atol=0.02 * exact.abs().max().item())


def test_feature_maps_are_averaged_and_other_shapes_need_a_word():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 10))
    x, y = torch.randn(30, 1, 4, 4), data()[1]
    reference = copy.deepcopy(model)
    maps = reference[0](x)
    logits = reference[1:](maps)
    (cross_entropy(logits, y) + NegScaleLoss("cifar10")(maps.mean((2, 3)), y, logits=logits)).backward()
    for layer in ("0", "1"):
        other = copy.deepcopy(model)
        handle = attach(other, layer, "cifar10")
        handle.labels(y)
        cross_entropy(other(x), y).backward()
        assert same(gradients(other), gradients(reference))
    sequence = nn.Sequential(nn.Linear(6, 8), nn.Flatten(), nn.Linear(24, 10))
    handle = attach(sequence, "0", "cifar10")
    with pytest.raises(negscale.InputError, match=r"shape \(30, 3, 8\)"):
        sequence(torch.randn(30, 3, 6))
    handle.remove()
    handle = attach(sequence, "0", "cifar10", features=lambda output: output.mean(1))
    handle.labels(y)
    cross_entropy(sequence(torch.randn(30, 3, 6)), y).backward()
    assert handle.terms.snop_state == "active"


def test_a_layer_that_is_changed_in_place_is_refused_unless_a_copy_is_kept():
    x, y = data()
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 10))
    for wrapped in (True, False):
        handle = attach(model, "0", "cifar10")
        criterion = handle.wrap(cross_entropy) if wrapped else cross_entropy
        handle.labels(y)
        with pytest.raises(negscale.InputError, match="inplace=False"):
            criterion(model(x), y).backward()
        handle.remove()
        model.zero_grad()
        wanted = by_hand(nn.Sequential(model[0], nn.ReLU(), model[2]), [(x, y)], layers=1)
        with attach(model, "0", "cifar10", features=lambda output: output.clone()) as handle:
            criterion = handle.wrap(cross_entropy) if wrapped else cross_entropy
            handle.labels(y)
            criterion(model(x), y).backward()
        assert same(gradients(model), wanted)
        model.zero_grad()


class OwnLoss(nn.Module):
    """A model that computes its loss itself when it is given labels."""

    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, x, labels=None):
        logits = self.net(x)
        return {"loss": None if labels is None else cross_entropy(logits, labels), "logits": logits}


def test_a_model_with_a_loss_of_its_own_needs_nothing_at_all():
    model, (x, y) = OwnLoss(), data()
    wanted = by_hand(model.net, [(x, y)])
    handle = attach(model, "net.1", "cifar10")
    plain = cross_entropy(model.net(x), y).item()
    output = model(x, labels=y)
    assert output["loss"].item() == pytest.approx(plain + handle.terms.value)
    output["loss"].backward()
    assert same(gradients(model), wanted)
    model.eval()
    assert model(x, labels=y)["loss"].item() == pytest.approx(plain)
    assert model(x)["loss"] is None


def test_checkpointed_activations_are_seen_once():
    from torch.utils.checkpoint import checkpoint

    model, (x, y) = network(), data()
    wanted = by_hand(model, [(x, y)])
    handle = attach(model, "1", "cifar10")
    handle.labels(y)
    hidden = checkpoint(model[:2], x, use_reentrant=False)
    # The model's own pass is not gone through here, so that there are no logits.
    cross_entropy(model[2](hidden), y).backward()
    assert same(gradients(model), by_hand_without_logits(x, y)) and not same(wanted, torch.zeros_like(wanted))


def by_hand_without_logits(x, y):
    model = network()
    features = model[:2](x)
    (cross_entropy(model[2](features), y) + NegScaleLoss("cifar10")(features, y)).backward()
    return gradients(model)


def test_copies_and_pickles_of_the_model_work():
    model, (x, y) = network(), data()
    handle = attach(model, "1", "cifar10")
    handle.labels(y)
    model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.eval()
        assert torch.equal(other(x), network().eval()(x))
    assert model.state_dict().keys() == network().state_dict().keys()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_compiled_model_with_a_wrapped_criterion_is_the_eager_one():
    torch.compiler.reset()
    model, (x, y) = network(), data()
    wanted = by_hand(model, [(x, y)])
    criterion = attach(model, "1", "cifar10").wrap(cross_entropy)
    criterion(torch.compile(model, backend="aot_eager")(x), y).backward()
    assert same(gradients(model), wanted)


def test_wrong_layers_and_settings_are_refused():
    model = network()
    with pytest.raises(negscale.InputError, match="no layer `3`.*named_modules"):
        attach(model, "3", "cifar10")
    with pytest.raises(negscale.InputError, match="not part of the model"):
        attach(model, nn.Linear(1, 1), "cifar10")
    with pytest.raises(negscale.InputError, match="mu: a NegScaleLoss has its settings"):
        attach(model, "1", NegScaleLoss("cifar10"), mu=2.0)
    loss = NegScaleLoss("cifar10")
    assert attach(model, "1", loss).loss is loss
