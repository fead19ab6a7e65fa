"""The loss as an operator: what looks at programs instead of running them."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from negscale.torch import NegScaleLoss  # noqa: E402

ROUTES = ["native", "torch"]


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("b", [0, 1, 24])
@pytest.mark.parametrize("confident", [True, False])
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_opcheck(batch, dtype, b, confident):
    features, labels, confidence = batch(b, dtype=dtype)
    loss = NegScaleLoss("cifar10")
    data = (features.requires_grad_(), labels, confidence if confident else None, loss._kernel.key)
    assert set(torch.library.opcheck(torch.ops.negscale.loss.default, data).values()) == {"SUCCESS"}


def test_the_operator_refuses_second_derivatives_unknown_losses_and_other_devices(batch):
    features, labels, _ = batch()
    loss = NegScaleLoss("cifar10")
    leaf = features.clone().requires_grad_()
    value, _, _ = torch.ops.negscale.loss(leaf, labels, None, loss._kernel.key)
    (gradient,) = torch.autograd.grad(value, leaf, create_graph=True)
    with pytest.raises(RuntimeError, match='first derivatives only.*route="torch"'):
        gradient.sum().backward()
    with pytest.raises(RuntimeError, match="no NegScaleLoss with the key none"):
        torch.ops.negscale.loss(features, labels, None, "none")


def step_of(loss, layer):
    def step(features, labels, confidence):
        return loss(layer(features), labels, confidence) * 2

    return step


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_compiled_step_is_the_eager_one(batch, agree, route, backend):
    features, labels, confidence = batch(40, 12, dtype=torch.float32)
    loss, layer = NegScaleLoss("cifar10", route=route), nn.Linear(12, 9)
    step = step_of(loss, layer)
    compiled = torch.compile(step, fullgraph=True, backend=backend)

    def run(function):
        layer.weight.grad = None
        value = function(features, labels, confidence)
        value.backward()
        return value.item(), layer.weight.grad

    eager, terms = run(step), loss.terms
    loss._latest = None
    agree(run(compiled), eager, 1e-5)
    got, wanted = (list(terms.to_dict().values()) for terms in (loss.terms, terms))
    assert got[:4] == pytest.approx(wanted[:4], rel=1e-5) and got[4:] == wanted[4:]
    # Another batch, whose value is not that of the first; the terms are those of the latest.
    features, labels = features.flip(1) * 0.3, labels.roll(1)
    agree(run(compiled), run(step), 1e-5)
    assert 2 * loss.terms.value == pytest.approx(step(features, labels, confidence).item(), rel=1e-5)


@pytest.mark.parametrize("route", ROUTES)
def test_batches_of_other_sizes_take_the_same_program(batch, with_gradient, agree, route):
    loss = NegScaleLoss("cifar10", route=route)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=True)
    for b in (24, 31, 17, 40):
        data = batch(b)
        agree(with_gradient(compiled, *data), with_gradient(loss, *data), 1e-9)


@pytest.mark.parametrize("route", ROUTES)
def test_autocast_is_compiled_too(batch, route):
    features, labels, confidence = batch(40, 12, dtype=torch.float32)
    loss, layer = NegScaleLoss("cifar10", route=route), nn.Linear(12, 9)

    def step(features, labels, confidence):
        with torch.autocast("cpu", torch.bfloat16):
            return loss(layer(features), labels, confidence)

    value = torch.compile(step, fullgraph=True, backend="aot_eager")(features, labels, confidence)
    assert value.dtype == torch.float32 and value.item() == pytest.approx(step(features, labels, confidence).item(), rel=1e-2)
    value.backward()
    assert layer.weight.grad.abs().max() > 0


def test_a_compiled_step_refuses_bad_input_on_the_cpu(batch):
    features, labels, confidence = batch()
    compiled = torch.compile(NegScaleLoss("cifar10"), fullgraph=True, backend="aot_eager")
    compiled(features, labels, confidence)
    features[3] = float("nan")
    with pytest.raises(ValueError, match="feature of sample 3"):
        compiled(features, labels, confidence)


@pytest.mark.parametrize("route", ROUTES)
def test_it_can_be_exported(batch, route):
    data = batch(16)
    loss = NegScaleLoss("cifar10", route=route)
    program = torch.export.export(loss, data, strict=False).module()
    other = batch(16, seed=5)
    assert program(*other).item() == pytest.approx(loss(*other).item(), rel=1e-9)


def test_a_traced_program_is_not_tied_to_the_batch_it_was_traced_with(batch):
    from torch.fx.experimental.proxy_tensor import make_fx

    loss = NegScaleLoss("cifar10")
    program = make_fx(loss)(*batch(16))
    other = batch(16, seed=5)
    assert program(*other).item() == loss(*other).item() != loss(*batch(16)).item()
