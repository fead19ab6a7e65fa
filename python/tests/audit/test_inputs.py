"""What people hand in: every kind gives the same audit, and what cannot be is refused with its place."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import negscale
from negscale import _inputs

ROWS = np.arange(24, dtype=np.float64).reshape(8, 3) / 4
NAMES = np.array(["b", "a", "c", "a", "b", "a", "c", "b"])


class Capsules:
    """An object that speaks Arrow's PyCapsule interface and nothing else."""

    def __init__(self, data, way):
        self._data = data
        setattr(type(self), way, lambda self, requested_schema=None: getattr(self._data, way)(requested_schema))


def capsules(data, way):
    return type("Foreign", (Capsules,), {})(data, way)


def kinds_of_rows():
    torch = pytest.importorskip("torch")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("datasets")
    columns = {name: ROWS[:, at] for at, name in enumerate("xyz")}
    lists = arrow.FixedSizeListArray.from_arrays(arrow.array(ROWS.ravel()), 3)
    data = datasets.Dataset.from_dict({"e": ROWS.tolist(), "kind": NAMES.tolist()})
    return {
        "lists": ROWS.tolist(),
        "list of arrays": list(ROWS),
        "f64": ROWS,
        "f32": ROWS.astype(np.float32),
        "f16": ROWS.astype(np.float16),
        "big-endian": ROWS.astype(">f8"),
        "columns first": np.asfortranarray(ROWS),
        "every other": np.repeat(ROWS, 2, axis=0)[::2],
        "backwards": ROWS[::-1][::-1],
        "read-only": np.frombuffer(ROWS.tobytes()).reshape(8, 3),
        "more dimensions": ROWS.reshape(8, 1, 3),
        "torch": torch.tensor(ROWS),
        "torch with a gradient": torch.tensor(ROWS, requires_grad=True),
        "torch bf16": torch.tensor(ROWS).bfloat16(),
        "torch turned": torch.tensor(ROWS.T.copy()).T,
        "list of tensors": list(torch.tensor(ROWS)),
        "pandas": pandas.DataFrame(columns),
        "pandas nullable": pandas.DataFrame(columns).astype("Float64"),
        "pandas of arrow": pandas.DataFrame(columns).astype("double[pyarrow]"),
        "pandas column": pandas.Series(list(ROWS)),
        "polars": polars.DataFrame(columns),
        "polars list column": polars.Series(ROWS.tolist()),
        "polars array column": polars.Series(ROWS),
        "polars with a list column": polars.DataFrame({"e": ROWS.tolist()}),
        "arrow": arrow.table(columns),
        "arrow batch": arrow.record_batch(columns),
        "arrow lists": arrow.array(ROWS.tolist()),
        "arrow fixed lists": lists,
        "arrow sliced lists": arrow.concat_arrays([lists, lists])[8:],
        "arrow chunks": arrow.chunked_array([lists[:3], lists[3:]]),
        "stream": capsules(arrow.table(columns), "__arrow_c_stream__"),
        "array": capsules(arrow.record_batch(columns), "__arrow_c_array__"),
        "stream of polars": capsules(polars.DataFrame(columns), "__arrow_c_stream__"),
        "datasets": data["e"],
        "datasets shuffled back": data.select(range(7, -1, -1)).select(range(7, -1, -1))["e"],
        "datasets for torch": data.with_format("torch")["e"],
        "a whole dataset": data.remove_columns("kind"),
    }


def test_every_kind_of_rows_is_the_same_rows():
    for name, rows in kinds_of_rows().items():
        values = _inputs.features(rows).values
        assert values.dtype == np.float32 and values.flags.c_contiguous, name
        np.testing.assert_array_equal(values, ROWS.astype(np.float32), err_msg=name)


def test_an_array_in_a_file_is_read_where_it_lies(tmp_path):
    np.save(tmp_path / "x.npy", ROWS.astype(np.float32))
    np.testing.assert_array_equal(_inputs.features(np.load(tmp_path / "x.npy", mmap_mode="r")).values, ROWS.astype(np.float32))


def test_every_kind_of_labels_is_the_same_classes():
    torch = pytest.importorskip("torch")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("datasets")
    codes = np.array([1, 0, 2, 0, 1, 0, 2, 1])
    text = {
        "array": NAMES,
        "objects": NAMES.astype(object),
        "bytes": NAMES.astype("S"),
        "strings of numpy 2": NAMES.astype(np.dtypes.StringDType()),
        "list": NAMES.tolist(),
        "tuple": tuple(NAMES.tolist()),
        "pandas": pandas.Series(NAMES),
        "categories": pandas.Series(NAMES, dtype="category"),
        "pandas strings": pandas.Series(NAMES, dtype="string"),
        "polars": polars.Series(NAMES),
        "polars categories": polars.Series(NAMES, dtype=polars.Categorical),
        "polars enum": polars.Series(NAMES, dtype=polars.Enum(["a", "b", "c"])),
        "arrow": arrow.array(NAMES),
        "arrow dictionary": arrow.array(NAMES).dictionary_encode(),
        "stream": capsules(arrow.chunked_array([NAMES]), "__arrow_c_stream__"),
        "datasets": datasets.Dataset.from_dict({"kind": NAMES.tolist()})["kind"],
    }
    for name, labels in text.items():
        found = _inputs.labels(labels)
        assert (found.codes.tolist(), found.names, found.codes.dtype) == (codes.tolist(), ["a", "b", "c"], np.uint32), name
    numbers = {
        "i8": codes.astype(np.int8),
        "u64": codes.astype(np.uint64),
        "whole floats": codes.astype(np.float32),
        "list": codes.tolist(),
        "column": codes[:, None],
        "torch": torch.tensor(codes),
        "nullable": pandas.Series(codes, dtype="Int64"),
        "polars": polars.Series(codes),
        "arrow": arrow.array(codes),
    }
    for name, labels in numbers.items():
        found = _inputs.labels(labels)
        assert (found.codes.tolist(), found.names, found.values.tolist()) == (codes.tolist(), ["0", "1", "2"], [0, 1, 2]), name
    named = datasets.Dataset.from_dict({"kind": codes}, features=datasets.Features({"kind": datasets.ClassLabel(names=["x", "y", "z", "none"])}))
    assert _inputs.labels(named["kind"]).values.tolist() == ["x", "y", "z", "none"]


def test_classes_are_in_the_order_of_numbers_text_or_categories():
    pandas = pytest.importorskip("pandas")
    assert _inputs.labels([900_000, 0, 450_000]).values.tolist() == [0, 450_000, 900_000]
    assert _inputs.labels(["10", "9", "1"]).names == ["1", "9", "10"]
    assert _inputs.labels(["10", "9", "x"]).names == ["10", "9", "x"]
    assert _inputs.labels([True, False]).values.tolist() == [False, True]
    sizes = pandas.Series(pandas.Categorical(["L", "S", "L"], categories=["S", "M", "L"]))
    assert _inputs.labels(sizes).names == ["S", "L"]
    assert _inputs.labels(["c", "a"], ["c", "b", "a"]).codes.tolist() == [0, 2]
    assert _inputs.labels([2, 0], ["c", "b", "a"]).codes.tolist() == [2, 0]


def test_rows_that_cannot_be_are_refused_with_their_place():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    sparse = pytest.importorskip("scipy.sparse")
    hole = ROWS.copy()
    hole[5, 2] = np.nan
    for rows, words in [
        (hole, r"row 5, column 2 of the features is nan"),
        (pandas.DataFrame(hole, columns=["age", "size", "mass"]), r"row 5, column `mass` of the features is nan"),
        (pandas.DataFrame({"n": pandas.array([1, None], dtype="Int64")}), r"row 1, column `n` of the features is nan"),
        (polars.DataFrame({"n": [1, None]}), r"row 1, column `n` of the features is nan"),
        (np.where(np.isnan(hole), np.inf, hole), r"row 5, column 2 of the features is inf"),
        (np.where(np.isnan(hole), -1e300, hole), r"row 5, column 2 of the features is -1e\+300: it is too large"),
        (pandas.DataFrame({"kind": ["x", "y"]}), r"column `kind` of the features holds str"),
        (polars.DataFrame({"kind": ["x", "y"]}), r"column `kind` of the features holds String"),
        (polars.DataFrame({"x": [1.0]}).lazy(), r"features\.collect\(\)"),
        (ROWS[:, 0], r"features have 1 dimension"),
        ([[1.0, 2.0], [1.0]], r"row 1 of the features has 1 numbers, row 0 has 2"),
        ([[1.0], ["x"]], r"type <U"),
        (ROWS + 1j, r"type complex128"),
        (sparse.csr_matrix(ROWS), r"sparse matrix"),
        (np.ma.masked_greater(ROWS, 3), r"masked"),
        (3.0, r"features are 3\.0 \(float\)"),
    ]:
        with pytest.raises(negscale.InputError, match=words):
            _inputs.features(rows)


def test_labels_that_cannot_be_are_refused_with_their_place():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    for labels, words in [
        ([0, 1, -1], "label -1 of row 2 is negative"),
        ([0, 0.5], "label 0.5 of row 1 is not a class"),
        ([0, None, 1], "label of row 1 is missing"),
        (["a", "", "b"], "label of row 1 is missing"),
        (np.array(["a", "", "b"]), "label of row 1 is missing"),
        (np.array([0, np.nan]), "label of row 1 is missing"),
        (pandas.Series(["a", None]), "label of row 1 is missing"),
        (pandas.Series(["a", None], dtype="category"), "label of row 1 is missing"),
        (pandas.Series([0, None], dtype="Int64"), "label of row 1 is missing"),
        (polars.Series(["a", None]), "label of row 1 is missing"),
        (polars.Series([0, None]), "label of row 1 is missing"),
        (["a", 1], "several kinds: row 0 is text"),
        ([b"a", b"\x80"], "label b'.x80' of row 1 is not UTF-8"),
        (np.array([b"a", b"\x80"]), "label b'.x80' of row 1 is not UTF-8"),
        ([], "there are no labels"),
        (np.eye(3), "labels have 2 dimensions"),
        (np.arange(5000), "5000 different values"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), "type datetime64"),
        ([{"a": 1}], "of type dict"),
    ]:
        with pytest.raises(negscale.InputError, match=words):
            _inputs.labels(labels)
    with pytest.raises(negscale.InputError, match="label 'catt' of row 1.*did you mean `cat`"):
        _inputs.labels(["dog", "catt"], ["cat", "dog"])
    with pytest.raises(negscale.InputError, match="label 2 of row 0.*numbered 0 to 1"):
        _inputs.labels([2], ["cat", "dog"])
    with pytest.raises(negscale.InputError, match="named twice"):
        _inputs.labels([0], ["cat", "cat"])


def test_a_column_of_a_table_can_be_the_labels(clouds):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("datasets")
    expected = negscale.audit(clouds.features, clouds.labels).scores.tobytes()
    columns = {f"x{at}": clouds.features[:, at] for at in range(8)} | {"kind": clouds.labels}
    for table in [pandas.DataFrame(columns), polars.DataFrame(columns), arrow.table(columns), datasets.Dataset.from_dict(columns)]:
        assert negscale.audit(table, "kind").scores.tobytes() == expected, type(table)
        with pytest.raises(negscale.InputError, match="no column `kinds`; did you mean `kind`"):
            negscale.audit(table, "kinds")


def test_indices_that_differ_are_refused(clouds):
    pandas = pytest.importorskip("pandas")
    features = pandas.DataFrame(clouds.features).sample(frac=1, random_state=0)
    with pytest.raises(negscale.InputError, match="different indices"):
        negscale.audit(features, pandas.Series(clouds.labels).sort_index(ascending=False))
    audit = negscale.audit(features, pandas.Series(clouds.labels)[features.index])
    assert audit.to_pandas().index.equals(features.index)


def test_nothing_but_numpy_is_imported():
    import subprocess
    import sys

    script = "import sys, numpy, negscale; numpy.random.default_rng(0); negscale.audit(numpy.eye(20), [0, 1] * 10); " \
        "print(sorted({'torch', 'pandas', 'polars', 'pyarrow', 'sklearn', 'datasets', 'IPython', 'cleanlab'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


TYPES = [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_, ">f4", "<i2"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_shape_and_type_is_judged_or_refused(data):
    dtype = np.dtype(data.draw(st.sampled_from(TYPES)))
    shape = data.draw(arrays.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=24))
    width = {"width": 8 * dtype.itemsize} if dtype.kind == "f" else {}
    elements = st.floats(allow_nan=False, allow_infinity=False, **width) if dtype.kind == "f" else arrays.from_dtype(dtype)
    rows = data.draw(arrays.arrays(dtype, shape, elements=elements, fill=st.nothing()))
    rows = data.draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray, lambda a: a[::-1]]))(rows)
    labels = data.draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows)))
    with np.errstate(over="ignore"):
        fits = bool(np.isfinite(rows.astype(np.float32)).all())
    if not fits:
        with pytest.raises(negscale.InputError, match="too large"):
            negscale.audit(rows, labels)
        return
    audit = negscale.audit(rows, labels, threads=1)
    assert len(audit) == len(rows) and ((audit.scores >= 0) & (audit.scores <= 1)).all()
    assert audit.given.tolist() == labels and set(audit.suggested.tolist()) <= set(labels)
    assert sorted(audit.order.tolist()) == list(range(len(rows)))
    assert audit.flags.sum() == round((audit.rate or 0) * len(rows)) or (audit.suggested == audit.given).any()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=5), st.integers(-3, 5), st.none(), st.floats(), st.booleans(), st.binary(max_size=3)), min_size=1, max_size=12)
)
def test_any_list_of_labels_is_read_or_refused(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = _inputs.labels(values)
        except negscale.InputError as error:
            assert "row" in str(error) or "kinds" in str(error)
        else:
            assert len(found.codes) == len(values) and found.codes.max() < len(found.names)
