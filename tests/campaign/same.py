"""Whether two folders hold the same, to the bit, but for what tells the time.

Left out, and nothing else:
- keys `out` (where it is), `seconds`, `seconds_training`, `time`, `milliseconds`, `at` and `started` in JSON, JSON lines and settings.toml;
- in TensorBoard's events the wall time of each, the time that an epoch took, and the time in the name of the file;
- on pages and in summary.txt, durations and dates (`TIMES`), the time that each epoch took, and `started` in the settings that they show;
- the number of threads in settings and results: a sweep gives a run as many as there are for the runs that are left, and no other bit depends on it;
- `.negscale-folder`, the list of files: instead, every file that is there must be on it.
"""
import json
import re

from common import Finding, digest

MARKER = ".negscale-folder"
CLOCK = {"out", "seconds", "seconds_training", "time", "milliseconds", "at", "started"}
TIMES = re.compile(rb" *\b\d+(\.\d+)? (ms|s|min|h)\b|\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def timeless(value):
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if key not in CLOCK}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def events(data):
    """Payloads of TensorBoard's records without their first field, the wall time."""
    payloads, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        payload = data[at + 12 : at + 12 + length]
        at += 16 + length
        payload = payload[9:] if payload[:1] == b"\x09" else payload
        payloads.append(re.sub(rb"(?s)seconds\x15....", b"", payload))
    return b"".join(payloads)


def timeless_table(found):
    """A table of epochs without its column of times."""
    table = found[0]
    heads = re.findall(rb"(?s)<th[^>]*>(.*?)</th>", table)
    if b"run/epoch_seconds" not in heads:
        return table
    column = heads.index(b"run/epoch_seconds")
    # The first cell of a row may be a head, too.
    cells = lambda row: re.findall(rb"(?s)<t[hd][^>]*>.*?</t[hd]>", row[0])
    return re.sub(rb"(?s)<tr[^>]*>.*?</tr>", lambda row: b"".join(cells(row)[:column] + cells(row)[column + 1 :]), table)


def page(data):
    data = re.sub(rb"(?s)<table.*?</table>", timeless_table, data)
    return re.sub(rb"started = \d+", b"", TIMES.sub(b"", data))


def normal(name, data):
    if name.endswith(".json"):
        return re.sub(rb"\d+ threads", b"", json.dumps(timeless(json.loads(data)), sort_keys=True).encode())
    if name.endswith(".jsonl"):
        return "\n".join(json.dumps(timeless(json.loads(line)), sort_keys=True) for line in data.splitlines()).encode()
    if name.endswith("settings.toml"):
        return re.sub(rb"(?m)^(started|threads) = \d+\n|\d+ threads", b"", data)
    if name.endswith((".html", "summary.txt")):
        return page(data)
    return events(data) if name.startswith("events/") or "/events/" in name else data


def contents(folder):
    """What a folder holds, by name, as digests."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or path.name in (MARKER, ".said"):
            continue
        key = re.sub(r"events/.*", "events/one", name)
        if key in found:
            raise Finding(f"{folder}: two files of events")
        found[key] = digest(normal(name, path.read_bytes()))
    return found


def compare(folder, whole):
    """Raises unless the folder holds what the uninterrupted one does."""
    ours, theirs = contents(folder), contents(whole)
    if ours != theirs:
        differ = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        words = [f"{name} ({'missing' if name not in ours else 'too many' if name not in theirs else 'differs'})" for name in differ]
        raise Finding(f"{folder} is not {whole}: {', '.join(words)}")
    for marker in folder.rglob(MARKER):
        listed = set(marker.read_text().splitlines())
        for path in marker.parent.rglob("*"):
            inner = next((parent for parent in path.parents if (parent / MARKER).exists()), None)
            name = path.relative_to(marker.parent).as_posix()
            if path.is_file() and inner == marker.parent and path.name not in (MARKER, "review.jsonl") and name not in listed:
                raise Finding(f"{path} is not on the list of {marker}")


def check_files(folder):
    """After a kill: what has its final name is whole. Parts may lie about; they begin with a dot."""
    for path in folder.rglob("*"):
        if path.suffix == ".json" and not path.name.startswith("."):
            try:
                json.loads(path.read_bytes())
            except ValueError as problem:
                raise Finding(f"{path} is torn: {problem}") from None
