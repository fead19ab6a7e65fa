"""A disk that fills up: a tmpfs of a size drawn at random, in which the work is done until there is no room; then it gets room and goes on.

Every failure must be an error in words (exit code 2, no panic) that speaks of the disk and names a file or folder, what was there before must be whole,
and after room is made the end must be that of an uninterrupted run. The table says which files were being written when it was full.
"""
import collections
import os
import re
import shutil
import subprocess

import jobs
import kill as kills
import review
import same
from common import PATIENCE, PROGRAM, Finding, Log, check_words, empty, environment, run

PAGE = os.sysconf("SC_PAGE_SIZE")
FULL = re.compile(r"no space|disk|full", re.IGNORECASE)


class Mount:
    """A tmpfs; needs root."""

    def __init__(self, place):
        self.place = place

    def __enter__(self):
        self.place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["umount", "-q", self.place], check=False)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "campaign", self.place], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", self.place], check=False)

    def resize(self, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", self.place], check=True)

    def clear(self):
        self.resize("1g")
        for entry in list(self.place.iterdir()):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def taken(folder):
    """Bytes in pages, as tmpfs counts them."""
    return sum(-(-path.stat().st_size // PAGE) * PAGE + PAGE for path in folder.rglob("*"))


def phase(said):
    """What was being written, from the error's words."""
    names = re.findall(r"[\w.-]+\.(?:csv|jsonl?|html|parquet|safetensors|checkpoint|toml|tsv|txt|scores|tgz|said)\b|events\.out|\.negscale-folder|\b\w+-ubyte\b", said)
    name = names[-1] if names else ("epoch" if "could not be saved" in said else "other")
    return re.sub(r"shard-\d+-of-\d+|\d{6}-\d{10}|^\.|\.tgz$", "", name) or name


def trial(job, mount, chance, place, env, seen):
    """Once with a size drawn at random. Whether it was full."""
    here = mount.place
    whole = taken(place / job.run_folder)
    # What is removed by the end, checkpoints above all, takes room as well.
    mount.resize(max(PAGE * 4, int(chance.uniform(0, 1.5) * whole) // PAGE * PAGE))
    said_in = here.parent / "said"
    said_in.mkdir(exist_ok=True)
    full = 0
    for words in job.steps:
        code, said = full_run(words, here, said_in, env)
        if code == 0:
            continue
        full = 1
        check_refusal(words, code, said)
        seen[phase(said)] += 1
        break
    same.check_files(here)
    mount.resize("1g")
    job.settle(here, env)
    same.compare(here / job.run_folder, place / job.run_folder)
    return full


def full_run(words, here, said_in, env):
    """As `run`, with what it says elsewhere than on the full disk."""
    words_there = (said_in / ".said").open("wb")
    done = subprocess.run([str(PROGRAM), *words], cwd=here, env=env, stdin=subprocess.DEVNULL, stdout=words_there, stderr=words_there, timeout=PATIENCE, check=False)
    words_there.close()
    said = (said_in / ".said").read_text(errors="replace")
    check_words(words, done.returncode, said)
    return done.returncode, said


def check_refusal(words, code, said):
    if code != 2:
        raise Finding(f"{' '.join(words)}: a full disk ends with code {code}: {said[-600:]}")
    if not FULL.search(said):
        raise Finding(f"{' '.join(words)}: a full disk is not named: {said[-600:]}")


def review_trial(options, inputs, mount, chance, seen):
    """Decisions while the disk is full are refused and not recorded; those before and after are."""
    here = mount.place
    review.prepare(here, inputs)
    page, answered = review.Page(here), []
    try:
        review.decide(page, answered, chance.randint(1, 30))
        filler = here / "filler"
        with filler.open("wb", 0) as file:
            mount.resize(taken(here) + (1 << 16))
            try:
                while True:
                    file.write(b"\0" * PAGE)
            except OSError:
                pass
        # Up to a page fits into the last one of the record.
        refused = 0
        for _ in range(200):
            row = page.ask("GET", "/api/next")[1]["next"]
            if not row:
                break
            row = row[0]["row"]
            status, value = page.ask("POST", "/api/decide", review.wish(row))
            if status == 200:
                answered.append(row)
                continue
            refused += 1
            if status != 500 or not FULL.search(str(value)):
                raise Finding(f"review on a full disk: {status} {value}")
            if refused == 3:
                break
        review.check(here, answered, None)
        filler.unlink()
        mount.resize("1g")
        review.decide(page, answered, max(review.DECISIONS, len(answered)))
        page.end()
        review.check(here, answered, None)
        if refused:
            seen["review.jsonl"] += 1
        return min(refused, 1)
    finally:
        page.end()


def run_campaign(options):
    if os.geteuid() != 0:
        raise SystemExit("disk: mounting a tmpfs needs root")
    log, inputs = Log(options.work, "disk", options.seed), options.work / "inputs"
    jobs.prepare(inputs)
    todo = kills.all_jobs(inputs, options.work)
    todo["noise file"] = jobs.Job("noise file", [["noise", "--data", "fashion-mnist-subset", "--noise", "sym:0.5", "--out", "run/noise.json"]])
    del todo["train dividemix"]
    names = [name for name in [*todo, "review"] if not options.only or name in options.only]
    trials = -(-options.count // len(names))
    with Mount(options.work / "full" / "disk") as mount:
        for name in names:
            while len(log.of(name)) < trials:
                number, chance = log.chance(name)
                mount.clear()
                facts, seen = {"full": 0}, collections.Counter()
                try:
                    if name == "review":
                        facts["full"] = review_trial(options, inputs, mount, chance, seen)
                    else:
                        job = todo[name]
                        env = environment(PATH=getattr(job, "path", None) or environment()["PATH"])
                        place = options.work / "whole" / name.replace(" ", "-")
                        if name == "noise file":
                            (place / "run").mkdir(parents=True, exist_ok=True)
                            (mount.place / "run").mkdir()
                            run(job.steps[0], place, env)
                        else:
                            kills.whole(job, place, env)
                        facts["full"] = trial(job, mount, chance, place, env, seen)
                except Finding as problem:
                    facts["finding"] = str(problem)
                    kept = options.work / "findings" / f"disk-{options.seed}-{name.replace(' ', '-')}-{number}"
                    empty(kept).rmdir()
                    shutil.copytree(mount.place, kept, ignore_dangling_symlinks=True)
                    print(f"FINDING {name} {number}: {problem}\n  kept in {kept}", flush=True)
                log.add(name, trial=number, while_writing=dict(seen), **facts)
                print(f"{name} {number}: {'full while writing ' + ', '.join(seen) if seen else 'it fits'}", flush=True)
    print(log.table(["full"]))
    total = collections.Counter()
    for line in log.lines:
        if line["campaign"] == "disk":
            total.update(line.get("while_writing", {}))
    print("full while writing: " + ", ".join(f"{name} {count}" for name, count in total.most_common()))
    return any("finding" in line for line in log.lines)
