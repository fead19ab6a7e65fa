"""What all campaigns share: where things are, a log that survives being stopped, and processes that are started and killed."""
import atexit
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("NEGSCALE", ROOT / "target/release/negscale")).resolve()
# Seconds after which a command that should have ended is a finding.
PATIENCE = 300


class Finding(Exception):
    """Something that was promised does not hold."""


class Log:
    """One line of JSON per trial; a campaign that is started again goes on where the log ends."""

    def __init__(self, folder, campaign, seed):
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.campaign, self.seed, self.lines = folder / "log.jsonl", campaign, seed, []
        if self.path.exists():
            # A last line without its end belongs to a trial that was not finished.
            whole = [line for line in self.path.read_text().splitlines(True) if line.endswith("\n")]
            self.path.write_text("".join(whole))
            self.lines = [json.loads(line) for line in whole]

    def of(self, job):
        mine = {"campaign": self.campaign, "seed": self.seed, "job": job}
        return [line for line in self.lines if all(line.get(key) == value for key, value in mine.items())]

    def add(self, job, **facts):
        line = {"campaign": self.campaign, "seed": self.seed, "job": job, **facts, "at": time.strftime("%Y-%m-%d %H:%M:%S")}
        self.lines.append(line)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def chance(self, job):
        """Randomness of the next trial: a function of seed, campaign, job and its number alone."""
        number = len(self.of(job))
        return number, random.Random(f"{self.seed} {self.campaign} {job} {number}")

    def table(self, columns):
        """Sums of the columns by job, as a Markdown table; columns are names of facts, summed where they are numbers."""
        mine = [line for line in self.lines if line["campaign"] == self.campaign and line["seed"] == self.seed]
        rows = [["job", "trials", *columns, "findings"]]
        for job in dict.fromkeys(line["job"] for line in mine):
            of_job = self.of(job)
            sums = [sum(line.get(column, 0) for line in of_job) for column in columns]
            rows.append([job, len(of_job), *sums, sum("finding" in line for line in of_job)])
        if len(rows) > 2:
            rows.append(["all", *(sum(row[at] for row in rows[1:]) for at in range(1, len(rows[0])))])
        text = [" | ".join(str(cell) for cell in row) for row in rows]
        text.insert(1, " | ".join("---" for _ in rows[0]))
        return "\n".join(f"| {line} |" for line in text)


def environment(**more):
    """Ours without what would change what the program does."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("NEGSCALE", "RUST_"))}
    return keep | {key: str(value) for key, value in more.items()}


def start(words, cwd, env=None, said=None, **more):
    """Starts the program as the leader of a session, so that all of it can be killed at once."""
    said = said or (cwd / ".said")
    out = open(said, "wb")
    child = subprocess.Popen(
        [str(PROGRAM), *words], cwd=cwd, env=env or environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, **more
    )
    RUNNING.append(child)
    return child


# Nothing goes on when a campaign is stopped.
RUNNING = []
atexit.register(lambda: [kill(child) for child in RUNNING if child.poll() is None])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def kill(child, all_of_it=True):
    """SIGKILL; returns whether it still ran."""
    ran = child.poll() is None
    for target in [lambda: os.killpg(child.pid, signal.SIGKILL)] if all_of_it else [child.kill]:
        try:
            target()
        except ProcessLookupError:
            pass
    child.wait()
    if child in RUNNING:
        RUNNING.remove(child)
    # Its children, too, before anybody looks at what they left.
    end = time.monotonic() + 5
    while all_of_it and time.monotonic() < end:
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.002)
    return ran


def run(words, cwd, env=None, may_fail=False, **more):
    """Runs the program to its end; gives code and what it said."""
    child = start(words, cwd, env, **more)
    try:
        code = child.wait(PATIENCE)
        RUNNING.remove(child)
    except subprocess.TimeoutExpired:
        kill(child)
        raise Finding(f"{' '.join(map(str, words))}: not done after {PATIENCE} s") from None
    said = (cwd / ".said").read_text(errors="replace")
    check_words(words, code, said)
    if code != 0 and not may_fail:
        raise Finding(f"{' '.join(map(str, words))}: exit code {code}: {said[-800:]}")
    return code, said


def check_words(words, code, said):
    """Nothing ends in a panic, whatever happens."""
    if "panicked at" in said or code == 101:
        raise Finding(f"{' '.join(map(str, words))}: panics: {said[-800:]}")


def empty(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]
