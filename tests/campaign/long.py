"""Long runs, and data that make no sense.

First `--count` short epochs on tiny data in one process: memory, handles, threads and the folder may not grow but for the records of the epochs themselves
(`metrics.jsonl`, the events, and what of them is in memory). Then odd data and settings: each must end in a clear word or in a result whose numbers are numbers.
"""
import json
import math
import os
import random
import time

import jobs
from common import Finding, Log, empty, environment, kill, run, start

# Of records themselves: bytes of memory for each epoch that are no leak.
RECORD = 6000


def sample(child, here):
    status = dict(line.split(":", 1) for line in open(f"/proc/{child.pid}/status").read().splitlines() if ":" in line)
    size = 0
    for folder, _, files in os.walk(here / "run"):
        if "events" not in folder:
            for name in files:
                try:
                    size += os.path.getsize(os.path.join(folder, name)) if name not in ("metrics.jsonl", ".negscale-folder") else 0
                except OSError:
                    pass
    return {
        "memory": int(status["VmRSS"].split()[0]) << 10,
        "handles": len(os.listdir(f"/proc/{child.pid}/fd")),
        "threads": int(status["Threads"]),
        "folder": size,
        "epochs": sum(1 for _ in open(here / "run/metrics.jsonl", "rb")) if (here / "run/metrics.jsonl").exists() else 0,
    }


def many_epochs(options, inputs, log):
    job = f"{options.count} epochs"
    if log.of(job):
        return
    here = empty(options.work / "trial")
    words = ["train", "--data", f"{inputs}/tiny.csv", "--label-column", "label", "--truth-column", "truth", "--host", "rolr", "--epochs", str(options.count)]
    words += ["--set", "baseline=none", "--set", "hidden=[8]", "--set", "batch=64", "--set", "threads=1", "--precision", "f32", "--quiet", "--out", "run"]
    begun, taken, facts = time.monotonic(), [], {}
    child = start(words, here)
    try:
        while child.poll() is None:
            time.sleep(1)
            try:
                taken.append(sample(child, here))
            except (OSError, KeyError):
                continue
        said = (here / ".said").read_text(errors="replace")
        if child.returncode != 0:
            raise Finding(f"ends with {child.returncode}: {said[-600:]}")
        # What a run needs it has after a tenth of it.
        early = [one for one in taken if options.count * 0.1 <= one["epochs"]] or taken
        first, last = early[0], early[-1]
        facts = {name: last[name] for name in first} | {"first": first, "seconds": round(time.monotonic() - begun, 1)}
        for name, most in [("handles", 0), ("threads", 0), ("folder", 20000), ("memory", (4 << 20) + RECORD * (last["epochs"] - first["epochs"]))]:
            high = max(one[name] for one in early)
            if high > first[name] + most + (6 if name == "handles" else 0) and name != "folder" or name == "folder" and last[name] > 3 * first[name] + most:
                raise Finding(f"{name} grows from {first[name]} to {high} in {last['epochs'] - first['epochs']} epochs")
    except Finding as problem:
        facts["finding"] = str(problem)
        print(f"FINDING {job}: {problem}", flush=True)
    finally:
        kill(child)
    log.add(job, **facts)
    print(f"{job}: {facts}", flush=True)


def table(path, rows, labels):
    lines = [",".join([*(f"x{at}" for at in range(len(rows[0]))), "label"])]
    lines += [",".join([*(repr(x) for x in row), str(label)]) for row, label in zip(rows, labels)]
    path.write_text("\n".join(lines) + "\n")


def odd_data(inputs):
    """Name to file: what people have by mistake."""
    chance = random.Random(5)
    rows, given, _ = jobs.clouds(240, 4, 0.2, 6, classes=3)
    made = {
        "labels all equal": (rows, [0] * 240),
        "a class of one sample": (rows, [2 if at == 0 else label % 2 for at, label in enumerate(given)]),
        "a class that is nearly all": (rows, [0 if at % 40 else 1 for at in range(240)]),
        "every row twice, with other labels": (rows[:120] * 2, given[:120] + [(label + 1) % 3 for label in given[:120]]),
        "all rows the same": ([rows[0]] * 240, given),
        "constant features": ([[row[0], 7.0, 7.0, 7.0] for row in rows], given),
        "all features constant": ([[7.0] * 4 for _ in rows], given),
        "features of 1e30": ([[1e30 * x for x in row] for row in rows], given),
        "features of 1e38": ([[1e38 * math.copysign(1, x) for x in row] for row in rows], given),
        "features of 1e-30": ([[1e-30 * x for x in row] for row in rows], given),
        "features of 1e-45": ([[1e-45 * x for x in row] for row in rows], given),
        "one feature of 1e30": ([[1e30 * row[0], *row[1:]] for row in rows], given),
        "labels by chance": (rows, [chance.randrange(3) for _ in rows]),
        "as many classes as rows": (rows, list(range(240))),
        "two rows": (rows[:2], [0, 1]),
        "one row": (rows[:1], [0]),
    }
    for name, (data, labels) in made.items():
        table(inputs / f"odd {name}.csv", data, labels)
    (inputs / "odd a number that is none.csv").write_text("a,b,label\n1,nan,x\n2,3,y\n" * 40)
    (inputs / "odd a number without end.csv").write_text("a,b,label\n1,inf,x\n2,3,y\n")
    return [*made, "a number that is none", "a number without end"]


def check_numbers(path, value, place=""):
    """Of results: probabilities and accuracies lie between 0 and 1; no number is infinite."""
    if isinstance(value, dict):
        for key, one in value.items():
            check_numbers(path, one, f"{place}.{key}")
    elif isinstance(value, list):
        for one in value:
            check_numbers(path, one, place)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise Finding(f"{path}{place} is {value}")
        if any(word in place for word in ("accuracy", "test_last", "test_best", "precision_of", "recall")) and not -1e-9 <= value <= 1 + 1e-9:
            raise Finding(f"{path}{place} is {value}")


def check_sane(here, said, code):
    if code == 2:
        if not said.strip().startswith("error: ") and "error: " not in said:
            raise Finding(f"it ends without a word: {said[-400:]}")
        return 0
    if code not in (0, 1):
        raise Finding(f"ends with {code}: {said[-600:]}")
    for name in ("results.json", "audit.json"):
        if (here / "run" / name).exists():
            check_numbers(name, json.loads((here / "run" / name).read_text()))
    for line in (here / "run/audit.csv").read_text().splitlines()[1:] if (here / "run/audit.csv").exists() else []:
        if "nan" in line.lower().split(",") or ",inf," in line.lower():
            raise Finding(f"audit.csv: {line}")
    return 1


def odd(options, inputs, log):
    names = odd_data(inputs)
    hosts = ["cross-entropy", "rolr", "dividemix", "co-teaching", "disc", "unicon"]
    tries = [(name, "audit", []) for name in names]
    tries += [(name, "train", ["--host", host]) for name in names for host in hosts]
    tries += [("labels by chance", "train", ["--host", host, "--set", f"optimiser.lr={rate}"]) for host in hosts for rate in ("1e6", "1e30", "1e-30")]
    tries += [("labels by chance", "train", ["--host", host, "--set", "batch=1"]) for host in hosts]
    tries += [(name, "train", ["--host", "rolr", "--plugin", "negscale", "--set", "tree=learnt"]) for name in names]
    for name, verb, more in tries:
        job = " ".join([f"{verb} {name}", *more[1:]])
        if log.of(job) or (options.only and name not in options.only):
            continue
        here, facts = empty(options.work / "trial"), {}
        words = [verb, *(["--data"] if verb == "train" else []), f"{inputs}/odd {name}.csv", "--label-column", "label", *more, "--quiet", "--out", "run"]
        words += ["--epochs", "3", "--set", "baseline=none", "--set", "hidden=[8]", "--precision", "f32"] if verb == "train" else []
        try:
            code, said = run(words, here, environment(), may_fail=True)
            facts["results"] = check_sane(here, said, code)
            facts["words"] = said.strip()[-300:]
        except Finding as problem:
            facts["finding"] = str(problem)
            print(f"FINDING {job}: {problem}", flush=True)
        log.add(job, **facts)
        print(f"{job}: {'a result' if facts.get('results') else facts.get('words', 'see above')}", flush=True)


def run_campaign(options):
    log, inputs = Log(options.work, "long", options.seed), options.work / "inputs"
    jobs.prepare(inputs)
    jobs.write_table(inputs / "tiny.csv", 64, 1)
    many_epochs(options, inputs, log)
    odd(options, inputs, log)
    mine = [line for line in log.lines if line["campaign"] == "long"]
    found = [line for line in mine if "finding" in line]
    print(f"{len(mine)} tries, {sum(line.get('results', 0) for line in mine)} with a result, {sum('words' in line and not line['results'] for line in mine)} refused in words, {len(found)} findings")
    return bool(found)
