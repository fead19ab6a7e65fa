#!/usr/bin/env python3
"""A folder of 300 pictures of three classes with known wrong labels, as a small audit meets it: python three_classes.py CIFAR10 OUT [SEED]

CIFAR10 is the folder of data_batch_*.bin (negscale data get cifar10). Cats, dogs and horses, the first hundred of each from picture 2000 x SEED on; each label is
changed with probability 0.2 to one of the other two. metadata.csv has label and truth: negscale audit OUT --label-column label --truth-column truth
"""
import os
import random
import struct
import sys
import zlib

CLASSES = {3: "cat", 5: "dog", 7: "horse"}


def png(path, planes):
    rows = b"".join(b"\0" + bytes(planes[c * 1024 + y * 32 + x] for x in range(32) for c in range(3)) for y in range(32))
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


def main():
    cifar, out, seed = sys.argv[1], sys.argv[2], int((sys.argv[3:] or [1])[0])
    os.makedirs(out)
    draw, left, lines = random.Random(seed), dict.fromkeys(CLASSES, 100), ["file_name,label,truth"]
    records = b"".join(open(os.path.join(cifar, f"data_batch_{n}.bin"), "rb").read() for n in range(1, 6))
    for at in range(2000 * seed, 50000):
        record = records[at * 3073:(at + 1) * 3073]
        truth = record[0]
        if left.get(truth, 0) == 0:
            continue
        left[truth] -= 1
        label = draw.choice([c for c in CLASSES if c != truth]) if draw.random() < 0.2 else truth
        png(os.path.join(out, f"{at:05}.png"), record[1:])
        lines.append(f"{at:05}.png,{CLASSES[label]},{CLASSES[truth]}")
    with open(os.path.join(out, "metadata.csv"), "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
