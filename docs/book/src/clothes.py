"""The tutorial's dataset: pictures of Fashion-MNIST as PNG files in class folders, some of them in the wrong folder.

    python3 clothes.py make data/fashion-mnist     # writes the folder clothes, and clothes-truth.csv
    python3 clothes.py check audit                 # compares the files of an audit with clothes-truth.csv

clothes/train has 6,000 pictures, about 15 % of them in the folder of a class that looks alike, and one file that is cut off. clothes/test has
2,000 pictures, all in the right folder. Needs nothing but Python.
"""
import csv
import random
import struct
import sys
import zlib
from pathlib import Path

CLASSES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"]
LOOK_ALIKES = {
    "t-shirt": ["shirt", "dress"], "shirt": ["t-shirt", "pullover", "coat"], "pullover": ["coat", "shirt"],
    "coat": ["pullover", "shirt"], "dress": ["t-shirt", "coat"], "trouser": ["dress"],
    "sandal": ["sneaker"], "sneaker": ["boot", "sandal"], "boot": ["sneaker"], "bag": [],
}  # fmt: skip
MISTAKES = 0.17  # share of each class that has a look-alike


def read(folder, part):
    """Pictures of 784 bytes and class numbers, from IDX files."""
    pixels = Path(folder, f"{part}-images-idx3-ubyte").read_bytes()[16:]
    labels = Path(folder, f"{part}-labels-idx1-ubyte").read_bytes()[8:]
    return [pixels[784 * i : 784 * (i + 1)] for i in range(len(labels))], labels


def png(pixels):
    """A grey picture of 28 x 28 as a PNG file."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + pixels[28 * row : 28 * (row + 1)] for row in range(28))
    head = struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make(source):
    draw = random.Random(1)
    truth = []
    for part, name, count in [("train", "train", 6000), ("t10k", "test", 2000)]:
        pictures, labels = read(source, part)
        for number in range(count):
            true = CLASSES[labels[number]]
            others = LOOK_ALIKES[true]
            mistaken = name == "train" and others and draw.random() < MISTAKES
            given = draw.choice(others) if mistaken else true
            path = Path("clothes", name, given, f"{number:05}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            data = png(pictures[number])
            path.write_bytes(data[: len(data) // 2] if (name, number) == ("train", 1234) else data)
            if name == "train":
                truth.append([path.as_posix(), true])
    with open("clothes-truth.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["path", "label"], *truth])
    wrong = sum(Path(path).parent.name != true for path, true in truth)
    print(f"{wrong} of {len(truth)} training pictures are in a wrong folder")


def check(audit):
    truth = {row["path"]: row["label"] for row in csv.DictReader(open("clothes-truth.csv"))}
    ranked = list(csv.DictReader(open(Path(audit, "audit.csv"))))
    wrong = [row["given"] != truth[row["path"]] for row in ranked]
    hits = [is_wrong for row, is_wrong in zip(ranked, wrong) if row["flag"] == "true"]
    print(f"wrong labels        {sum(wrong)} of {len(wrong)}")
    print(f"among the first 100 {sum(wrong[:100])}")
    print(f"flagged             {len(hits)}, of these wrong {sum(hits)}")
    for what, name in [("corrected", "corrected.csv"), ("reviewed ", "review/corrected.csv")]:
        if Path(audit, name).exists():
            table = csv.DictReader(open(Path(audit, name)))
            print(f"wrong in {what}  {sum(row['label'] != truth[row['path']] for row in table)}")


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](sys.argv[2])
