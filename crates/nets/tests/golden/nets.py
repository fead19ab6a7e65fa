"""Reference values for the networks, computed by PyTorch.

Weights are not stored: both languages make them from one formula of (key, index). Needs torch, torchvision, safetensors
and timm; run it as

    python nets.py            writes nets.json and tiny.safetensors next to itself
    python nets.py strict F   also loads the safetensors file F, written by this project for a resnet-18 (3 x 32 x 32,
                              10 classes), into PyTorch with strict=True
"""

import json
import sys
from pathlib import Path

import numpy as np
import timm
import torch
import torch.nn.functional as F
import torchvision
from safetensors.torch import load_file, save_file
from torch import nn

HERE = Path(__file__).parent
torch.set_num_threads(2)


def unit(key, count):
    """Numbers in [-1, 1), multiples of 2^-23: FNV-1a of the key, then splitmix64 of the index."""
    h = 0xCBF29CE484222325
    for byte in key.encode():
        h = ((h ^ byte) * 0x100000001B3) % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(h) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) / 2**23 - 1


def fill(net):
    state = net.state_dict()
    for key, old in state.items():
        if key.endswith("num_batches_tracked"):
            continue
        u = unit(key, old.numel())
        if key.endswith("running_mean"):
            u = 0.2 * u
        elif key.endswith("running_var"):
            u = 1 + 0.5 * u
        elif old.dim() > 1:
            u = u * np.sqrt(6.0 / (old.numel() // old.shape[0]))
        elif key.endswith("bias"):
            u = 0.1 * u
        else:
            u = 1 + 0.2 * u
        state[key] = torch.from_numpy(u.astype(np.float32).reshape(old.shape))
    net.load_state_dict(state)
    return net


def images(shape):
    return torch.from_numpy(unit("input", int(np.prod(shape))).astype(np.float32).reshape(shape))


def conv(i, o, k=3, s=1, bias=False, p=None):
    return nn.Conv2d(i, o, k, s, k // 2 if p is None else p, bias=bias)


class CnnSmall(nn.Module):
    def __init__(self, channels=1, classes=10):
        super().__init__()
        sizes = [channels, 16, 32, 64, 64]
        for i in range(4):
            setattr(self, f"conv{i + 1}", conv(sizes[i], sizes[i + 1], 3, 2 if i == 3 else 1))
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(sizes[i + 1]))
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        for i in range(1, 5):
            x = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x))
            x = F.relu(x) if i < 4 else x
            if i < 3:
                x = F.max_pool2d(x, 2)
        f = x.mean((2, 3))
        return f, self.fc(f)


class PlainBlock(nn.Module):
    """He's CIFAR block with the shortcut without parameters."""

    def __init__(self, i, o, s):
        super().__init__()
        self.conv1, self.bn1 = conv(i, o, 3, s), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = conv(o, o), nn.BatchNorm2d(o)
        self.s, self.extra = s, o - i

    def forward(self, x):
        skip = F.pad(x[:, :, :: self.s, :: self.s], (0, 0, 0, 0, self.extra // 2, self.extra - self.extra // 2))
        x = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(x + skip)


class PreBlock(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(i), conv(i, o, 3, s)
        self.bn2, self.conv2 = nn.BatchNorm2d(o), conv(o, o)
        self.shortcut = nn.Sequential(conv(i, o, 1, s)) if s != 1 or i != o else nn.Sequential()

    def forward(self, x):
        x = F.relu(self.bn1(x))
        return self.conv2(F.relu(self.bn2(self.conv1(x)))) + self.shortcut(x)


class ProjBlock(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.conv1, self.bn1 = conv(i, o, 3, s), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = conv(o, o), nn.BatchNorm2d(o)
        self.downsample = nn.Sequential(conv(i, o, 1, s), nn.BatchNorm2d(o)) if s != 1 or i != o else None

    def forward(self, x):
        skip = x if self.downsample is None else self.downsample(x)
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + skip)


class Cifar(nn.Module):
    """Stem, stages, mean, dense."""

    def __init__(self, block, counts, sizes, head, classes=10):
        super().__init__()
        self.conv1, self.bn1 = conv(3, sizes[0]), nn.BatchNorm2d(sizes[0])
        self.head, self.stages, i = head, len(sizes), sizes[0]
        for n, (count, o) in enumerate(zip(counts, sizes)):
            blocks = [block(i if k == 0 else o, o, 2 if k == 0 and n > 0 else 1) for k in range(count)]
            setattr(self, f"layer{n + 1}", nn.Sequential(*blocks))
            i = o
        setattr(self, head, nn.Linear(i, classes))

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for n in range(self.stages):
            x = getattr(self, f"layer{n + 1}")(x)
        f = x.mean((2, 3))
        return f, getattr(self, self.head)(f)


class Cnn9(nn.Module):
    def __init__(self, a=128, b=256, c=512, classes=10):
        super().__init__()
        sizes = [3, a, a, a, b, b, b, c, b, a]
        for i in range(9):
            setattr(self, f"c{i + 1}", conv(sizes[i], sizes[i + 1], 3, 1, True, 1 if i < 6 else 0))
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(sizes[i + 1]))
        self.l_c1 = nn.Linear(a, classes)

    def forward(self, x):
        for i in range(1, 10):
            x = F.leaky_relu(getattr(self, f"bn{i}")(getattr(self, f"c{i}")(x)), 0.01)
            if i in (3, 6):
                x = F.max_pool2d(x, 2)  # dropout: left out, these values are for evaluation
        f = x.mean((2, 3))
        return f, self.l_c1(f)


class Cnn7(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        sizes = [3, 64, 64, 128, 128, 196, 16]
        for i in range(6):
            setattr(self, f"c{i + 1}", conv(sizes[i], sizes[i + 1], 3, 1, True))
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(sizes[i + 1]))
        self.linear1 = nn.Linear(256, classes)

    def forward(self, x):
        for i in range(1, 7):
            x = F.relu(getattr(self, f"bn{i}")(getattr(self, f"c{i}")(x)))
            if i % 2 == 0:
                x = F.max_pool2d(x, 2)
        f = x.flatten(1)
        return f, self.linear1(f)


class Mlp(nn.Module):
    def __init__(self, sizes=(512, 512), classes=10, rectifies=True):
        super().__init__()
        self.rectifies = rectifies
        self.hidden = nn.ModuleList(nn.Linear(i, o) for i, o in zip(sizes, sizes[1:]))
        self.fc = nn.Linear(sizes[-1], classes)

    def forward(self, x):
        for layer in self.hidden[:-1]:
            x = F.relu(layer(x))
        f = self.hidden[-1](x)
        return f, self.fc(F.relu(f) if self.rectifies else f)


class Torchvision(nn.Module):
    """A torchvision network that also gives the input of its last layer."""

    def __init__(self, net, last):
        super().__init__()
        self.net, self.seen = net, {}
        last.register_forward_pre_hook(lambda _, args: self.seen.update(f=args[0]))

    def forward(self, x):
        out = self.net(x)
        return self.seen["f"], out


def resnet20(sizes=(16, 32, 64), classes=10):
    return Cifar(PlainBlock, (3, 3, 3), sizes, "linear", classes)


def preact(sizes=(64, 128, 256, 512)):
    return Cifar(PreBlock, (2, 2, 2, 2), sizes, "linear")


def hooked(make, last):
    net = make()
    return net, Torchvision(net, last(net))


def rounded(t):
    return [float(f"{v:.9g}") for v in t.double().flatten().tolist()]


def counting(net):
    """Multiply-adds of one sample in convolutions and dense layers, counted while the network runs."""
    total = [0]

    def count(layer, _, out):
        each = layer.weight[0].numel()
        total[0] += each * out[0].numel()

    for layer in net.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            layer.register_forward_hook(count)
    return total


def record(name, net, run, shape, classes, width=1.0):
    fill(net)
    run.eval()
    x = images(shape)
    total = counting(net)
    with torch.no_grad():
        f, y = run(x)
    return {
        "net": name, "shape": list(shape), "classes": classes, "width": width,
        "parameters": sum(p.numel() for p in net.parameters()), "multiply_adds": total[0],
        "features": rounded(f[:, :16]), "features_norm": f.double().norm().item(),
        "logits": rounded(y),
    }


def step(name, net, shape, width):
    """Loss, gradient norms and running statistics of one training step."""
    fill(net)
    net.train()
    labels = torch.arange(shape[0]) % 10
    _, y = net(images(shape))
    loss = F.cross_entropy(y, labels)
    loss.backward()
    return {
        "net": name, "shape": list(shape), "width": width, "loss": loss.item(), "logits": rounded(y),
        "gradients": {k: p.grad.double().norm().item() for k, p in net.named_parameters()},
        "buffers": {k: b.double().norm().item() for k, b in net.named_buffers() if "running" in k},
    }


def head(kind, *layers):
    """A projection of 512 numbers and a prediction from it, in evaluation and in training."""
    net = nn.ModuleDict({"projection": nn.Sequential(*layers)})
    size = [layer for layer in layers if isinstance(layer, nn.Linear)][-1].out_features
    net["prediction"] = nn.Sequential(
        nn.Linear(size, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, size))
    fill(net)
    out = {"kind": kind, "parameters": sum(p.numel() for p in net.parameters())}
    for mode in ("evaluate", "train"):
        net.train(mode == "train")
        with torch.no_grad():
            p = net["projection"](images((4, 512)))
            q = net["prediction"](p)
        out[mode] = [rounded(p[:, :8]), rounded(q[:, :8])]
    return out


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "strict":
        state = load_file(sys.argv[2])
        Cifar(ProjBlock, (2, 2, 2, 2), (64, 128, 256, 512), "fc").load_state_dict(state, strict=True)
        print("loads strictly:", len(state), "tensors")
        return
    forward = []

    def add(name, net, shape, classes=10, run=None, width=1.0):
        forward.append(record(name, net, run or net, shape, classes, width))
        print(name, forward[-1]["parameters"], forward[-1]["features_norm"], forward[-1]["logits"][:3])

    add("mlp", Mlp(), (3, 512))
    add("mlp-bottleneck", Mlp((512, 256, 128), rectifies=False), (3, 512))
    add("cnn-small", CnnSmall(), (2, 1, 28, 28))
    add("cnn-small", CnnSmall(3), (1, 3, 33, 30))
    add("resnet-20", resnet20(), (2, 3, 32, 32))
    add("preact-resnet-18", preact(), (1, 3, 32, 32))
    add("preact-resnet-18", preact((16, 32, 64, 128)), (2, 3, 20, 28), width=0.25)
    add("resnet-18", Cifar(ProjBlock, (2, 2, 2, 2), (64, 128, 256, 512), "fc"), (1, 3, 32, 32))
    add("resnet-34", Cifar(ProjBlock, (3, 4, 6, 3), (64, 128, 256, 512), "fc"), (1, 3, 16, 16))
    for name, make in [("resnet-18", torchvision.models.resnet18), ("resnet-34", torchvision.models.resnet34)]:
        net, run = hooked(make, lambda n: n.fc)
        add(f"{name}-imagenet", net, (1, 3, 72, 80), 1000, run)
    net, run = hooked(torchvision.models.vgg19_bn, lambda n: n.classifier[6])
    add("vgg-19-bn", net, (1, 3, 64, 64), 1000, run)
    net, run = hooked(lambda: timm.create_model("inception_resnet_v2", pretrained=False), lambda n: n.classif)
    add("inception-resnet-v2", net, (1, 3, 75, 75), 1000, run)
    add("cnn-9", Cnn9(), (1, 3, 32, 32))
    add("cnn-7", Cnn7(), (1, 3, 32, 32))

    steps = [
        step("preact-resnet-18", preact((8, 16, 32, 64)), (8, 3, 16, 16), 0.125),
        # A shape at which no activation's input lies within 4e-5 of the mean size from zero: on the other side of a ReLU's bend
        # the gradient is another one, and rounding in f32 would decide.
        step("resnet-20", resnet20(), (5, 3, 8, 8), 1.0),
    ]

    heads = [
        head("relu", nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128)),
        head("norm-relu", nn.Linear(512, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 128)),
        head("linear-norm", nn.Linear(512, 128), nn.BatchNorm1d(128)),
        head("square", nn.Linear(512, 512, bias=False), nn.ReLU(), nn.Linear(512, 512)),
    ]

    # A file written by PyTorch itself, with its own random weights after some steps that move the running statistics.
    torch.manual_seed(1)
    tiny = resnet20((8, 8, 16), 5)
    tiny.train()
    for _ in range(3):
        tiny(torch.randn(8, 3, 16, 16) * 2 + 0.5)
    save_file(tiny.state_dict(), HERE / "tiny.safetensors")
    tiny.eval()
    with torch.no_grad():
        f, y = tiny(images((2, 3, 16, 16)))
    stored = {"features": rounded(f), "logits": rounded(y)}

    json.dump({"forward": forward, "steps": steps, "heads": heads, "stored": stored}, open(HERE / "nets.json", "w"), separators=(",", ":"))


if __name__ == "__main__":
    main()
