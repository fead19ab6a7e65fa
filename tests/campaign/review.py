"""A review that is killed: every decision that was answered is on record, and the rest can be made again."""
import http.client
import json
import subprocess
import threading

from common import Finding, PROGRAM, check_words, environment, kill, run
from jobs import NAMES

AUDIT = ["--label-column", "label", "--truth-column", "truth", "--quiet", "--out", "run"]
# Decisions of one trial.
DECISIONS = 60


class Page:
    """The server, and a client that was let in."""

    def __init__(self, here, env=None):
        self.said = here / ".review"
        with self.said.open("wb") as out:
            words = [str(PROGRAM), "review", "run", "--no-open"]
            self.child = subprocess.Popen(
                words, cwd=here, env=env or environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out, start_new_session=True
            )
        line = self.child.stdout.readline().decode().strip()
        if "?token=" not in line:
            self.child.wait()
            raise Finding(f"negscale review does not start: {self.said.read_text()[-800:]}")
        address, self.token = line.removeprefix("http://").split("/?token=")
        self.host, self.port = address, int(address.split(":")[1])
        self.line = None

    def headers(self):
        return {"Host": self.host, "Cookie": f"negscale-{self.port}={self.token}", "Content-Type": "application/json"}

    def ask(self, method, path, body=None):
        """Status and answer; None where the connection breaks, as when the server is killed."""
        try:
            if self.line is None:
                self.line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            self.line.request(method, path, None if body is None else json.dumps(body), self.headers())
            answer = self.line.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            return None

    def end(self):
        if self.line is not None:
            self.line.close()
        return kill(self.child)


def wish(row):
    after = ["drop", "unsure", {"label": NAMES[0]}, {"label": NAMES[3]}][row % 4]
    return {"rows": [[row, after]], "milliseconds": row, "informed": False}


def on_record(here):
    """Rows decided, in order, as far as lines are whole."""
    path = here / "run/review.jsonl"
    whole = [line for line in path.read_text().splitlines(True) if line.endswith("\n")] if path.exists() else []
    lines = [json.loads(line) for line in whole]
    return [line["row"] for line in lines if line["line"] == "decision"]


def decide(page, answered, until):
    """Decides one row after another until so many are on record, or the server is gone. Returns what was asked last and not answered."""
    found = page.ask("GET", "/api/next")
    while found is not None and len(answered) < until:
        status, value = found
        if status != 200:
            raise Finding(f"review answers {status}: {value}")
        row = value["next"][0]["row"]
        found = page.ask("POST", "/api/decide", wish(row))
        if found is None:
            return row
        answered.append(row)
    return None


def prepare(here, inputs):
    """The audit whose labels are looked through."""
    run(["audit", f"{inputs}/train.csv", *AUDIT], here)


def check(here, answered, pending):
    """Answered decisions are on record, in order; the pending one may be."""
    found = on_record(here)
    if found not in (answered, [*answered, pending]):
        raise Finding(f"{len(found)} decisions on record, {len(answered)} were answered")
    answered[:] = found


def finish(here, answered, env=None):
    page = Page(here, env)
    decide(page, answered, DECISIONS)
    page.end()
    check(here, answered, None)
    run(["review", "export", "run"], here)


def trial(here, chance, kills, cut=None, env=None):
    """Kills the server until it was killed so often or all is decided. `cut` is what happens to the disk then."""
    answered, struck = [], 0
    while struck < kills and len(answered) < DECISIONS:
        page = Page(here, env)
        pending = None
        timer = threading.Timer(chance.uniform(0.0, 0.25), lambda: kill(page.child))
        timer.start()
        pending = decide(page, answered, DECISIONS)
        timer.cancel()
        timer.join()
        page.end()
        check_words(["review"], 0, page.said.read_text(errors="replace"))
        struck += 1
        if cut:
            cut()
        check(here, answered, pending)
    finish(here, answered, env)
    return struck
