"""Audits of arrays and paths: what is found, that it is what the command finds, and how a call ends early."""

import csv
import json
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import negscale

COLUMNS = ["score", "clean_probability", "suggested_probability", "predicted_probability", "given_probability"]


def rows_of(folder):
    with open(folder / "audit.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_python_finds_what_the_command_finds_to_the_bit(clouds, command, tmp_path, kind):
    np.save(tmp_path / "x.npy", clouds.features)
    if kind == "npy":
        given, file = clouds.labels, tmp_path / "labels.npy"
        np.save(file, given)
    else:
        given, file = np.array(["=ant", "Bee", "fly"])[clouds.labels], tmp_path / "labels.csv"
        file.write_text("label\n" + "".join(f"{name}\n" for name in given))
    command("audit", tmp_path / "x.npy", "--labels", file, "--set", "seed=7", "--out", tmp_path / "out", "--quiet")
    theirs = rows_of(tmp_path / "out")
    audit = negscale.audit(clouds.features, given, seed=7)
    ours = audit.to_pandas(ranked=True)
    assert audit.order.tolist() == [int(row["index"]) for row in theirs]
    assert ours["flag"].tolist() == [row["flag"] == "true" for row in theirs]
    assert ours["reasons"].tolist() == [row["reasons"].lstrip("'") for row in theirs]
    for column in COLUMNS:
        kind_of = ours[column].dtype.type
        assert ours[column].to_numpy().tobytes() == np.array([kind_of(row[column]) for row in theirs]).tobytes(), column
    figures = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert (audit.rate, list(audit.interval)) == (figures["noise"]["rate"], figures["noise"]["interval_95"])
    assert audit.transition.tolist() == figures["noise"]["given_by_true"]
    read = negscale.Audit.open(tmp_path / "out")
    assert read.scores.tobytes() == audit.scores.tobytes()
    assert (read.suggested.astype(str) == audit.suggested.astype(str)).all()
    assert (read.corrected.astype(str) == audit.corrected.astype(str)).all()
    by_path = negscale.audit(tmp_path / "x.npy", file, seed=7)
    assert by_path.scores.tobytes() == audit.scores.tobytes()


def test_wrong_labels_are_found_and_corrected(clouds):
    audit = negscale.audit(clouds.features, clouds.labels, truth=clouds.truth)
    assert (audit.flags & clouds.wrong).sum() >= 0.95 * clouds.wrong.sum()
    assert (audit.corrected == clouds.truth).mean() > (clouds.labels == clouds.truth).mean()
    assert abs(audit.rate - clouds.wrong.mean()) < 0.03
    assert audit.interval[0] <= audit.rate <= audit.interval[1]
    assert audit.results["truth"]["average_precision"] > 0.95
    assert audit.transition.shape == (3, 3)
    np.testing.assert_allclose(audit.transition.sum(axis=1), 1)
    assert audit.scores.shape == audit.given.shape == audit.suggested.shape == (600,)
    assert all(bool(reasons) == flag for reasons, flag in zip(audit.reasons, audit.flags, strict=True))
    assert audit.scores[audit.order].tolist() == sorted(audit.scores, reverse=True)


def test_predictions_alone_are_judged(clouds):
    pred_probs = np.where(np.eye(3)[clouds.truth] > 0, 0.9, 0.05)
    audit = negscale.audit(None, clouds.labels, pred_probs=pred_probs)
    assert not (audit.flags & ~clouds.wrong).any() and (audit.flags & clouds.wrong).sum() > 0.85 * clouds.wrong.sum()
    both = negscale.audit(clouds.features, clouds.labels, pred_probs=pred_probs)
    assert both.scores.tobytes() == audit.scores.tobytes()
    # Only rows with numbers have neighbours.
    assert any("nearest neighbours" in reason for reasons in both.reasons for reason in reasons)
    assert not any("nearest neighbours" in reason for reasons in audit.reasons for reason in reasons)


def test_columns_of_predictions_are_classes_that_no_label_names(clouds):
    few = clouds.truth != 2
    pred_probs = np.where(np.eye(3)[clouds.truth] > 0, 0.9, 0.05)[few]
    audit = negscale.audit(None, clouds.truth[few], pred_probs=pred_probs)
    assert audit.classes.tolist() == [0, 1, 2]
    named = negscale.audit(None, np.array(["b", "a", "c"])[clouds.truth[few]], pred_probs=pred_probs, classes=["b", "a", "c"])
    assert named.scores.tobytes() == audit.scores.tobytes()
    assert named.suggested[0] == "bac"[audit.suggested[0]]


def test_a_folder_holds_what_was_found_and_is_kept_apart_from_others(clouds, tmp_path):
    out = tmp_path / "out"
    audit = negscale.audit(clouds.features, clouds.labels, out=out)
    assert audit.folder == out
    assert sorted(path.name for path in out.iterdir() if path.suffix) == [
        "audit.csv", "audit.json", "corrected.csv", "evidence.csv", "report.html", "settings.toml", "summary.txt", "tree.tsv",
    ]
    assert negscale.audit(clouds.features, clouds.labels, out=out).scores.tobytes() == audit.scores.tobytes()
    with pytest.raises(ValueError, match="holds another run: seed is 0 there but 1 here"):
        negscale.audit(clouds.features, clouds.labels, out=out, seed=1)
    negscale.audit(clouds.features, clouds.labels, out=out, seed=1, fresh=True)
    assert negscale.Audit.open(out).results["settings"]["seed"] == 1
    with pytest.raises(OSError, match="holds no finished audit"):
        negscale.Audit.open(tmp_path)


def test_the_report_is_the_page_of_the_folder(clouds, tmp_path):
    audit = negscale.audit(clouds.features, clouds.labels, out=tmp_path / "out", name="<b>clouds</b>")
    page = audit.report(tmp_path / "page.html").read_text()
    assert page == (tmp_path / "out" / "report.html").read_text()
    assert "&lt;b&gt;clouds&lt;/b&gt;" in page.replace("&#60;", "&lt;").replace("&#62;", "&gt;")
    assert "<b>clouds" not in page and "http://" not in page
    alone = negscale.audit(clouds.features, clouds.labels).report(tmp_path / "alone.html").read_text()
    assert alone.startswith("<!doctype html>") or alone.startswith("<!DOCTYPE html>")
    # Data in memory have no name that a command could use.
    assert "negscale audit in-memory" not in page + alone
    with pytest.raises(OSError, match="cannot write"):
        audit.report(tmp_path / "nowhere" / "page.html")


def test_tables_are_in_the_order_and_with_the_index_of_the_data(clouds):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    names = pandas.Index([f"row {i}" for i in range(len(clouds.labels))])
    frame = pandas.DataFrame(clouds.features, index=names)
    audit = negscale.audit(frame, pandas.Series(clouds.labels, index=names))
    table = audit.to_pandas()
    assert table.index.equals(names)
    assert table["given"].tolist() == clouds.labels.tolist()
    assert table["flag"].tolist() == audit.flags.tolist()
    ranked = audit.to_pandas(ranked=True)
    assert ranked.index[0] == f"row {audit.order[0]}" and ranked["score"].is_monotonic_decreasing
    rows = audit.to_polars(ranked=True)
    assert rows["index"].to_list() == audit.order.tolist()
    assert set(rows.columns) == {"index", *table.columns}
    assert rows["tree_distance"].null_count() == table["tree_distance"].isna().sum()
    cleanlab = audit.to_pandas("cleanlab")
    assert cleanlab.columns.tolist() == ["is_label_issue", "label_quality", "given_label", "predicted_label"]
    assert (cleanlab["label_quality"].to_numpy() == 1 - audit.scores).all()
    assert isinstance(audit.to_polars("cleanlab"), polars.DataFrame)
    with pytest.raises(ValueError, match="'mine'"):
        audit.to_pandas("mine")


def test_what_a_notebook_shows_is_escaped(clouds):
    names = np.array(["<script>alert(1)</script>", "a&b", "c"])
    audit = negscale.audit(clouds.features, names[clouds.labels])
    html = audit._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html and "a&amp;b" in html
    assert "600 labels of 3 classes" in repr(audit)


def test_an_audit_can_be_pickled_with_its_page(clouds, tmp_path):
    audit = negscale.audit(clouds.features, clouds.labels)
    again = pickle.loads(pickle.dumps(audit))
    assert again.scores.tobytes() == audit.scores.tobytes() and again.reasons == audit.reasons
    assert again.report(tmp_path / "a.html").read_text() == audit.report(tmp_path / "b.html").read_text()


def test_sources_are_counted(clouds):
    audit = negscale.audit(clouds.features, clouds.labels, sources=np.where(clouds.wrong, "cam <1>", "cam 2"))
    shares = {entry["source"]: entry["share"] for entry in audit.results["sources"]}
    assert shares["cam <1>"] > 0.9 > 0.1 > shares["cam 2"]


def test_a_path_takes_the_settings_of_the_command(clouds, tmp_path):
    table = tmp_path / "table.csv"
    header = "".join(f"x{j}," for j in range(8)) + "kind\n"
    table.write_text(header + "".join(",".join(map(str, [*row, label])) + "\n" for row, label in zip(clouds.features, clouds.labels, strict=True)))
    audit = negscale.audit(table, label_column="kind")
    assert audit.scores.tobytes() == negscale.audit(clouds.features, clouds.labels).scores.tobytes()
    with pytest.raises(ValueError, match=r"label_colum.*did you mean `label_column`"):
        negscale.audit(table, label_colum="kind")
    with pytest.raises((OSError, ValueError), match="nothing"):
        negscale.audit(tmp_path / "nothing.csv")
    with pytest.raises(TypeError, match="class_names"):
        negscale.audit(table, classes=["a"])
    with pytest.raises(TypeError, match="the path of a file"):
        negscale.audit(table, clouds.labels)


def test_a_training_judges_where_a_method_is_named(clouds, tmp_path):
    np.save(tmp_path / "x.npy", clouds.features)
    np.save(tmp_path / "y.npy", clouds.labels)
    audit = negscale.audit(tmp_path / "x.npy", tmp_path / "y.npy", host="cross-entropy", epochs=2, out=tmp_path / "out")
    assert audit.folder == tmp_path / "out"
    assert (tmp_path / "out" / "training.html").exists()
    assert len(audit) == 600 and audit.rate is not None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": None}, "labels are missing"),
        ({"features": None}, "features and pred_probs are both missing"),
        ({"seed": 0.5}, "seed is 0.5: give a whole number"),
        ({"progress": 3}, "progress is 3"),
        ({"host": "rolr"}, "unexpected argument 'host'"),
        ({"labels": "kind"}, "needs a table"),
    ],
)
def test_arguments_that_cannot_be_are_type_errors(clouds, change, words):
    with pytest.raises(TypeError, match=words):
        negscale.audit(**{"features": clouds.features, "labels": clouds.labels, **change})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": np.zeros(5, int)}, "600 rows of features for 5 labels"),
        ({"seed": -1}, "seed is -1"),
        ({"tree": "oak"}, "oak"),
        ({"pred_probs": np.full((600, 3), 0.5)}, "row 0 of pred_probs sums to 1.5"),
        ({"pred_probs": np.full((600, 3), -1.0)}, "-1.0, which is no probability"),
        ({"pred_probs": np.full((5, 3), 1 / 3)}, "pred_probs are 5 x 3"),
        ({"truth": np.full(600, 9)}, "label 9 of row 0 is none of the 3 classes"),
        ({"sources": ["a"]}, "1 sources for 600 labels"),
    ],
)
def test_input_that_does_not_fit_is_refused_in_words(clouds, change, words):
    with pytest.raises(negscale.InputError, match=words) as caught:
        negscale.audit(**{"features": clouds.features, "labels": clouds.labels, **change})
    assert isinstance(caught.value, ValueError)


def test_labels_that_cannot_be_judged_are_not(clouds):
    draw = np.random.default_rng(0)
    for features, labels in [
        (clouds.features, np.zeros(600, int)),
        (draw.normal(size=(300, 4)), draw.integers(0, 3, 300)),
        (np.ones((50, 3)), np.arange(50) % 2),
        (clouds.features[:1], [1]),
    ]:
        audit = negscale.audit(features, labels)
        assert audit.cannot_judge and audit.rate is None and audit.interval is None and audit.transition is None
        assert not audit.flags.any() and (audit.corrected == audit.given).all()
        assert "cannot be judged" in repr(audit) and "cannot be judged" in audit.summary
        assert audit._repr_html_() and len(audit.to_pandas()) == len(labels)


def test_progress_is_told_and_goes_up(clouds):
    heard = []
    negscale.audit(clouds.features, clouds.labels, progress=heard.append)
    assert heard == sorted(heard) and len(heard) > 5 and heard[-1] == 1 and heard[0] > 0


def test_a_bar_is_lines_where_there_is_no_terminal(capsys):
    from negscale import _progress

    with _progress.told(True, "audit") as bar:
        assert isinstance(bar, _progress._Lines)
        bar.begun -= 1
        for step in range(11):
            bar.drawn = 0.0
            bar(step / 10)
    assert capsys.readouterr().err.splitlines() == [f"audit: {tenth * 10} %" for tenth in range(1, 11)]
    assert _progress.listener(None, "audit") is None and _progress.listener(False, "audit") is None


def test_a_bar_in_a_terminal_is_drawn_over_and_taken_away_also_after_an_error(capsys, monkeypatch):
    from negscale import _progress

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with pytest.raises(LookupError), _progress.told(None, "audit") as bar:
        bar.begun -= 1
        bar(0.5)
        raise LookupError
    drawn = capsys.readouterr().err.split("\r")
    assert drawn[1].startswith("audit [###############.") and " 50%" in drawn[1]
    assert drawn[2].strip() == "" and len(drawn[2]) >= len(drawn[1]) and "\n" not in "".join(drawn)


def test_a_bar_in_a_notebook_is_one_output_that_is_empty_in_the_end(monkeypatch):
    display = pytest.importorskip("IPython.display")
    from negscale import _progress

    shown = []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle)

    def show(bundle, raw, display_id):
        shown.append(bundle)
        return Handle()

    monkeypatch.setattr(display, "display", show)
    monkeypatch.setattr(_progress, "_in_notebook", lambda: True)
    with _progress.told(None, "audit") as bar:
        bar(0.1)
        bar.begun -= 1
        bar(0.25)
    assert [bundle["text/plain"] for bundle in shown] == ["audit 25%", ""]
    assert "value='0.250'" in shown[0]["text/html"]


def test_an_exception_of_the_listener_ends_the_audit_and_is_what_is_raised(clouds):
    def break_off(done):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        negscale.audit(clouds.features, clouds.labels, progress=break_off)


def test_ctrl_c_ends_the_audit_and_the_same_call_finishes_it(clouds, tmp_path):
    def interrupt(done):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        negscale.audit(clouds.features, clouds.labels, out=tmp_path, progress=interrupt)
    assert not (tmp_path / "audit.csv").exists() and (tmp_path / "settings.toml").exists()
    again = negscale.audit(clouds.features, clouds.labels, out=tmp_path)
    assert again.scores.tobytes() == negscale.audit(clouds.features, clouds.labels).scores.tobytes()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_signal_from_outside_ends_an_audit_that_is_under_way():
    script = """
import sys, numpy as np, negscale
draw = np.random.default_rng(0)
labels = np.arange(30_000) % 10
features = draw.normal(size=(30_000, 64)) + np.eye(64)[labels]
def told(done):
    print("under way", flush=True)
try:
    negscale.audit(features, labels, progress=told)
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(5)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "under way\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(timeout=120) == 5 and rest.endswith("stopped\n")


def test_other_threads_go_on_meanwhile_and_audits_run_side_by_side(clouds):
    results, counted = [], 0
    threads = [threading.Thread(target=lambda: results.append(negscale.audit(clouds.features, clouds.labels))) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        counted += 1
    assert counted > 10_000
    assert len({audit.scores.tobytes() for audit in results}) == 1 and len(results) == 3


def test_threads_do_not_change_a_bit(clouds):
    one, two = (negscale.audit(clouds.features, clouds.labels, threads=threads) for threads in (1, 2))
    assert one.scores.tobytes() == two.scores.tobytes()


def test_many_classes_and_near_copies(clouds, make_clouds):
    wide = make_clouds(rows=1200, classes=120, dim=120, distance=9.0, seed=1)
    audit = negscale.audit(wide.features, wide.labels, neighbours=True)
    assert audit.transition.shape == (120, 120)
    assert (audit.flags & wide.wrong).sum() > 0.9 * wide.wrong.sum()
    twice = np.concatenate([clouds.features, clouds.features[:5]])
    copies = negscale.audit(twice, np.concatenate([clouds.labels, clouds.labels[:5]])).to_pandas()["near_copies"]
    assert copies.iloc[600:].notna().all() and copies.iloc[600] == copies.iloc[0]
