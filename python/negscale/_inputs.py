"""What people hand in (arrays, tensors, tables, columns) as the numpy arrays that the native half takes.

Nothing is imported for it: an object of pandas, polars, torch, pyarrow or datasets is known by the module its class comes from, which is loaded
then. Tables of pyarrow and whatever else speaks Arrow's PyCapsule interface are read by `_arrow`.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from negscale import _arrow
from negscale._errors import InputError

#: Kinds of numpy types that are numbers.
_NUMBERS = "biuf"


class Features(NamedTuple):
    """Rows of numbers."""

    values: NDArray[Any]
    columns: list[str] | None
    index: Any


class Labels(NamedTuple):
    """Classes by number, what they are called, and how they were handed in."""

    codes: NDArray[Any]
    names: list[str]
    values: NDArray[Any]
    index: Any


def library(data: Any) -> str:
    """The library that an object is of."""
    return type(data).__module__.partition(".")[0]


def is_table(data: Any) -> bool:
    """Whether it has columns with names."""
    if library(data) in ("pandas", "polars"):
        return hasattr(data, "columns")
    return isinstance(data, dict) or hasattr(data, "column_names") or hasattr(data, "__arrow_c_stream__")


def split_off(data: Any, column: str) -> tuple[Any, Any]:
    """A table without one of its columns, and that column."""
    table = data if library(data) in ("pandas", "polars") else plain(data, "features")
    names = [str(name) for name in (table if isinstance(table, dict) else table.columns)]
    if column not in names:
        raise InputError(f"the table has no column `{column}`{_near(column, names)}")
    if library(table) == "pandas":
        return table.drop(columns=[column]), table[column]
    if library(table) == "polars":
        return table.drop(column), table[column]
    # A column of datasets knows the names of its classes.
    of = data[column] if library(data) == "datasets" else table[column]
    return {name: values for name, values in table.items() if name != column}, of


# Features ---------------------------------------------------------------------------------------------------------


def numbers(data: Any, what: str = "features") -> Features:
    """Rows of numbers of whatever type; what cannot be that is an error."""
    columns: list[str] | None = None
    index = None
    lib = library(data)
    if lib == "pandas" and hasattr(data, "columns"):
        columns, index = [str(name) for name in data.columns], data.index
        given = _table([(name, data.iloc[:, at]) for at, name in enumerate(columns)], len(data), what)
    elif lib == "polars" and hasattr(data, "collect"):
        raise InputError(f"{what} are a query that was not run yet: give {what}.collect()")
    elif lib == "polars" and hasattr(data, "columns"):
        columns = list(data.columns)
        given = _table([(name, data[name]) for name in columns], data.height, what)
    else:
        array = plain(data, what)
        if isinstance(array, dict):
            columns = list(array)
            given = _table(list(array.items()), len(next(iter(array.values()), ())), what)
        else:
            given = _stacked(array, what)
            index = data.index if lib == "pandas" else None
    if given.ndim < 2:
        raise InputError(
            f"{what} have {given.ndim} dimension{'s' * (given.ndim != 1)}: give a row of numbers for each label (N x D); "
            "a single feature is x.reshape(-1, 1)"
        )
    if given.dtype.kind not in _NUMBERS:
        raise InputError(f"{what} are of type {given.dtype}: give numbers")
    if given.ndim > 2:
        given = given.reshape(len(given), -1)
    # A column of lists is several features without names.
    return Features(given, columns if columns and len(columns) == given.shape[1] else None, index)


def features(data: Any, what: str = "features") -> Features:
    """Rows of numbers as f32, row after row; what cannot be that is an error that says where."""
    given, columns, index = numbers(data, what)
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(given, dtype=np.float32)
    if values.size and not np.isfinite(values).all():
        row, column = (int(at) for at in np.argwhere(~np.isfinite(values))[0])
        name = f"`{columns[column]}`" if columns else str(column)
        value = given[row, column]
        remedy = "give finite numbers" if not np.isfinite(value) else "it is too large for a 32-bit number; scale the column"
        raise InputError(f"row {row}, column {name} of the {what} is {value}: {remedy}")
    return Features(values, columns, index)


def probabilities(data: Any, rows: int, classes: int) -> NDArray[Any]:
    """N x C probabilities as f32."""
    values = features(data, "pred_probs").values
    if values.shape != (rows, classes):
        raise InputError(f"pred_probs are {values.shape[0]} x {values.shape[1]}, but there are {rows} labels of {classes} classes")
    check_probabilities(values)
    return values


def check_probabilities(values: NDArray[Any]) -> None:
    """Refuses rows that are no probabilities."""
    remedy = "give probabilities, not logits (a softmax of each row makes them)"
    if (wrong := ~((values >= 0) & (values <= 1))).any():
        row, column = (int(at) for at in np.argwhere(wrong)[0])
        raise InputError(f"row {row}, column {column} of pred_probs is {values[row, column]}, which is no probability: {remedy}")
    sums = values.sum(axis=1, dtype=np.float64)
    if (wrong := np.abs(sums - 1) > 1e-3).any():
        row = int(np.argmax(wrong))
        raise InputError(f"row {row} of pred_probs sums to {sums[row]:.4f}, not to 1: {remedy}")


def _table(columns: Sequence[tuple[str, Any]], rows: int, what: str) -> NDArray[Any]:
    """Columns of a table side by side; a column of lists is as many as it has numbers."""
    if not columns:
        raise InputError(f"{what} have no column")
    parts = [_column(name, column, what) for name, column in columns]
    if len(parts) == 1:
        return parts[0].reshape(rows, -1)
    wide = np.promote_types(np.float32, np.result_type(*parts))
    return np.concatenate([part.reshape(rows, -1).astype(wide, copy=False) for part in parts], axis=1)


def _column(name: str, column: Any, what: str) -> NDArray[Any]:
    """One column: numbers with NaN where there is none, or a row of numbers for each of its lists."""
    lib = library(column)
    if lib == "pandas" and getattr(column.dtype, "kind", "O") in _NUMBERS:
        # A nullable integer has no NaN of its own.
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan) if column.hasnans else column.to_numpy())
    if lib == "polars" and (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
        return np.asarray(column.to_numpy())
    array = column if isinstance(column, np.ndarray) else column.to_numpy()
    if array.ndim == 1 and array.dtype.kind == "O" and len(array) and isinstance(array[0], (list, tuple, np.ndarray)):
        return _stacked(array, f"column `{name}` of the {what}")
    if array.dtype.kind not in _NUMBERS:
        raise InputError(f"column `{name}` of the {what} holds {column.dtype if lib != 'numpy' else _kind(array)}: give numbers, or leave it out")
    return array


def _stacked(array: NDArray[Any], what: str) -> NDArray[Any]:
    """Rows that came as objects, one beside the other."""
    if array.dtype.kind != "O" or array.ndim != 1:
        return array
    rows: list[NDArray[Any]] = []
    for at, row in enumerate(array):
        try:
            rows.append(np.asarray(plain(row, what), dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise InputError(f"row {at} of the {what} is {_shown(row)}: give numbers") from error
        if rows[at].shape != rows[0].shape:
            raise InputError(f"row {at} of the {what} has {rows[at].size} numbers, row 0 has {rows[0].size}: all must be of one length")
    return np.stack(rows) if rows else np.empty((0,))


# Labels -----------------------------------------------------------------------------------------------------------


def labels(data: Any, classes: Sequence[Any] | None = None, what: str = "labels") -> Labels:
    """A class for every row. Without names, the labels that occur are the classes: numbers in their order, text sorted, categories in theirs."""
    order: Sequence[Any] | None = None
    index = data.index if library(data) == "pandas" and hasattr(data, "index") else None
    if library(data) == "pandas" and hasattr(getattr(data, "dtype", None), "categories"):
        order = list(data.dtype.categories)
        data = data.astype(object)
    elif library(data) == "polars" and hasattr(getattr(data, "dtype", None), "categories") and str(data.dtype).startswith("Enum"):
        order = data.dtype.categories.to_list()
    if classes is None and (named := getattr(getattr(data, "features", None), "names", None)):
        classes = named
    column = label_column(data, what)
    if classes is not None:
        return _among(column, list(classes), what, index)
    values, codes = np.unique(column, return_inverse=True)
    codes = codes.reshape(-1)
    if order is not None:
        places = {value: place for place, value in enumerate(order)}
        sequence = np.array(sorted(range(len(values)), key=lambda code: places[values[code]]))
    elif column.dtype.kind == "U" and all(_is_whole(value) for value in values):
        # As the command reads them: what looks like numbers is in the order of numbers.
        sequence = np.array(sorted(range(len(values)), key=lambda code: int(values[code])))
    else:
        sequence = np.arange(len(values))
    if column.dtype.kind in "iu" and values[0] < 0:
        row = int(np.argmax(column < 0))
        raise InputError(
            f"label {column[row]} of row {row} is negative: number the classes from 0, write the labels as names, or leave out rows without a label"
        )
    if len(values) > 1000 and 2 * len(values) > len(column):
        raise InputError(f"{len(column)} {what} have {len(values)} different values, so they are no classes: is it the right column?")
    back = np.empty_like(sequence)
    back[sequence] = np.arange(len(sequence))
    values = values[sequence]
    return Labels(back[codes].astype(np.uint32), [str(value) for value in values.tolist()], values, index)


def _among(column: NDArray[Any], classes: list[Any], what: str, index: Any) -> Labels:
    """Labels that are names of known classes, or count into them from 0."""
    names = [str(name) for name in classes]
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise InputError(f"class `{twice}` is named twice: names must differ")
    values = np.array(classes, dtype=object) if len({type(name) for name in classes}) > 1 else np.array(classes)
    places = {value: place for place, value in enumerate(values.tolist())}
    distinct, codes = np.unique(column, return_inverse=True)
    is_named = all(value in places for value in distinct.tolist())
    found = np.empty(len(distinct), dtype=np.uint32)
    for at, value in enumerate(distinct.tolist()):
        place = places.get(value) if is_named or not isinstance(value, int) else value if 0 <= value < len(names) else None
        if place is None:
            row = int(np.argmax(codes.reshape(-1) == at))
            why = f": classes are numbered 0 to {len(names) - 1}" if isinstance(value, int) else _near(str(value), names)
            raise InputError(f"label {_shown(value)} of row {row} is none of the {len(names)} classes{why}")
        found[at] = place
    return Labels(found[codes.reshape(-1)], names, values, index)


def label_column(data: Any, what: str) -> NDArray[Any]:
    """Labels as an array of whole numbers, or of text."""
    column = np.array(data, dtype=object) if isinstance(data, (list, tuple)) else plain(data, what)
    if isinstance(column, dict):
        raise InputError(f"{what} are a table: give one of its columns")
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if not column.size:
        raise InputError(f"there are no {what}: give a label for every row")
    if column.ndim != 1:
        raise InputError(f"{what} have {column.ndim} dimensions: give one label for each row")
    kind = column.dtype.kind
    if kind in "biu":
        return column
    if kind == "S":
        return _of_objects(column.astype(object), what)
    if kind == "f":
        return _whole(column, what)
    if kind == "U":
        if (column == "").any():
            raise _missing(int(np.argmax(column == "")), what)
        return column
    if kind in "OT":
        return _of_objects(column.astype(object), what)
    raise InputError(f"{what} are of type {column.dtype}, which cannot be classes: give whole numbers or names")


def _of_objects(column: NDArray[Any], what: str) -> NDArray[Any]:
    """Labels that came one by one."""
    kinds: dict[str, int] = {}
    for row, value in enumerate(column):
        if value is None or value is getattr(sys.modules.get("pandas"), "NA", None) or value in ("", b"") or value != value:
            raise _missing(row, what)
        is_number = isinstance(value, (int, float, np.number, np.bool_))
        kind = "text" if isinstance(value, (str, bytes)) else "number" if is_number else type(value).__name__
        kinds.setdefault(kind, row)
    if len(kinds) > 1:
        (one, first), (other, second), *_ = kinds.items()
        raise InputError(f"{what} are of several kinds: row {first} is {one} ({_shown(column[first])}), row {second} {other} ({_shown(column[second])})")
    if "text" in kinds:
        return np.array([_decoded(value, row) if isinstance(value, bytes) else value for row, value in enumerate(column)])
    if "number" not in kinds:
        raise InputError(f"label {_shown(column[0])} of row 0 is of type {type(column[0]).__name__}: give whole numbers or names")
    whole = np.array(column.tolist())
    return _whole(whole, what) if whole.dtype.kind == "f" else whole


def _decoded(label: bytes, row: int) -> str:
    try:
        return label.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"label {label!r} of row {row} is not UTF-8: give it as text") from error


def _whole(column: NDArray[Any], what: str) -> NDArray[Any]:
    if np.isnan(column).any():
        raise _missing(int(np.argmax(np.isnan(column))), what)
    if (rough := (column != np.round(column)) | (np.abs(column) >= 2.0**53)).any():
        row = int(np.argmax(rough))
        raise InputError(f"label {column[row]} of row {row} is not a class: {what} are whole numbers or names; is it the right column?")
    return column.astype(np.int64)


def _missing(row: int, what: str) -> InputError:
    return InputError(f"the label of row {row} is missing: give {what} for all rows, or leave out rows without one")


# What several need --------------------------------------------------------------------------------------------------


def plain(data: Any, what: str) -> Any:
    """An array of numpy from whatever it is; of a table, its columns by name."""
    lib = library(data)
    if isinstance(data, np.ma.MaskedArray):
        if np.ma.is_masked(data):
            raise InputError(f"{what} are an array with masked values, which are missing: fill or leave them out")
        return np.asarray(data)
    if isinstance(data, np.ndarray):
        return data
    if lib == "torch":
        return _from_torch(data)
    if lib == "scipy":
        raise InputError(f"{what} are a sparse matrix: give {what}.toarray(), or fewer columns (TruncatedSVD)")
    if lib in ("pandas", "polars"):
        return data.to_numpy()
    if lib == "datasets":
        return _of_datasets(data)
    if _arrow.is_arrow(data):
        return _arrow.read(data)
    if isinstance(data, dict):
        return {str(name): plain(column, what) for name, column in data.items()}
    if hasattr(data, "__array__"):
        return np.asarray(data)
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    if isinstance(data, (str, bytes)) or not hasattr(data, "__len__"):
        raise InputError(f"{what} are {_shown(data)} ({type(data).__name__}): give an array, a tensor, a table or a list")
    try:
        return np.asarray(data)
    except ValueError:
        # Rows of several lengths, or that are arrays themselves.
        column = np.empty(len(data), dtype=object)
        column[:] = list(data)
        return column


def _from_torch(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach()
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    tensor = tensor.cpu()
    # numpy has no bfloat16.
    array: NDArray[Any] = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).resolve_conj().resolve_neg().numpy()
    return array


def _of_datasets(data: Any) -> Any:
    """A column of Hugging Face datasets, or all of them by name; by way of Arrow, as a loop over rows would take long."""
    source, name = getattr(data, "source", data), getattr(data, "column_name", None)
    if library(source) == "datasets" and hasattr(source, "select_columns") and hasattr(source, "column_names"):
        columns = _arrow.read(source.select_columns([name] if name else source.column_names).with_format("arrow")[:])
        return columns[name] if name else columns
    return _object_array(list(data))


def _object_array(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _is_whole(text: str) -> bool:
    digits = text[1:] if text[:1] in "+-" else text
    return digits.isascii() and digits.isdigit()


def _kind(array: NDArray[Any]) -> str:
    first = next((value for value in array if value is not None), None)
    return "text" if isinstance(first, str) else str(array.dtype)


def _near(word: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, names, n=1)
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"; did you mean `{near[0]}`? They are: {listed}" if near else f"; they are: {listed}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
