"""`NegScaleLoss` by both routes against the printed formulas, what it takes, and what it refuses."""

import copy
import io
import multiprocessing
import pickle

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402

import negscale  # noqa: E402
from negscale.torch import NegScaleLoss  # noqa: E402

ROUTES = ["native", "torch"]
FORMS = [
    {},
    {"reduction": "sum"},
    {"lam": 0.3, "mu": 2.0, "eta_min": 2, "eta_max": 6},
    {"global_weight": 0.5, "local_weight": 3.0},
    {"snop": False},
    {"dcsa": False},
    {"similarity": "half"},
    {"local_shape": "one-sided"},
    {"similarity": "half", "local_shape": "one-sided"},
    {"local_divisor": "entries"},
    {"self_anchor": False},
    {"delta_gradient": True},
    {"delta_gradient": True, "self_anchor": False},
    {"delta_quantile": 0.6},
    {"delta_quantile": 0.6, "self_anchor": False, "delta_gradient": True},
    {"rectify": True},
]


def both(batch, with_gradient, dtype, form, tree="cifar10", **size):
    features, labels, confidence = batch(tree=tree, dtype=dtype, **size)
    losses = [NegScaleLoss(tree, route=route, **form) for route in ROUTES]
    return [(loss, with_gradient(loss, features, labels, confidence)) for loss in losses]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("self_anchor", [True, False])
@pytest.mark.parametrize(("tree", "b", "d"), [("cifar10", 24, 8), ("cifar10", 12, 40), ("cifar100", 30, 5), ("webvision50", 30, 16)])
def test_value_terms_and_gradient_are_those_of_the_printed_formulas(
    literal, batch, with_gradient, route, reduction, self_anchor, tree, b, d
):
    features, labels, confidence = batch(b, d, tree)
    loss = NegScaleLoss(tree, 0.7, 1.3, route=route, reduction=reduction, self_anchor=self_anchor)
    value, gradient = with_gradient(loss, features, labels, confidence)
    leaf = features.clone().requires_grad_()
    distances = negscale.Taxonomy(tree).distances()
    terms = literal(leaf, labels, confidence, distances, reduction=reduction, self_anchor=self_anchor)
    wanted = 0.7 * (terms[0] + terms[1]) + 1.3 * terms[2]
    wanted.backward()
    assert value == pytest.approx(wanted.item(), rel=1e-11)
    got = loss.terms
    assert (got.value, got.snop_global, got.snop_local, got.dcsa) == pytest.approx((value, *(t.item() for t in terms)), rel=1e-11)
    assert (gradient - leaf.grad).abs().max() < 1e-11 * leaf.grad.abs().max()
    if tree == "cifar10":
        assert got.snop_global > 0 < got.snop_local and got.dcsa > 0, "the batch leaves a term out"


@settings(deadline=None, max_examples=80)
@given(
    b=st.integers(0, 70), d=st.integers(1, 90), seed=st.integers(0, 99), single=st.booleans(), form=st.sampled_from(FORMS),
    tree=st.sampled_from(["cifar10", "cifar100", "animal10n"]), offset=st.sampled_from([0.0, 3.0]), zeros=st.integers(0, 2),
)
def test_both_routes_agree_for_any_shape_and_setting(batch, with_gradient, agree, b, d, seed, single, form, tree, offset, zeros):
    features, labels, confidence = batch(b, d, tree, seed, torch.float32 if single else torch.float64)
    features = features + offset
    features[:zeros] = 0
    losses = [NegScaleLoss(tree, route=route, **form) for route in ROUTES]
    native, by_torch = (with_gradient(loss, features, labels, confidence) for loss in losses)
    # Features that point nearly the same way leave float32 few digits of their differences.
    if not single:
        agree(native, by_torch, 1e-9 if d > 4 else 1e-6)
    elif d > 4:
        agree(native, by_torch, 2e-4 if offset else 1e-5, smallest=1)
    one, other = (loss.terms.to_dict() for loss in losses)
    counts = ["unrelated_pairs", "related_pairs", "zero_features", "snop_state", "dcsa_state"]
    assert [one[name] for name in counts] == [other[name] for name in counts]
    if not single:
        assert one["identical_pairs"] == other["identical_pairs"] and one["capped_pairs"] == other["capped_pairs"]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("width", [6, 64])
def test_both_routes_agree_in_float32(batch, with_gradient, agree, form, width):
    (_, native), (_, by_torch) = both(batch, with_gradient, torch.float32, form, b=96, d=width)
    agree(native, by_torch, 1e-5)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("form", [{"mu": 30.0}, {"reduction": "sum"}, {"delta_gradient": True, "mu": 30.0}, {"similarity": "half", "mu": 30.0}], ids=str)
def test_gradcheck(batch, route, form):
    features, labels, confidence = batch(14, 5)
    loss = NegScaleLoss("cifar10", route=route, **form)
    # The cap is a constant of the gradient unless it is asked for, but it moves with the features that differences are taken of.
    if not form.get("delta_gradient"):
        loss = NegScaleLoss("cifar10", route=route, **{**form, "dcsa": False})
    assert torch.autograd.gradcheck(lambda f: loss(f, labels, confidence), features.clone().requires_grad_(), atol=1e-6)
    assert loss.terms.snop_local > 0 and (loss.terms.dcsa > 0 or not form.get("delta_gradient"))


@pytest.mark.parametrize("route", ROUTES)
def test_related_pairs_are_capped_along_the_gradient(batch, route):
    """DCSA with its cap held fixed, by central differences of the printed formula."""
    features, labels, confidence = batch(20, 5)
    loss = NegScaleLoss("cifar10", route=route, snop=False)
    leaf = features.clone().requires_grad_()
    loss(leaf, labels, confidence).backward()
    distances = torch.from_numpy(negscale.Taxonomy("cifar10").distances())[labels][:, labels]
    unit = features / features.norm(dim=1, keepdim=True)
    gram = unit @ unit.T
    p, q = (distances > 5).nonzero(as_tuple=True)
    delta = (gram[:, p].unsqueeze(1) + gram[:, q]).max(2).values / 2
    related = ((distances > 0) & (distances <= 3)).triu(1)

    def term(f):
        x = f / f.norm(dim=1, keepdim=True)
        return ((x @ x.T - (1 - delta)).relu()[related] ** 2).mean()

    for direction in torch.randn(3, *features.shape, dtype=features.dtype, generator=torch.Generator().manual_seed(1)):
        slope = (term(features + 1e-6 * direction) - term(features - 1e-6 * direction)) / 2e-6
        assert (leaf.grad * direction).sum().item() == pytest.approx(slope.item(), rel=1e-6)


def test_second_derivatives_come_by_the_torch_route_and_are_refused_by_the_kernel(batch):
    features, labels, confidence = batch(10, 4)
    loss = NegScaleLoss("cifar10", route="torch", dcsa=False)
    assert torch.autograd.gradgradcheck(lambda f: loss(f, labels, confidence), features.clone().requires_grad_(), atol=1e-5)
    native = NegScaleLoss("cifar10", route="native")
    leaf = features.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(native(leaf, labels), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match='first derivatives only.*route="torch"'):
        gradient.square().sum().backward()


@pytest.mark.parametrize("route", ROUTES)
def test_the_gradient_is_scaled_by_what_comes_after(batch, with_gradient, route):
    data, loss = batch(), NegScaleLoss("cifar10", route=route)
    value, gradient = with_gradient(loss, *data)
    scaled = with_gradient(lambda *batch: loss(*batch) * -2.5 + 1, *data)
    assert scaled[0] == pytest.approx(1 - 2.5 * value) and torch.allclose(scaled[1], -2.5 * gradient)
    leaf = data[0].clone().requires_grad_()
    for _ in range(2):
        loss(leaf, *data[1:]).backward()
    assert torch.allclose(leaf.grad, 2 * gradient)
    leaf.grad = None
    value = loss(leaf, *data[1:])
    (0.5 * value).backward(retain_graph=True)
    value.backward(retain_graph=True)
    value.backward()
    assert torch.allclose(leaf.grad, 2.5 * gradient)
    with torch.no_grad():
        assert loss(leaf, *data[1:]).requires_grad is False
    assert loss(data[0], *data[1:]).requires_grad is False


def test_features_may_be_changed_in_place_after_the_kernel_has_seen_them(batch, with_gradient):
    data, loss = batch(), NegScaleLoss("cifar10", route="native")
    _, wanted = with_gradient(loss, *data)
    leaf = data[0].clone().requires_grad_()
    features = leaf * 1
    value = loss(features, *data[1:])
    features.relu_()
    value.backward(retain_graph=True)
    assert torch.allclose(leaf.grad, wanted)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("labels", "states"),
    [([], ("no-pairs", "no-pairs")), ([3], ("no-pairs", "no-pairs")), ([5] * 6, ("no-pairs", "no-pairs")),
     ([3, 5, 3], ("no-pairs", "no-pairs")), ([0, 3, 0], ("active", "no-pairs"))],
)
def test_terms_without_pairs_are_zero_with_zero_gradient_and_say_so(with_gradient, route, labels, states):
    loss = NegScaleLoss("cifar10", route=route)
    features = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(0))
    value, gradient = with_gradient(loss, features, torch.tensor(labels, dtype=torch.int64))
    terms = loss.terms
    assert (terms.snop_state, terms.dcsa_state) == states and terms.dcsa == 0
    assert gradient.shape == features.shape
    if states[0] == "no-pairs":
        assert value == 0 and not gradient.any()
    else:
        assert value > 0 and gradient.any()


@pytest.mark.parametrize("route", ROUTES)
def test_features_without_direction_and_of_any_size_give_finite_gradients(with_gradient, agree, route):
    labels = torch.tensor([0, 3, 0, 5, 8, 1])
    features = torch.randn(6, 4, generator=torch.Generator().manual_seed(3))
    loss = NegScaleLoss("cifar10", route=route)
    plain = with_gradient(loss, features, labels)
    for scale in (1e-30, 1e30):
        value, gradient = with_gradient(loss, features * scale, labels)
        agree((value, gradient * scale), plain, 1e-4)
    features[1] = features[0]
    value, gradient = with_gradient(loss, features, labels)
    assert loss.terms.identical_pairs == 1 and gradient.isfinite().all()
    features[2] = 0
    value, gradient = with_gradient(loss, features, labels)
    assert loss.terms.zero_features == 1 and gradient.isfinite().all() and not gradient[2].any()


def test_without_a_confidence_every_pair_weighs_one_and_logits_stand_for_it(batch, with_gradient):
    features, labels, _ = batch()
    logits = torch.randn(24, 10, dtype=torch.float64, requires_grad=True)
    sure = logits.softmax(1).max(1).values
    for route in ROUTES:
        loss = NegScaleLoss("cifar10", route=route)
        assert with_gradient(loss, features, labels)[0] == with_gradient(loss, features, labels, torch.zeros(24))[0]
        by_logits = with_gradient(loss, features, labels, logits=logits)
        assert by_logits[0] == pytest.approx(with_gradient(loss, features, labels, sure)[0]) and logits.grad is None
        half = with_gradient(loss, features, labels, logits=logits.half().float())
        assert half[0] == pytest.approx(by_logits[0], rel=1e-3)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(batch, with_gradient, agree, route, dtype):
    features, labels, confidence = batch(dtype=torch.float32)
    features = features.to(dtype)
    loss = NegScaleLoss("cifar10", route=route)
    value, gradient = with_gradient(loss, features, labels, confidence.to(dtype))
    assert gradient.dtype == dtype and loss(features, labels).dtype == torch.float32
    exact = with_gradient(loss, features.float(), labels, confidence.to(dtype).float())
    assert value == exact[0] and torch.equal(gradient, exact[1].to(dtype))


@pytest.mark.parametrize("route", ROUTES)
def test_under_autocast_the_loss_is_computed_in_float32(batch, route):
    features, labels, confidence = batch(40, 16, dtype=torch.float32)
    layer = nn.Linear(16, 12)
    loss = NegScaleLoss("cifar10", route=route)
    with torch.autocast("cpu", torch.bfloat16):
        hidden = layer(features)
        value = loss(hidden, labels, confidence)
        direct = loss(features, labels, confidence)
    assert hidden.dtype == torch.bfloat16 and value.dtype == torch.float32
    assert direct.item() == loss(features, labels, confidence).item()
    assert value.item() == loss(hidden, labels, confidence).item()
    value.backward()
    assert layer.weight.grad.dtype == torch.float32 and layer.weight.grad.abs().max() > 0


@pytest.mark.parametrize("route", ROUTES)
def test_any_layout_and_integer_type_will_do(batch, with_gradient, agree, route):
    features, labels, confidence = batch()
    loss = NegScaleLoss("cifar10", route=route)
    plain = with_gradient(loss, features, labels, confidence)
    wide = torch.zeros(48, 16, dtype=torch.float64)
    wide[::2, ::2] = features
    for strange in (features.T.contiguous().T, wide[::2, ::2]):
        assert not strange.is_contiguous()
        agree(with_gradient(loss, strange, labels.repeat_interleave(2)[::2], confidence.repeat_interleave(2)[::2]), plain, 1e-12)
    for kind in (torch.uint8, torch.int32):
        agree(with_gradient(loss, features, labels.to(kind), confidence), plain, 1e-12)
    agree(with_gradient(loss, features, labels.tolist(), confidence.numpy()), plain, 1e-12)


WRONG = {
    "shape of features": (lambda f, y, c: (f[None], y), "features: expected B x d"),
    "no tensor": (lambda f, y, c: (f.tolist(), y), "features: expected B x d, got list"),
    "whole features": (lambda f, y, c: (f.long(), y), "floating-point numbers"),
    "too few labels": (lambda f, y, c: (f, y[1:]), "labels: expected one for each of 24 samples"),
    "labels by column": (lambda f, y, c: (f, y[:, None]), "labels: expected one"),
    "mixed labels": (lambda f, y, c: (f, nn.functional.one_hot(y).float()), "argmax"),
    "label 10": (lambda f, y, c: (f, y.index_fill(0, torch.tensor([7]), 10)), r"label 10 of sample 7.*`cifar10` has 10 classes"),
    "label -1": (lambda f, y, c: (f, y.index_fill(0, torch.tensor([7]), -1)), "label -1 of sample 7.*negative"),
    "NaN": (lambda f, y, c: (f.index_fill(0, torch.tensor([5]), float("nan")), y), "feature of sample 5.*NaN"),
    "infinity": (lambda f, y, c: (f.index_fill(0, torch.tensor([5]), float("inf")), y), "feature of sample 5.*inf"),
    "too few confidences": (lambda f, y, c: (f, y, c[1:]), "confidence: expected one for each of 24"),
    "confidence 2": (lambda f, y, c: (f, y, c + 1), r"confidence .* of sample 0.*not in \[0, 1\]"),
    "confidence NaN": (lambda f, y, c: (f, y, c * float("nan")), "confidence NaN of sample 0"),
    "a miner": (lambda f, y, c: (f, y, (y, y, y)), "indices_tuple"),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_refused_in_the_same_words_by_both_routes(batch, route, case):
    wrong, message = WRONG[case]
    with pytest.raises(negscale.InputError, match=message):
        NegScaleLoss("cifar10", route=route)(*wrong(*batch()))


def test_the_check_of_the_torch_route_can_be_left_out(batch):
    features, labels, _ = batch()
    features[3] = float("nan")
    assert NegScaleLoss("cifar10", route="torch", check=False)(features, labels).isnan()


def test_wrong_keywords_of_a_call_are_refused(batch):
    features, labels, confidence = batch()
    loss = NegScaleLoss("cifar10")
    with pytest.raises(ValueError, match="pass one of them"):
        loss(features, labels, confidence, logits=features)
    with pytest.raises(ValueError, match="logits: expected a row"):
        loss(features, labels, logits=features[1:])
    with pytest.raises(ValueError, match="leave the reference out"):
        loss(features, labels, ref_emb=features)
    assert loss(features, labels, None, indices_tuple=None, ref_emb=None, ref_labels=None).item() == loss(features, labels).item()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"taxonomy": "cifar-10"}, ValueError, "did you mean `cifar10`"),
        ({"taxonomy": torch.zeros(3)}, ValueError, "taxonomy.*C x C"),
        ({"taxonomy": torch.zeros(3, 4)}, ValueError, "C x C"),
        ({"taxonomy": torch.tensor([[0.0, -1], [-1, 0]])}, ValueError, "class 0 to class 1 is -1"),
        ({"taxonomy": torch.tensor([[0.0, 1], [2, 0]])}, ValueError, "class 1 to class 0"),
        ({"lam": -1.0}, ValueError, "`lambda` = -1"),
        ({"eta_min": 6}, ValueError, "eta_min"),
        ({"reduction": "max"}, ValueError, "expected `mean` or `sum`"),
        ({"delta_quantile": 0.0}, ValueError, "delta_quantile"),
        ({"route": "gpu"}, ValueError, "route"),
        ({"centre": "class-balanced"}, ValueError, "`centre` is not available.*subtract"),
        ({"pairs": "random"}, ValueError, "`pairs` is not available"),
        ({"lambda": 1.0}, TypeError, "did you mean `lam`"),
        ({"reductoin": "sum"}, TypeError, "did you mean `reduction`"),
    ],
)
def test_wrong_settings_are_refused_when_the_loss_is_built(options, error, message):
    with pytest.raises(error, match=message):
        NegScaleLoss(**{"taxonomy": "cifar10", **options})


@pytest.mark.parametrize("route", ROUTES)
def test_a_tree_is_taken_by_name_as_taxonomy_or_as_distances(batch, with_gradient, route):
    data, tree = batch(), negscale.Taxonomy("cifar10")
    distances = torch.from_numpy(tree.distances())
    # Of a table that is not whole only the side of the thresholds counts.
    made = [NegScaleLoss(t, route=route) for t in ("cifar10", tree, distances, distances.double() - 0.5 * (distances > 0), tree.distances())]
    values = [with_gradient(loss, *data)[0] for loss in made]
    assert len(set(values)) == 1 and values[0] > 0
    assert NegScaleLoss(torch.zeros(10, 10), route=route)(*data).item() == 0


@pytest.mark.parametrize("route", ROUTES)
def test_copies_and_pickles_are_the_same_loss_and_checkpoints_do_not_know_it(batch, with_gradient, route):
    data = batch()
    loss = NegScaleLoss("cifar10", mu=0.3, route=route)
    value = with_gradient(loss, *data)
    for other in (copy.deepcopy(loss), copy.copy(loss), pickle.loads(pickle.dumps(loss))):
        again = with_gradient(other, *data)
        assert again[0] == value[0] and torch.equal(again[1], value[1]) and other.settings == loss.settings
        assert other.terms == loss.terms
    assert pickle.loads(pickle.dumps(loss)).terms is None
    model = nn.Sequential(nn.Linear(2, 2))
    before = model.state_dict()
    model.add_module("loss", loss)
    assert model.state_dict().keys() == before.keys() and not list(loss.parameters())
    assert model.load_state_dict(before).missing_keys == []
    whole = io.BytesIO()
    torch.save(loss, whole)
    whole.seek(0)
    assert with_gradient(torch.load(whole, weights_only=False), *data)[0] == value[0]
    assert "'cifar10', mu=0.3" in repr(loss)


def test_another_device_takes_torch_operations_of_the_same_shapes(batch):
    features, labels, confidence = (t.to("meta") for t in batch(130, 16, "cifar100", dtype=torch.float32))
    for form in FORMS:
        loss = NegScaleLoss("cifar100", **form)
        leaf = features.clone().requires_grad_()
        value = loss(leaf, labels, confidence)
        value.backward()
        assert value.device.type == "meta" and value.shape == () and leaf.grad.shape == (130, 16)
    with pytest.raises(ValueError, match='route = "native".*meta'):
        NegScaleLoss("cifar100", route="native")(features, labels)


@pytest.mark.parametrize(("b", "tree"), [(300, "cifar10"), (300, "cifar100")])
def test_the_torch_route_makes_no_matrix_of_pairs_times_pairs_or_samples(batch, b, tree):
    from torch.utils._python_dispatch import TorchDispatchMode

    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), keywords=None):
            nonlocal largest
            result = function(*args, **(keywords or {}))
            for part in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(part, torch.Tensor):
                    largest = max(largest, part.numel())
            return result

    features, labels, confidence = batch(b, 8, tree, dtype=torch.float32)
    loss = NegScaleLoss(tree, route="torch")
    with Watch():
        loss(features.requires_grad_(), labels, confidence).backward()
    assert b * b <= largest <= 1 << 22 < b * loss.terms.unrelated_pairs


class InWorker(torch.utils.data.Dataset):
    """Each item is the loss of a batch, computed where the item is loaded."""

    def __init__(self, loss, data):
        self.loss, self.data = loss, data

    def __len__(self):
        return 4

    def __getitem__(self, _):
        features = self.data[0].clone().requires_grad_()
        value = self.loss(features, *self.data[1:])
        value.backward()
        return value.detach(), features.grad.abs().sum()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.timeout(120)
def test_workers_forked_after_use_compute_too(batch):
    # Large enough for several threads, which a forked process does not have.
    data = batch(200, 64, dtype=torch.float32)
    dataset = InWorker(NegScaleLoss("cifar10"), data)
    value, slope = dataset[0]
    loader = torch.utils.data.DataLoader(dataset, num_workers=2, multiprocessing_context="fork", batch_size=None)
    for _ in range(2):
        found = list(loader)
        assert len(found) == 4 and all(torch.equal(v, value) and torch.equal(s, slope) for v, s in found)


def test_it_separates_unrelated_classes():
    """What it is for: by its gradient alone features of unrelated classes turn away from each other."""
    features, labels = torch.randn(40, 16, generator=torch.Generator().manual_seed(0)) + 1, torch.arange(40) % 10
    unrelated = torch.from_numpy(negscale.Taxonomy("cifar10").relations())[labels][:, labels] == -1

    def mean_cosine(f):
        unit = nn.functional.normalize(f, dim=1)
        return (unit @ unit.T)[unrelated].abs().mean().item()

    start, leaf, loss = mean_cosine(features), features.clone().requires_grad_(), NegScaleLoss("cifar10")
    optimiser = torch.optim.Adam([leaf], 0.05)
    for _ in range(60):
        optimiser.zero_grad()
        loss(leaf, labels).backward()
        optimiser.step()
    assert start > 0.3 and mean_cosine(leaf.detach()) < start / 2
