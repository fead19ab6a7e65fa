#!/usr/bin/env python3
"""Time the NegScale plug-in loss written literally in PyTorch with autograd (CPU).

The loss is lambda * (global + local) + mu * dcsa, lambda = mu = 1, over explicit lists of pairs i < j: P unrelated
ones (class distance > 5) and Q related ones (0 < distance <= 3). The distance is the path length between two
leaves of a taxonomy. V (P x d) holds the unit difference vectors; two forms of the global term:
  torch-dxd   S = V^T V:   sum |S - I_d|^2,      mean (|S|^2 - P) / P^2
  torch-PxP   V V^T:       sum |V V^T - I_P|^2,  mean the same / P^2

Usage (needs: pip install torch numpy)
  python plugin.py                                   the default grid, one line per case
  python plugin.py --cases "64,128,10 128,512,10"    batch,dim,classes triples
  python plugin.py --forms dxd --threads 1 --json    one form, one thread, one JSON object per line
  python plugin.py --against target/release/negscale each case also by our command, before and after, with ratios
  python plugin.py --check                           both forms against each other, loops and gradcheck
  python plugin.py --features F.npy --labels L.npy --confidence C.npy [--classes 100] [--reduction sum]
                   [--gradient-out G.npy]            evaluate given arrays in float64, print JSON

Timed is the way from raw float32 features, labels and confidences to the gradient of the raw features. It includes
building the pair lists, since a new batch has new labels. ms is the median after one uncounted call.

extra_bytes: each case has a fresh process. After a tiny batch has loaded the libraries, the resident size is read and
the kernel's peak mark reset (5 written to /proc/self/clear_refs); reported is the peak (VmHWM) at the end less that
size. If the mark cannot be reset the peak is that of the process's whole life, and without /proc it is ru_maxrss,
which on some systems starts from the parent's peak; such lines carry "peak_reset": false and are not exact.
"""
import argparse
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import time
import timeit
from pathlib import Path

try:
    import numpy as np
    import torch
    from torch.nn import functional as F
except ImportError as error:
    sys.exit(f"plugin.py: {error.name or error} is missing; install the requirements: pip install torch numpy")

LAMBDA, MU = 1.0, 1.0
ETA_MIN, ETA_MAX = 3, 5          # related: 0 < distance <= ETA_MIN; unrelated: distance > ETA_MAX
FLOOR = 1e-3                     # smallest length a difference is divided by
CHUNK = 1 << 24                  # entries of one slice of the Q x 2P matrix of the anchors
GIB = 1 << 30
NAMES = {"dxd": "torch-dxd", "pxp": "torch-PxP"}


def class_distances(path, classes):
    """C x C path lengths between the leaves of a taxonomy file (columns node, parent, depth, class_index)."""
    if not path.is_file():
        sys.exit(f"no taxonomy at {path}; pass --tree or --trees-dir")
    parent, leaf = {}, {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith(("#", "node\t")):
            node, above, _, index = (line.split("\t") + ["", "", ""])[:4]
            parent[node] = above
            if index.strip():
                leaf[int(index)] = node
    if sorted(leaf) != list(range(classes)):
        sys.exit(f"{path}: its class indices are not 0 to {classes - 1}; pass the right --tree")
    ways = [[leaf[c]] for c in range(classes)]
    for way in ways:
        while parent[way[-1]]:
            way.append(parent[way[-1]])
    # The path consists of the nodes above either leaf that are not above both, and the lowest that is.
    return torch.tensor([[len(a) + len(b) - 2 * len(set(a) & set(b)) for b in ways] for a in ways])


def pair_lists(labels, distances):
    """Index tensors (i, j) of the unrelated and (a, b) of the related pairs, i < j and a < b."""
    distance = distances[labels][:, labels]
    upper = torch.ones_like(distance, dtype=torch.bool).triu(1)
    related = upper & (distance > 0) & (distance <= ETA_MIN)
    return (upper & (distance > ETA_MAX)).nonzero(as_tuple=True), related.nonzero(as_tuple=True)


def anchors(gram, i, j, a, b):
    """delta_ab = half the largest G_ap + G_bq over unrelated (p, q) in both orders; chunked, no gradient."""
    p, q = torch.cat([i, j]), torch.cat([j, i])
    rows = max(1, CHUNK // len(p))
    with torch.no_grad():
        return torch.cat([0.5 * (gram[u][:, p] + gram[v][:, q]).max(dim=1).values
                          for u, v in zip(a.split(rows), b.split(rows))])


def plug_in(features, labels, confidence, distances, form, reduction, delta=None):
    """(value, global, local, dcsa) as tensors; a term without pairs is zero. `delta` replaces the anchors."""
    (i, j), (a, b) = pair_lists(labels, distances)
    x = F.normalize(features, dim=1)
    gram = x @ x.T
    pairs, mean = len(i), reduction == "mean"
    spread = local = dcsa = features.sum() * 0
    if pairs:
        difference = x[i] - x[j]
        v = difference / difference.norm(dim=1, keepdim=True).clamp(min=FLOOR)
        if form == "pxp":
            spread = ((v @ v.T - torch.eye(pairs, dtype=v.dtype)) ** 2).sum() / (pairs**2 if mean else 1)
        elif mean:
            spread = (((v.T @ v) ** 2).sum() - pairs) / pairs**2
        else:
            spread = ((v.T @ v - torch.eye(v.shape[1], dtype=v.dtype)) ** 2).sum()
        local = ((1 - confidence[i]) * (1 - confidence[j]) * gram[i, j] ** 2).sum() / (pairs if mean else 1)
        if len(a):
            delta = anchors(gram, i, j, a, b) if delta is None else delta
            dcsa = (F.relu(gram[a, b] - (1 - delta)) ** 2).sum() / (len(a) if mean else 1)
    return LAMBDA * (spread + local) + MU * dcsa, spread, local, dcsa


def forward_backward(features, labels, confidence, distances, form, reduction):
    leaf = features.detach().requires_grad_()
    terms = plug_in(leaf, labels, confidence, distances, form, reduction)
    terms[0].backward()
    return [t.item() for t in terms], leaf.grad


def make_case(batch, dim, classes, seed, dtype=torch.float32):
    """Labels come first, so that the pairs of a batch size do not depend on the dimension."""
    rng = np.random.default_rng(seed)
    labels, confidence = rng.integers(0, classes, batch), rng.random(batch)
    features = rng.standard_normal((batch, dim), dtype=np.float32)
    return torch.from_numpy(features).to(dtype), torch.from_numpy(labels), torch.from_numpy(confidence).to(dtype)


def memory_now():
    """(resident bytes, peak bytes); without /proc the peak stands for both."""
    try:
        rows = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
        return tuple(int(rows[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM"))
    except (OSError, KeyError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return peak, peak


def run_case(pipe, case, form, distances, args):
    """Body of the process of one case: sends its result through the pipe."""
    torch.set_num_threads(args.threads)
    distances = torch.tensor(distances)
    forward_backward(*make_case(24, 8, case[2], args.seed), distances, form, args.reduction)
    data, note = make_case(*case, args.seed), {}
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        note = {"peak_reset": False}
    before = memory_now()[0]
    times, start = [], time.perf_counter()
    while len(times) < 2 or time.perf_counter() - start < args.seconds:
        begin = time.perf_counter()
        terms, _ = forward_backward(*data, distances, form, args.reduction)
        times.append(time.perf_counter() - begin)
    pipe.send({"ms": statistics.median(times[1:]) * 1e3, "extra_bytes": max(0, memory_now()[1] - before),
               "value": terms[0], "runs": len(times) - 1, **note})


def machine_rates():
    """Seconds per multiply-add of a matrix product, and per entry of the anchors' gather, add and maximum."""
    def best(run):
        return min(timeit.repeat(run, number=1, repeat=6))
    m, g, p = torch.ones(1024, 1024), torch.ones(256, 512), torch.arange(16384) % 512
    return best(lambda: m @ m) / 1024**3, best(lambda: (g[:, p] + g[:, p]).max(dim=1)) / (256 * 16384)


def estimate(form, batch, dim, pairs, related, rates=(0, 0), size=4):
    """(peak bytes, seconds of one call): three matrix products, passes over the large arrays, the anchors."""
    flat, square = pairs * dim, (pairs if form == "pxp" else dim) ** 2
    product = 3 * pairs * dim * (pairs if form == "pxp" else dim)
    held = 4 * square + 6 * flat + 3 * min(CHUNK, related * 2 * pairs) + 4 * batch * batch
    return size * held, product * rates[0] + (related * 2 * pairs + 6 * flat + 3 * square) * rates[1]


def measure(case, form, distances, args, rates):
    pairs, related = (len(one) for one, _ in pair_lists(make_case(*case, args.seed)[1], distances))
    peak, seconds = estimate(form, case[0], case[1], pairs, related, rates)
    if peak > args.max_gib * GIB:
        return {"skipped": f"needs about {peak / GIB:.1f} GiB, above --max-gib {args.max_gib:g} (P = {pairs})"}
    if 2 * seconds > args.max_seconds:
        return {"skipped": f"two calls would take about {2 * seconds:.0f} s, above --max-seconds {args.max_seconds:g}"}
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=run_case, args=(send, case, form, distances.tolist(), args))
    process.start()
    send.close()
    try:
        return receive.recv()
    except EOFError:
        process.join()
        return {"skipped": f"its process ended with code {process.exitcode} (out of memory?)"}
    finally:
        process.join()


def ours(program, case, seconds):
    """Our command on the same case: its JSON object."""
    sizes = [f"--{name}={value}" for name, value in zip(("batch", "dim", "classes"), case)]
    command = [program, "bench", "plugin", "--json", "--forms=closed", f"--seconds={seconds}", *sizes]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def evaluate(args, forms, distances):
    """Terms and gradient of given arrays in float64, one JSON line per form; the gradient is the first form's."""
    if not (args.labels and args.confidence):
        sys.exit("--features needs --labels and --confidence")
    features, labels, confidence = (np.load(path) for path in (args.features, args.labels, args.confidence))
    features = torch.from_numpy(features.astype(np.float64).reshape(len(labels), args.dim or -1))
    labels, confidence = torch.from_numpy(labels.astype(np.int64)), torch.from_numpy(confidence.astype(np.float64))
    if len(labels) != len(confidence) or labels.min() < 0 or labels.max() >= len(distances):
        sys.exit(f"need one confidence per label, and labels from 0 to {len(distances) - 1}")
    pairs, related = (len(one) for one, _ in pair_lists(labels, distances))
    for form in forms:
        if estimate(form, *features.shape, pairs, related, size=8)[0] > args.max_gib * GIB:
            sys.exit(f"{NAMES[form]} with P = {pairs} would need more than --max-gib {args.max_gib:g}")
        terms, gradient = forward_backward(features, labels, confidence, distances, form, args.reduction)
        print(json.dumps({"form": NAMES[form], "reduction": args.reduction, "pairs": pairs, "related": related,
                          **dict(zip(("value", "global", "local", "dcsa"), terms))}))
        if args.gradient_out and form == forms[0]:
            np.save(args.gradient_out, gradient.numpy())


def check(distances):
    """Float64: the two forms differ by the constant d - P only, anchors equal plain loops, gradcheck passes."""
    data = make_case(32, 12, len(distances), 1, torch.float64)
    (i, j), (a, b) = pair_lists(data[1], distances)
    for reduction, constant in (("sum", 12 - len(i)), ("mean", 0)):
        (one, grad_one), (two, grad_two) = (forward_backward(*data, distances, f, reduction) for f in NAMES)
        assert min(one[2:]) > 0, "the case has no local or no DCSA term"
        assert abs(one[0] - two[0] - constant) < 1e-11 * max(1, abs(two[0])), (reduction, one, two)
        assert (grad_one - grad_two).abs().max() < 1e-10 * grad_two.abs().max(), reduction
    gram, y = torch.corrcoef(data[0]), data[1].tolist()          # any symmetric matrix serves here
    apart = [(p, q) for p in range(32) for q in range(32) if distances[y[p], y[q]] > ETA_MAX]
    g = gram.tolist()
    loops = [0.5 * max(g[u][p] + g[v][q] for p, q in apart) for u, v in zip(a.tolist(), b.tolist())]
    assert anchors(gram, i, j, a, b).tolist() == loops, "anchors differ from the loops"
    features, *rest = make_case(9, 4, len(distances), 3, torch.float64)
    unit, ((i, j), (a, b)) = F.normalize(features, dim=1), pair_lists(rest[0], distances)
    delta = anchors(unit @ unit.T, i, j, a, b)                   # held fixed: no gradient passes through it
    for form, reduction in ((f, r) for f in NAMES for r in ("sum", "mean")):
        assert plug_in(features, *rest, distances, form, reduction)[3] > 0, "the tiny batch has no DCSA term"
        assert torch.autograd.gradcheck(lambda f: plug_in(f, *rest, distances, form, reduction, delta)[0],
                                        features.clone().requires_grad_())
    print("ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--cases", help='"batch,dim,classes ..." (default: 64 128 448 1024 x 128 512 2048 x 10 100)')
    add("--forms", help="dxd, pxp or both (default: dxd,pxp; with --features: dxd)")
    add("--reduction", choices=("mean", "sum"), default="mean")
    add("--threads", type=int, default=os.cpu_count(), help="default: all cores")
    add("--seconds", type=float, default=2.0, help="time per case; at least two calls (default 2)")
    add("--max-gib", type=float, default=8.0, help="skip a case estimated to need more memory (default 8)")
    add("--max-seconds", type=float, default=120.0, help="skip if two calls are predicted to take longer (default 120)")
    add("--seed", type=int, default=0)
    add("--tree", type=Path, help="taxonomy file (default: by class count, the CIFAR-10 or CIFAR-100 one)")
    add("--trees-dir", type=Path, help="folder of these two (default: the repository's)")
    add("--against", metavar="NEGSCALE", help="our program, run in turns with PyTorch: adds its time and the ratio")
    add("--json", action="store_true", help="one object per line")
    add("--check", action="store_true", help="test the forms against each other and gradcheck, print ok")
    for name in ("--features", "--labels", "--confidence", "--gradient-out"):
        add(name, metavar="FILE.npy")
    add("--classes", type=int, default=10, help="class count of --features, which picks the tree (default 10)")
    add("--dim", type=int, help="width of --features, to check it or to cut up a flat array")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    forms = (args.forms or ("dxd" if args.features else "dxd,pxp")).lower().replace("torch-", "").split(",")
    if set(forms) - set(NAMES):
        parser.error(f"--forms takes dxd and pxp, not {args.forms}")

    def tree(classes):
        folder = args.trees_dir or (Path(__file__).parent / "../../crates/negscale/trees").resolve()
        return class_distances(args.tree or folder / f"cifar{classes}.tsv", classes)

    if args.check or args.features:
        return check(tree(10)) if args.check else evaluate(args, forms, tree(args.classes))
    try:
        cases = [(b, d, c) for c in (10, 100) for b in (64, 128, 448, 1024) for d in (128, 512, 2048)]
        cases = [tuple(map(int, c.split(","))) for c in args.cases.split()] if args.cases else cases
        trees = {c: tree(c) for _, _, c in cases}
    except ValueError:
        parser.error('--cases wants triples such as "64,128,10 128,512,10"')
    if not args.json:
        print(f"NegScale plug-in loss, torch {torch.__version__}, {args.threads} thread(s), float32, {args.reduction}; "
              f"pair lists + forward + backward\n"
              f"{'form':<10}{'batch':>6}{'dim':>6}{'classes':>8}{'ms':>12}{'extra MiB':>11}{'runs':>6}  value")
    rates = machine_rates()
    for case, form in ((c, f) for c in cases for f in forms):
        before = ours(args.against, case, args.seconds / 2) if args.against else None
        result = {"form": NAMES[form], **dict(zip(("batch", "dim", "classes"), case)), "ms": None,
                  "extra_bytes": None, "value": None, **measure(case, form, trees[case[2]], args, rates)}
        tail = f"  skipped: {result['skipped']}" if "skipped" in result else (
            f"{result['ms']:>12.2f}{result['extra_bytes'] / 2**20:>11.1f}{result['runs']:>6}  {result['value']:.6g}")
        if before:
            after = ours(args.against, case, args.seconds / 2)
            result["ours_ms"] = (before["ms"] + after["ms"]) / 2
            result["ours_extra_bytes"] = before["extra_bytes"]
            result["ratio"] = result["ms"] and result["ms"] / result["ours_ms"]
            tail += f"   ours {result['ours_ms']:.3f} ms" + (f", {result['ratio']:.0f} times faster" if result["ms"] else "")
        head = "{:<10}{:>6}{:>6}{:>8}".format(NAMES[form], *case)
        print(json.dumps(result) if args.json else head + tail, flush=True)


if __name__ == "__main__":
    main()
