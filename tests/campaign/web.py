"""Strangers at the review page, and hostile texts in every field of a report and of the page.

Requests are drawn at random from other origins, names of other machines (as after DNS rebinding), paths that climb, oversized heads and bodies, and damaged HTTP; none may
get anything but a refusal, change the record, or stop the server. Slow clients hold connections and say nothing: others are answered meanwhile, and the slow ones are let go. With
Chromium, pages with hostile names are opened, and no script of theirs may run (tests/browser).
"""
import json
import os
import shutil
import socket
import subprocess
import time

import jobs
import review
from common import ROOT, Finding, Log, PROGRAM, empty, environment, run

HOSTILE = [
    "<script>document.title='xss'</script>",
    "<img src=x onerror=document.title='xss'>",
    "\"><svg/onload=document.title='xss'>",
    "'><body onload=document.title='xss'>",
    "javascript:document.title='xss'",
    "</title><script>document.title='xss'</script>",
    "</script><script>document.title='xss'</script>",
    "</style><script>document.title='xss'</script>",
    "<!--<script>document.title='xss'//-->",
    "<iframe srcdoc=\"<script>parent.document.title='xss'</script>\">",
    "<a href=javascript:document.title='xss'>a</a>",
    "{{7*7}}${7*7}<%= 7*7 %>#{7*7}",
    "=cmd|'/c calc'!A1",
    "+1+cmd",
    "@SUM(1)",
    "a\u202egnp.exe",
    "\u0000\u0007\u001b[31mred",
    "../../../../etc/passwd",
    "%3Cscript%3Edocument.title='xss'%3C/script%3E",
    "&lt;script&gt;document.title='xss'&lt;/script&gt;",
    "<math><mtext></p><img src=x onerror=document.title='xss'>",
    "<details open ontoggle=document.title='xss'>",
    "<input autofocus onfocus=document.title='xss'>",
    "`${document.title='xss'}`",
    "x" * 5000,
]


def raw(port, data, wait=5.0):
    """Sends bytes; the answer as far as it comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as line:
        answer = b""
        try:
            line.sendall(data)
            while len(answer) < 1 << 16:
                block = line.recv(1 << 14)
                if not block:
                    break
                answer += block
                if b"\r\n\r\n" in answer:
                    break
        except OSError:
            pass
        return answer


def status(answer):
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.") and answer[9:12].isdigit() else 0


def attack(chance, page):
    """One request that must be refused: its bytes, and what it was."""
    port, token = page.port, page.token
    host = f"127.0.0.1:{port}"
    cookie = f"negscale-{port}={token}"
    method = chance.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT", "PATCH"])
    path = chance.choice(["/", "/api/next", "/api/decide", "/api/undo", "/api/groups", "/api/figures", "/picture/0", "/review.js", "/api/evidence?row=0"])
    body = json.dumps(chance.choice([{"rows": [[0, "drop"]], "milliseconds": 1, "informed": False}, {}, [], {"rows": [[0, "drop"]] * 9}])).encode()
    headers = {"Host": host, "Cookie": cookie, "Content-Type": "application/json"}
    kind = chance.choice(["no cookie", "wrong cookie", "other host", "other origin", "form", "climbing", "large head", "large body", "damaged", "two hosts", "token elsewhere"])
    if kind == "no cookie":
        del headers["Cookie"]
    elif kind == "wrong cookie":
        headers["Cookie"] = chance.choice([f"negscale-{port}={token[:-1]}", f"negscale-{port}=", f"negscale-{port + 1}={token}", "x", f"NEGSCALE-{port}={token}"])
    elif kind == "other host":
        headers["Host"] = chance.choice(["evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", f"[::1]:{port}", f"0.0.0.0:{port}", f"127.1:{port}", f"localhost.:{port}", ""])
    elif kind == "other origin":
        headers["Origin"] = chance.choice(["http://evil.example", "null", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}", "file://", f"http://127.0.0.1:{port}.evil.example", "http://localhost"])
    elif kind == "form":
        method, headers["Content-Type"] = "POST", chance.choice(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json; charset=utf-8", "application/jsonx"])
    elif kind == "climbing":
        method = "GET"
        path = chance.choice(["/../etc/passwd", "/picture/../../etc/passwd", "/picture/%2e%2e%2fetc%2fpasswd", "//etc/passwd", "/picture/-1", "/picture/99999999999999999999", "/review.js/../../x", "/picture/0%00.png", "/api/../settings.toml", "/./.negscale-folder"])
    elif kind == "large head":
        headers["X-Long"] = "a" * chance.choice([1 << 14, 1 << 16, 1 << 20])
    elif kind == "large body":
        method, path, body = "POST", "/api/decide", b"[" * chance.choice([1 << 16, 1 << 18, 1 << 21])
    elif kind == "two hosts":
        pass
    elif kind == "token elsewhere":
        del headers["Cookie"]
        path = chance.choice(["/api/next", "/review.js", "/picture/0"]) + f"?token={token}"
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if kind == "two hosts":
        head += "Host: evil.example\r\n"
    length = chance.choice([len(body), len(body), 1 << 40]) if kind == "large body" else len(body)
    data = f"{head}Content-Length: {length}\r\nConnection: close\r\n\r\n".encode() + body
    if kind == "damaged":
        # Without the cookie, so that whatever it becomes has to be refused.
        data = bytearray(data.replace(cookie.encode(), b"x"))
        for _ in range(chance.randint(1, 30)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        data = bytes(data[: chance.randint(1, len(data))])
    return kind, data


def lines_of(here):
    path = here / "run/review.jsonl"
    return path.read_bytes() if path.exists() else b""


def attacks(options, inputs, log):
    job = "requests of strangers"
    done = sum(line["requests"] for line in log.of(job))
    while done < options.count:
        number, chance = log.chance(job)
        here = empty(options.work / "trial")
        review.prepare(here, inputs)
        page, kinds, facts = review.Page(here), {}, {}
        before = lines_of(here)
        wanted = min(1000, options.count - done)
        try:
            for _ in range(wanted):
                kind, data = attack(chance, page)
                # Whoever sends half a request may wait for the end of patience; nobody waits for that here.
                answer = raw(page.port, data, 0.2 if kind == "damaged" else 5)
                kinds[kind] = kinds.get(kind, 0) + 1
                found = status(answer)
                if 200 <= found < 400:
                    raise Finding(f"{kind}: answered {found}: {data[:300]!r} {answer[:300]!r}")
                if found == 500:
                    raise Finding(f"{kind}: an error inside: {data[:300]!r} {answer[:300]!r}")
                if page.token.encode() in answer:
                    raise Finding(f"{kind}: the token is in the answer")
                if page.child.poll() is not None:
                    raise Finding(f"{kind}: the server ended: {data[:300]!r}")
            if lines_of(here) != before:
                raise Finding("the record changed")
            if page.ask("GET", "/api/next")[0] != 200:
                raise Finding("the page does not answer its owner any more")
        except Finding as problem:
            facts["finding"] = str(problem)
            print(f"FINDING {job}: {problem}", flush=True)
        finally:
            page.end()
        done += wanted
        log.add(job, trial=number, requests=wanted, kinds=kinds, **facts)
        print(f"{job}: {done} of {options.count}", flush=True)


def slow(options, inputs, log):
    """Two hundred clients that say nothing, or a letter a second."""
    job = "slow clients"
    if log.of(job):
        return
    here, facts = empty(options.work / "trial"), {}
    review.prepare(here, inputs)
    page = review.Page(here)
    lines = []
    try:
        if page.ask("GET", "/api/next")[0] != 200:
            raise Finding("the owner is not answered")
        for at in range(200):
            line = socket.create_connection(("127.0.0.1", page.port), timeout=5)
            if at % 2:
                line.sendall(b"GET /api/next HTTP/1.1\r\nHost:")
            lines.append(line)
        begun = time.monotonic()
        for _ in range(20):
            if page.ask("GET", "/api/next")[0] != 200:
                raise Finding("the owner, who was there before, is not answered beside slow clients")
        facts["owner"] = round((time.monotonic() - begun) / 20, 4)
        handles = len(os.listdir(f"/proc/{page.child.pid}/fd"))
        if handles > 120:
            raise Finding(f"{handles} handles are open")
        facts["handles"] = handles
        # They are let go after 20 seconds, although one of them says a letter now and then.
        end, freed = time.monotonic() + 45, None
        while time.monotonic() < end and freed is None:
            for line in lines[1::2]:
                try:
                    line.sendall(b"a")
                except OSError:
                    pass
            time.sleep(1)
            if len(os.listdir(f"/proc/{page.child.pid}/fd")) < 20:
                freed = round(time.monotonic() - begun, 1)
        if freed is None:
            raise Finding(f"after 45 seconds {len(os.listdir(f'/proc/{page.child.pid}/fd'))} handles are still open")
        facts["freed_after"] = freed
    except Finding as problem:
        facts["finding"] = str(problem)
        print(f"FINDING {job}: {problem}", flush=True)
    finally:
        for line in lines:
            line.close()
        page.end()
    log.add(job, **facts)
    print(f"{job}: {facts}", flush=True)


def hostile(options, inputs, log):
    """A report, a page of an audit and a review whose every name and text is hostile, opened in Chromium."""
    job = "hostile texts"
    if log.of(job):
        return
    if not (shutil.which("node") and any(map(shutil.which, ["chromium", "chromium-browser", "google-chrome"]))):
        print(f"{job}: left out: there is no node or no Chromium; `.ci/look` installs them")
        return
    here, facts = empty(options.work / "trial"), {}
    texts = [text.replace("\0", "") for text in HOSTILE]
    rows, given, _ = jobs.clouds(25 * len(texts), 5, 0.2, 9, classes=len(texts))
    heads = ["<b onclick=document.title='xss'>a", "b\"onmouseover=document.title='xss'", "c", "d", "e", "note", "source", "label"]
    lines = [",".join(jobs.quoted(head) for head in heads)]
    for at, (row, label) in enumerate(zip(rows, given)):
        cells = [*(f"{x:.4f}" for x in row), texts[at % len(texts)], texts[at % 5], texts[label]]
        lines.append(",".join(jobs.quoted(str(cell)) for cell in cells))
    data = here / "hostile <i>.csv"
    data.write_text("\n".join(lines) + "\n")
    common = ["--label-column", "label", "--quiet"]
    try:
        run(["audit", str(data), *common, "--ignore-columns", "note", "--source-column", "source", "--out", "run"], here)
        words = ["train", "--data", str(data), *common, "--epochs", "2", "--set", "baseline=none", "--set", "ignore_columns=[\"note\", \"source\"]", "--out", "trained"]
        run(words, here)
        pages = [here / "run/report.html", here / "trained/report.html"]
        done = subprocess.run(["node", ROOT / "tests/browser/look.mjs", *pages], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Finding(f"report: {done.stdout[-600:]} {done.stderr[-600:]}")
        done = subprocess.run(["node", ROOT / "tests/browser/hostile.mjs", PROGRAM, here / "run"], capture_output=True, text=True, check=False, env=environment())
        if done.returncode != 0:
            raise Finding(f"review: {done.stdout[-600:]} {done.stderr[-600:]}")
        facts["texts"] = len(texts)
    except Finding as problem:
        facts["finding"] = str(problem)
        print(f"FINDING {job}: {problem}", flush=True)
    log.add(job, **facts)
    print(f"{job}: {facts}", flush=True)


def run_campaign(options):
    log, inputs = Log(options.work, "web", options.seed), options.work / "inputs"
    jobs.prepare(inputs)
    attacks(options, inputs, log)
    slow(options, inputs, log)
    hostile(options, inputs, log)
    print(log.table(["requests"]))
    return any("finding" in line for line in log.lines)
