"""Arrow data read by the C data interface, beside what pyarrow and polars themselves say of them."""

import gc
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import negscale
from negscale import _arrow

arrow = pytest.importorskip("pyarrow")

KINDS = {
    "bool": (arrow.bool_(), st.booleans()),
    "u8": (arrow.uint8(), st.integers(0, 255)),
    "i64": (arrow.int64(), st.integers(-(2**40), 2**40)),
    "f32": (arrow.float32(), st.floats(width=32, allow_nan=False)),
    "text": (arrow.string(), st.text(max_size=30)),
    "large text": (arrow.large_string(), st.text(max_size=30)),
    "views": (arrow.string_view(), st.text(max_size=30)),
    "dictionary": (arrow.dictionary(arrow.int8(), arrow.string()), st.sampled_from(["a", "bb", "ccc"])),
    "lists": (arrow.list_(arrow.int32()), st.lists(st.integers(-9, 9), max_size=4)),
    "large lists": (arrow.large_list(arrow.float64()), st.lists(st.floats(-9, 9), max_size=4)),
    "fixed lists": (arrow.list_(arrow.int16(), 3), st.lists(st.integers(-9, 9), min_size=3, max_size=3)),
    "lists of lists": (arrow.list_(arrow.list_(arrow.int8(), 2)), st.lists(st.lists(st.integers(-9, 9), min_size=2, max_size=2), max_size=3)),
}


def plain(values):
    """Lists and Python's own numbers, with None for what is missing."""
    if isinstance(values, (np.ndarray, list)):
        return [plain(value) for value in values]
    if isinstance(values, (float, np.floating)) and math.isnan(values):
        return None
    return values.item() if isinstance(values, np.generic) else values


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_columns_are_read_as_pyarrow_reads_them(name, data):
    kind, values = KINDS[name]
    column = arrow.array(data.draw(st.lists(st.none() | values, max_size=20)), type=kind)
    first = data.draw(st.integers(0, len(column)))
    column = column.slice(first, data.draw(st.integers(0, len(column) - first)))
    expected = column.to_pylist()
    assert plain(_arrow.read(column)) == expected
    cut = data.draw(st.integers(0, len(column)))
    chunks = arrow.chunked_array([column[:cut], column[cut:]], type=kind)
    assert plain(_arrow.read(chunks)) == expected
    table = arrow.table({"x": chunks, "row": np.arange(len(column))})
    read = _arrow.read(table)
    assert plain(read["x"]) == expected and read["row"].tolist() == list(range(len(column)))


def test_a_table_without_rows_or_parts_has_its_columns():
    table = arrow.table({"x": arrow.array([], arrow.float32()), "word": arrow.array([], arrow.string())})
    for empty in (table, arrow.Table.from_batches([], schema=table.schema)):
        read = _arrow.read(empty)
        assert list(read) == ["x", "word"] and [len(column) for column in read.values()] == [0, 0]


def test_polars_hands_out_the_same():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [1.0, 2.0, None], "word": ["a", None, "a word that is longer than twelve bytes"], "flag": [True, None, False]})
    read = _arrow.read(frame)
    assert {name: plain(column) for name, column in read.items()} == frame.to_dict(as_series=False)
    sliced = _arrow.read(polars.concat([frame, frame], rechunk=False).slice(2, 3))
    assert plain(sliced["word"]) == ["a word that is longer than twelve bytes", "a", None]


def test_what_is_not_read_is_said():
    for column, words in [
        (arrow.array(["2026-01-01"]).cast(arrow.date32()), "type `tdD`"),
        (arrow.table({"when": arrow.array([1], arrow.timestamp("s"))}), "column `when` of the Arrow data is of type `tss:`"),
        (arrow.array([b"x"]), "type `z`"),
    ]:
        with pytest.raises(negscale.InputError, match=words):
            _arrow.read(column)


def test_a_stream_that_fails_says_why():
    def parts():
        yield arrow.record_batch({"x": [1.0]})
        raise OSError("the disk is gone")

    reader = arrow.RecordBatchReader.from_batches(arrow.schema({"x": arrow.float64()}), parts())
    with pytest.raises(negscale.InputError, match="the disk is gone"):
        _arrow.read(reader)


def test_nothing_is_kept_and_nothing_is_read_after_it_is_gone():
    gc.collect()
    before = arrow.total_allocated_bytes()
    for _ in range(50):
        column = arrow.array(np.arange(100_000, dtype=np.float64))
        read = _arrow.read(arrow.chunked_array([column, column]))
        del column
    gc.collect()
    assert arrow.total_allocated_bytes() == before
    assert read.tolist() == [*range(100_000)] * 2
