"""Wrong labels made to order are those of the command."""

import json
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import negscale


def by_command(tmp_path, noise, seed, data):
    """What `negscale noise` says of the same items."""
    words = ["noise", "--data", data, "--noise", noise, "--seed", seed, "--out", tmp_path / "noise.txt", "--json"]
    done = subprocess.run([sys.executable, "-m", "negscale", *map(str, words)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def png(pixels):
    """A picture of bytes, height x width x 3, as a file."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


LABELS = np.random.default_rng(0).integers(0, 5, 300)
FEATURES = np.random.default_rng(1).normal(size=(300, 6)).astype(np.float32)


@pytest.mark.parametrize("noise", ["sym:0.4", "sym-exact:0.3", "pairflip:0.45", "asym-map:0.5:map=0to1+2to3", "ins:0.4", "ins:0.3:input=normalised:matrix=shared"])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_command_draws_the_same_labels(tmp_path, noise, seed):
    np.savez(tmp_path / "data.npz", features=FEATURES, labels=LABELS)
    found = by_command(tmp_path, noise, seed, tmp_path / "data.npz")
    drawn = negscale.noise(LABELS, noise, seed=seed, features=FEATURES)
    assert (drawn.hash, drawn.rate, drawn.noise, drawn.convention) == (found["hash"], found["achieved"], found["noise"], found["convention"])
    assert drawn.rate == pytest.approx((drawn.labels != LABELS).mean()) and drawn.seed == seed


def test_pictures_are_seen_as_the_command_sees_them(tmp_path):
    pictures = np.random.default_rng(2).integers(0, 256, (300, 6, 5, 3), dtype=np.uint8)
    labels = np.sort(LABELS)
    for at, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
        folder = tmp_path / "pictures" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{at:03}.png").write_bytes(png(picture))
    found = by_command(tmp_path, "ins:0.4", 3, tmp_path / "pictures")
    drawn = negscale.noise(labels, "ins:0.4", seed=3, features=pictures)
    assert drawn.hash == found["hash"] and 0.3 < drawn.rate < 0.5
    assert drawn.hash != negscale.noise(labels, "ins:0.4", seed=3, features=pictures[::-1]).hash


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.sampled_from(["sym:0.5", "sym-exact:0.4", "none"]), st.integers(0, 2**64 - 1))
def test_facts_about_any_labels(labels, noise, seed):
    drawn = negscale.noise(labels, noise, seed=seed, classes=range(7))
    assert len(drawn) == len(labels) and set(drawn.labels.tolist()) <= set(range(7))
    np.testing.assert_array_equal(drawn.is_wrong, drawn.labels != np.array(labels))
    assert drawn.rate == pytest.approx(drawn.is_wrong.mean())
    present = np.bincount(labels, minlength=7) > 0
    np.testing.assert_allclose(drawn.transition.sum(axis=1), present)
    np.testing.assert_array_equal(drawn.labels, negscale.noise(labels, noise, seed=seed, classes=range(7)).labels)


def test_labels_come_back_as_they_were_handed_over():
    names = np.array(["cat", "dog", "eel"])[np.arange(90) % 3]
    drawn = negscale.noise(names, "sym-exact:0.3")
    assert drawn.labels.dtype.kind == "U" and drawn.classes == ["cat", "dog", "eel"]
    numbers = negscale.noise(np.arange(90) % 3, "sym-exact:0.3")
    np.testing.assert_array_equal(np.array(drawn.classes)[numbers.labels], drawn.labels)
    spread = negscale.noise(10 * (np.arange(90) % 3), "sym-exact:0.3")
    np.testing.assert_array_equal(spread.labels, 10 * numbers.labels)
    np.testing.assert_array_equal(np.asarray(drawn), drawn.labels)
    assert np.array(numbers, dtype=np.float32).dtype == np.float32


def test_a_tree_gives_classes_and_superclasses():
    tree = negscale.Taxonomy.from_indented("all\n  pet: cat, dog\n  wild: wolf, bear\n")
    labels = np.array(tree.class_names)[np.arange(400) % 4]
    drawn = negscale.noise(labels, "asym-super:1", taxonomy=tree)
    swapped = {"cat": "dog", "dog": "cat", "wolf": "bear", "bear": "wolf"}
    assert drawn.labels.tolist() == [swapped[label] for label in labels]
    cifar = negscale.noise(np.arange(100), "asym-super:1", taxonomy="cifar100")
    relations = negscale.Taxonomy("cifar100").distances()[np.arange(100), cifar.labels]
    assert (relations == 2).all()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (dict(noise="sym"), "needs a rate between 0 and 1"),
        (dict(noise="symm:0.5"), "unknown kind `symm`; nearest is `sym`"),
        (dict(noise="sym:40"), "40 % is written 0.4"),
        (dict(noise="ins:0.4"), "depends on the items: hand them over as features="),
        (dict(noise="ins:0.4", features=FEATURES[:10]), "10 rows of features for 300 labels"),
        (dict(noise="asym:0.4"), "`asym` has a usual meaning only for CIFAR-10"),
        (dict(noise="sym:0.4", classes=[0, 1]), "none of the 2 classes"),
        (dict(noise="asym-super:0.4", taxonomy="cifar01"), "did you mean"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, told):
    with pytest.raises(negscale.InputError, match=told):
        negscale.noise(LABELS, **arguments)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="nowhere.txt"):
        negscale.noise(LABELS, f"file:{tmp_path}/nowhere.txt")
