"""Makes the embedded subset of Fashion-MNIST, the files beside this script.

    apt-get install dataset-fashion-mnist
    python make.py /usr/share/datasets/fashion-mnist      (needs numpy and Pillow)

Chosen are the first 1,000 training and the first 200 test images of every class, in file order. Each part becomes
`<part>.labels`, one byte per image, and `<part>.webpstrips`, repeated [u32 little-endian length][lossless WebP of 500
images stacked vertically, 28 x 14,000, grey as three equal channels]. Another version of libwebp may write other bytes;
what they decode to is fixed, and its sha256 (printed here: per image one label byte, then 784 pixels) is tested in
`src/known/embedded.rs`.

Why WebP: 9.41 MB raw are 5.23 MB with deflate, 5.06 MB with zstd -19, 4.51 MB with xz -9e, 4.63 MB with this (4.47 MB with
method 6, which takes 8 minutes instead of 6 seconds); the decoder is needed for the packed CIFAR-100 anyway.
"""

import gzip
import hashlib
import io
import struct
import sys
from pathlib import Path

import numpy as np
from PIL import Image

PER_STRIP = 500


def read(folder, part):
    """Pixels and labels of an IDX pair."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return images, labels


def first_of_each_class(labels, count):
    """Numbers of the first `count` images of every class, ascending."""
    return np.sort(np.concatenate([np.where(labels == c)[0][:count] for c in range(10)]))


def strips(images):
    """The images as WebP strips."""
    for at in range(0, len(images), PER_STRIP):
        grey = images[at : at + PER_STRIP].reshape(-1, 28)
        webp = io.BytesIO()
        colour = Image.fromarray(np.repeat(grey[:, :, None], 3, axis=2))
        colour.save(webp, "WEBP", lossless=True, quality=100, method=4, exact=True)
        yield struct.pack("<I", len(webp.getvalue())) + webp.getvalue()


def main(folder):
    here = Path(__file__).parent
    for source, part, count in (("train", "train", 1000), ("t10k", "test", 200)):
        images, labels = read(folder, source)
        chosen = first_of_each_class(labels, count)
        images, labels = images[chosen], labels[chosen]
        (here / f"{part}.labels").write_bytes(labels.tobytes())
        (here / f"{part}.webpstrips").write_bytes(b"".join(strips(images)))
        records = np.concatenate([labels[:, None], images.reshape(len(images), -1)], axis=1)
        print(part, len(images), "sha256", hashlib.sha256(records.tobytes()).hexdigest())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
