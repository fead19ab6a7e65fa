"""Models of an audit as a file: the scores of shards, wherever rows are; and what a merge of shards has found."""

import csv
import json
import pickle
import subprocess
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import negscale

BLOCK = 8192
NAMES = np.array(["=ant", "Bee", "fly"])


def of_shards(folder):
    """Scores of all rows, in their order."""
    parts = sorted((json.loads(path.read_text())["rows"]["start"], path.with_suffix(".scores")) for path in (folder / "shards").glob("*.json"))
    return np.concatenate([np.load(path) for _, path in parts])


@pytest.fixture(scope="module")
def data(make_clouds):
    return make_clouds(rows=2 * BLOCK + 1000, seed=3)


@pytest.fixture(scope="module")
def parts(tmp_path_factory, data):
    """Audits in parts of the same rows: known by their numbers, and by ids."""
    folder = tmp_path_factory.mktemp("parts")
    np.save(folder / "x.npy", data.features)
    np.save(folder / "y.npy", data.labels)
    ids = pyarrow.array([f"row {number}" for number in range(len(data.labels))])
    table = pyarrow.table({"name": ids, "vector": pyarrow.array(list(data.features)), "kind": NAMES[data.labels]})
    pyarrow.parquet.write_table(table, folder / "table.parquet")
    of_table = [folder / "table.parquet", "--array", "vector", "--label-column", "kind", "--id-column", "name"]
    for name, words in {"numbers": [folder / "x.npy", "--labels", folder / "y.npy"], "ids": of_table}.items():
        out = folder / name
        for part in (["fit", *words, "--sample", 3000, "--out", out], *(["score", out, "--shard", f"{k}/2"] for k in (1, 2)), ["merge", out]):
            done = subprocess.run([sys.executable, "-m", "negscale", "audit", *map(str, part), "--quiet"], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    return folder


def judge(batches, path):
    """The recipe of the book, as `mapInArrow` calls it: batches of Arrow in, batches out."""
    audit = negscale.FrozenAudit(path)
    for batch in batches:
        found = audit.score(batch["vector"], batch["kind"], ids=batch["name"])
        yield pyarrow.RecordBatch.from_pydict({"name": batch["name"], **found})


@pytest.mark.parametrize("rows", [1000, 10_000])
def test_batches_of_arrow_get_the_scores_of_shards(parts, data, rows):
    table = pyarrow.parquet.read_table(parts / "table.parquet")
    empty = table.slice(0, 0).to_batches() or [pyarrow.RecordBatch.from_pylist([], schema=table.schema)]
    # Spark deals rows as it likes.
    order = np.random.default_rng(1).permutation(len(table))
    batches = [*empty, *table.take(pyarrow.array(order)).combine_chunks().to_batches(max_chunksize=rows)]
    found = pyarrow.Table.from_batches(list(judge(iter(batches), parts / "ids" / "audit.safetensors")))
    assert found["name"].to_pylist() == [f"row {number}" for number in order]
    assert found.schema.names == ["name", "score", "suggested", "suggested_probability", "flag"]
    scores = of_shards(parts / "ids")[order]
    for name in ("score", "suggested_probability"):
        np.testing.assert_allclose(found[name].to_numpy(), scores[name], rtol=0, atol=1e-6)
    sure = np.abs(scores["score"] - negscale.FrozenAudit(parts / "ids").about["cut_off"]) > 1e-6
    assert (found["flag"].to_numpy()[sure] == scores["flag"].astype(bool)[sure]).all() and sure.sum() > 0.99 * len(sure)
    assert (found["suggested"].to_numpy(zero_copy_only=False) == NAMES[scores["suggested"]]).mean() > 0.999


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_get_the_bits_of_shards(parts, data, threads):
    audit = negscale.FrozenAudit(parts / "numbers")
    assert audit.classes.tolist() == ["0", "1", "2"] and audit.dim == 8
    scores, numbers = of_shards(parts / "numbers"), np.arange(len(data.labels))
    for rows in (slice(None), slice(BLOCK, None)):
        found = audit.score(data.features[rows], data.labels[rows], numbers[rows], threads=threads)
        assert found["score"].tobytes() == scores["score"][rows].tobytes()
        assert found["suggested_probability"].tobytes() == scores["suggested_probability"][rows].tobytes()
        assert (found["suggested"].astype(int) == scores["suggested"][rows]).all()
        assert (found["flag"] == scores["flag"][rows]).all() and found["flag"].dtype == bool
    # The models of another fold have other numbers: ids matter.
    assert audit.score(data.features, data.labels, numbers[::-1])["score"].tobytes() != scores["score"].tobytes()
    copy = pickle.loads(pickle.dumps(audit))
    assert copy.score(data.features[:9], data.labels[:9], range(9))["score"].tobytes() == audit.score(data.features[:9], data.labels[:9], range(9))["score"].tobytes()


def test_labels_are_names_numbers_as_in_the_data_or_places(parts, data):
    some, ids = data.features[:50], [f"row {number}" for number in range(50)]
    named, numbered = negscale.FrozenAudit(parts / "ids"), negscale.FrozenAudit(parts / "numbers")
    by_name = named.score(some, NAMES[data.labels[:50]], ids)["score"].tobytes()
    assert named.score(some, data.labels[:50], ids)["score"].tobytes() == by_name
    assert named.score(some, pyarrow.array(NAMES[data.labels[:50]]).dictionary_encode(), pyarrow.array(ids))["score"].tobytes() == by_name
    by_number = numbered.score(some, data.labels[:50], range(50))["score"].tobytes()
    assert numbered.score(some, data.labels[:50].astype(str), np.arange(50, dtype=np.int8))["score"].tobytes() == by_number


def test_classes_that_are_called_by_numbers_keep_them_in_every_batch(command, make_clouds, tmp_path):
    clouds = make_clouds()
    np.save(tmp_path / "x.npy", clouds.features)
    np.save(tmp_path / "y.npy", clouds.labels + 1)
    command("audit", "fit", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--out", tmp_path / "A", "--quiet")
    audit = negscale.FrozenAudit(tmp_path / "A")
    ones = np.flatnonzero(clouds.labels == 0)
    found = audit.score(clouds.features[ones], clouds.labels[ones] + 1, ones)
    assert audit.classes.tolist() == ["1", "2", "3"] and (found["suggested"] == "1").mean() > 0.8
    with pytest.raises(negscale.InputError, match=r"label 0 of row 1 is none of the 3 classes of the audit \(1, 2, 3\)"):
        audit.score(clouds.features[:2], [1, 0], [0, 1])


def test_what_does_not_fit_is_said(parts, data, tmp_path):
    named, numbered = negscale.FrozenAudit(parts / "ids"), negscale.FrozenAudit(parts / "numbers")
    some, labels = data.features[:3], data.labels[:3]
    for message, call in {
        "features have 7 numbers a row, but the audit was fitted to rows of 8": lambda: numbered.score(some[:, :7], labels, range(3)),
        "row 1, column 2 of the features is nan": lambda: numbered.score(np.where(np.eye(3, 8, 1) * [[0], [1], [0]], np.nan, some), labels, range(3)),
        "3 rows of features, 3 labels and 2 ids": lambda: numbered.score(some, labels, range(2)),
        "3 rows of features, 2 labels and 3 ids": lambda: numbered.score(some, labels[:2], range(3)),
        "label 3 of row 2 is none of the 3 classes": lambda: named.score(some, [0, 1, 3], ["a", "b", "c"]),
        "label 'wasp' of row 1 is none of the 3 classes of the audit (=ant, Bee, fly)": lambda: named.score(some, ["fly", "wasp", "fly"], ["a", "b", "c"]),
        "ids are text, but the audit was fitted to rows without": lambda: numbered.score(some, labels, ["a", "b", "c"]),
        "ids must be text, or whole numbers": lambda: named.score(some, labels, ["a", None, "c"]),
        "ids must be text, or whole numbers from 0 on": lambda: numbered.score(some, labels, [0, -1, 2]),
        "ids have 2 dimensions": lambda: numbered.score(some, labels, [[0], [1], [2]]),
    }.items():
        with pytest.raises(negscale.InputError) as raised:
            call()
        assert str(raised.value).startswith(message), (message, str(raised.value))
    with pytest.raises(negscale.FileError, match="missing"):
        negscale.FrozenAudit(tmp_path / "missing.safetensors")
    (tmp_path / "audit.safetensors").write_bytes(b"no model")
    with pytest.raises(negscale.InputError, match="not a model of an audit, or damaged"):
        negscale.FrozenAudit(tmp_path)


def test_a_merge_is_opened_like_any_audit(parts, data):
    audit, scores = negscale.Audit.open(parts / "ids"), of_shards(parts / "ids")
    assert audit.scores.tobytes() == scores["score"].tobytes() and (audit.flags == scores["flag"]).all()
    assert audit.classes.tolist() == NAMES.tolist() and (audit.given == NAMES[data.labels]).all()
    assert (audit.suggested == NAMES[scores["suggested"]]).all()
    assert (audit.corrected == NAMES[data.truth]).mean() > (audit.given == NAMES[data.truth]).mean()
    assert (audit.corrected != audit.given).sum() == audit.results["changed"]
    with open(parts / "ids" / "top.csv", encoding="utf-8", newline="") as file:
        top = [int(row["index"]) for row in csv.DictReader(file)]
    assert audit.order[: len(top)].tolist() == top and len(audit.order) == len(data.labels)
    assert abs(audit.rate - data.wrong.mean()) < 0.03 and audit.interval[0] <= audit.rate <= audit.interval[1]
    assert audit.summary.startswith(f"{audit.flags.sum()} of {len(audit)} labels are flagged, {audit.results['changed']} corrected\n")
    frame = audit.to_pandas(ranked=True)
    assert frame["path"].iloc[0] == f"row {top[0]}" and frame["score"].is_monotonic_decreasing
    assert audit.to_pandas("cleanlab")["predicted_label"].tolist() == audit.suggested.tolist()
    assert "=ant" in audit._repr_html_() and pickle.loads(pickle.dumps(audit)).scores.tobytes() == audit.scores.tobytes()
    assert negscale.Audit.open(parts / "numbers").to_polars().columns[:3] == ["index", "given", "suggested"]
