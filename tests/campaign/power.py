"""A power cut: SIGKILL, and then the folder becomes what a disk may hold that lost all that was not synced.

The program runs with `shim.c` loaded before it, on a tmpfs, and every fsync and fdatasync puts aside what is safe from then on: the content of that file, or
the names in that folder. After the kill the folder is made anew from that, in one of two ways:

- strict: exactly what was synced, and nothing else: a file whose folder was not synced after it got its name is not there, one whose content was never
  synced is empty;
- mixed: each name and each content that was not synced is lost, there, or (for contents) cut off somewhere, by chance. Names change one by one, as POSIX
  allows, although most file systems keep their order.

Limits: writes inside one file are lost from the end only (cut off), not block by block; modes, times and links are not modelled; memory maps are not, and
the program writes none. What `npm` writes is in a process of its own, which the library sees, too.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

import jobs
import kill as kills
import review
import same
from common import Finding, Log, empty, environment

HERE = pathlib.Path(__file__).resolve().parent
KILLS = 3


def build(work):
    """The library, compiled."""
    library = work / "shim.so"
    source = HERE / "shim.c"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


class Disk:
    """A folder, and what of it is safe."""

    def __init__(self, place):
        self.live, self.synced = empty(place / "disk"), empty(place / "synced")
        self.snapshot()

    def environment(self, library, **more):
        return environment(LD_PRELOAD=library, CAMPAIGN_DISK=self.live, CAMPAIGN_SYNCED=self.synced, **more)

    def snapshot(self):
        """Everything that is there is safe."""
        empty(self.synced)
        for folder, folders, files in os.walk(self.live):
            lines = []
            for name in [*folders, *files]:
                number = os.lstat(os.path.join(folder, name)).st_ino
                lines.append(f"{number} {'d' if name in folders else 'f'} {name}\0")
            for name in files:
                path = os.path.join(folder, name)
                shutil.copyfile(path, self.synced / f"f.{os.lstat(path).st_ino}")
            (self.synced / f"d.{os.lstat(folder).st_ino}").write_text("".join(lines))

    def names(self, number):
        """What is safe of a folder: name to number and kind."""
        try:
            text = (self.synced / f"d.{number}").read_text()
        except FileNotFoundError:
            return {}
        entries = [line.split(" ", 2) for line in text.split("\0") if line]
        return {name: (int(inode), kind) for inode, kind, name in entries}

    def read(self, number):
        path = self.synced / f"f.{number}"
        return path.read_bytes() if path.exists() else b""

    def cut(self, chance, is_mixed):
        """The power is gone, and comes back."""
        after = empty(self.live.parent / "after")
        live = {}  # number to path
        for folder, folders, files in os.walk(self.live):
            live |= {os.lstat(path).st_ino: path for path in (os.path.join(folder, name) for name in [*folders, *files])}

        def content(number):
            safe = self.read(number)
            if not is_mixed or number not in live:
                return safe
            there = pathlib.Path(live[number]).read_bytes()
            torn = there[: chance.randint(min(len(safe), len(there)), len(there))]
            return chance.choice([safe, there, torn])

        def make(number, place):
            names = self.names(number)
            if is_mixed:
                folder = live.get(number, self.live if number == os.lstat(self.live).st_ino else None)
                now = {}
                for entry in os.scandir(folder) if folder else []:
                    now[entry.name] = (entry.inode(), "d" if entry.is_dir(follow_symlinks=False) else "f")
                either = {name: chance.choice([names.get(name), now.get(name)]) for name in sorted(names.keys() | now.keys())}
                names = {name: entry for name, entry in either.items() if entry}
            for name, (inode, kind) in sorted(names.items()):
                if kind == "d":
                    (place / name).mkdir()
                    make(inode, place / name)
                else:
                    (place / name).write_bytes(content(inode))

        make(os.lstat(self.live).st_ino, after)
        # The folder itself stays, so that whoever stands in it does.
        for entry in list(self.live.iterdir()):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for entry in list(after.iterdir()):
            entry.rename(self.live / entry.name)
        self.snapshot()


def checkpoints(here):
    """Names of checkpoints by folder, oldest first."""
    found = {}
    for path in sorted(here.rglob("*.checkpoint")):
        found.setdefault(path.parent.relative_to(here).as_posix(), []).append(path.name)
    return found


def cutter(disk, chance, facts):
    """Cuts, and checks that no checkpoint is lost but perhaps the one that was being written."""

    def cut():
        before = checkpoints(disk.live)
        is_mixed = chance.random() < 0.5
        disk.cut(chance, is_mixed)
        facts["cuts"] += 1
        facts["mixed"] += is_mixed
        after = checkpoints(disk.live)
        for folder, names in before.items():
            newest = max(after.get(folder, [""]))
            if len(names) > 1 and newest < names[-2]:
                raise Finding(f"{folder}: checkpoint {names[-2]} was followed by {names[-1]}, and is gone after a power cut ({'mixed' if is_mixed else 'strict'})")

    return cut


def run_campaign(options):
    log, inputs, library = Log(options.work, "power", options.seed), options.work / "inputs", build(options.work)
    jobs.prepare(inputs)
    todo = kills.all_jobs(inputs, options.work)
    names = [name for name in [*todo, "review"] if not options.only or name in options.only]
    done = {name: sum(line["cuts"] for line in log.of(name)) for name in names}
    memory = pathlib.Path(tempfile.mkdtemp(prefix="negscale-power-", dir="/dev/shm"))
    try:
        while sum(done.values()) < options.count:
            name = min(names, key=done.get)
            number, chance = log.chance(name)
            disk, facts = Disk(memory), {"cuts": 0, "mixed": 0}
            try:
                one(options, inputs, library, todo.get(name), disk, chance, facts)
            except Finding as problem:
                facts["finding"] = str(problem)
                kept = options.work / "findings" / f"power-{options.seed}-{name.replace(' ', '-')}-{number}"
                empty(kept).rmdir()
                shutil.copytree(disk.live, kept)
                print(f"FINDING {name} {number}: {problem}\n  kept in {kept}", flush=True)
            log.add(name, trial=number, **facts)
            done[name] += max(facts["cuts"], 0.25)
            print(f"{name} {number}: {facts['cuts']} cuts; {sum(done.values()):.0f} of {options.count}", flush=True)
    finally:
        shutil.rmtree(memory)
    print(log.table(["cuts", "mixed"]))
    return any("finding" in line for line in log.lines)


def one(options, inputs, library, job, disk, chance, facts):
    here, cut = disk.live, cutter(disk, chance, facts)
    if job is None:
        place = options.work / "whole" / "review"
        if not (place / "run/review/corrected.csv").exists():
            empty(place)
            review.prepare(place, inputs)
            review.finish(place, [])
        shutil.copytree(place / "run", here / "run", ignore=lambda _, names: {"review.jsonl", "review"} & set(names))
        disk.snapshot()
        review.trial(here, chance, KILLS, cut, disk.environment(library))
    else:
        path = getattr(job, "path", None) or environment()["PATH"]
        place = options.work / "whole" / job.name.replace(" ", "-")
        seconds = kills.whole(job, place, environment(PATH=path))
        kills.trial(job, here, chance, seconds, KILLS, disk.environment(library, PATH=path), cut)
    same.compare(here / "run", place / "run")
