"""A reviewer for the tutorial who knows the truth: decides so many labels as a person would with the keys, in the same order.

    python3 reviewer.py audit 400     # the folder of an audit of clothes, and how many decisions

Needs nothing but Python, and negscale on the path.
"""
import csv
import json
import signal
import subprocess
import sys
import urllib.request


def main(audit, count):
    truth = {row["path"]: row["label"] for row in csv.DictReader(open("clothes-truth.csv"))}
    command = ["negscale", "review", audit, "--no-open", "--reviewer", "script"]
    review = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    address, token = review.stdout.readline().strip().split("/?token=")
    cookie = f"negscale-{address.rsplit(':', 1)[1]}={token}"

    def ask(path, body=None):
        headers = {"Cookie": cookie, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return json.load(urllib.request.urlopen(urllib.request.Request(address + path, data, headers)))

    state = ask("/api/next")
    for _ in range(count):
        if not state["next"]:
            break
        sample = state["next"][0]
        decision = {"label": truth[sample["path"]]}
        state = ask("/api/decide", {"rows": [[sample["row"], decision]], "milliseconds": 0, "informed": False})
    figures = ask("/api/figures")
    right, suggested, missed = figures["right"], figures["suggested"], figures["missed"]
    print(f"decided                      {figures['decided']} of {figures['rows']}")
    print(f"flags that were right        {right['part']} of {right['of']}")
    print(f"suggestions that were taken  {suggested['part']} of {suggested['of']}")
    low, high = (100 * end for end in missed["interval"])
    print(f"wrong labels without a flag  {missed['part']} of {missed['of']} ({low:.1f} % to {high:.1f} %)")
    print(figures["advice"] or "too few flags for advice")
    review.send_signal(signal.SIGINT)
    review.wait()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
