"""Columns of Arrow data as numpy arrays, by the C data interface alone: neither pyarrow nor a compiled importer is needed.

Read are numbers, booleans, text, dictionaries of these, and lists of numbers, with what is missing as NaN (numbers) or None (text, lists). Everything is copied, so that
nothing outlives the object it came from.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from negscale._errors import InputError

_NUMBERS = {
    "c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8", "e": "f2", "f": "f4", "g": "f8",
}  # fmt: skip


class _Schema(ctypes.Structure):
    """The type of a column."""

    format: bytes
    name: bytes | None
    n_children: int
    children: Any
    dictionary: Any
    release: Any


class _Array(ctypes.Structure):
    """The data of a column."""

    length: int
    null_count: int
    offset: int
    n_buffers: int
    buffers: Any
    children: Any
    dictionary: Any
    release: Any


class _Stream(ctypes.Structure):
    """Arrays of one type, one after the other."""

    get_schema: Any
    get_next: Any
    get_last_error: Any
    _fields_: ClassVar = [
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Schema))),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Array))),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]

_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype, _pointer_in.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def is_arrow(data: Any) -> bool:
    """Whether an object hands out Arrow data."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def read(data: Any) -> dict[str, NDArray[Any]] | NDArray[Any]:
    """The columns of a table by name, or a single column."""
    if not hasattr(data, "__arrow_c_stream__"):
        # The capsules hold what they point to until they are gone.
        capsules = data.__arrow_c_array__()
        schema = _Schema.from_address(_pointer_in(capsules[0], b"arrow_schema"))
        array = _Array.from_address(_pointer_in(capsules[1], b"arrow_array"))
        return _read(schema, array)
    capsule = data.__arrow_c_stream__()
    parts = list(_parts(_pointer_in(capsule, b"arrow_array_stream")))
    if isinstance(parts[0], dict):
        return {name: _joined([part[name] for part in parts]) for name in parts[0]}
    return _joined(parts)


def _parts(address: int) -> Iterator[Any]:
    """What a stream brings, part by part; at least one."""
    stream = _Stream.from_address(address)

    def check(code: int) -> None:
        if code:
            said = stream.get_last_error(address)
            raise InputError(f"Arrow data could not be read: {said.decode(errors='replace') if said else f'error {code}'}")

    schema = _Schema()
    check(stream.get_schema(address, schema))
    try:
        count = 0
        while True:
            array = _Array()
            check(stream.get_next(address, array))
            if not array.release:
                break
            try:
                yield _read(schema, array)
            finally:
                array.release(array)
            count += 1
        if not count:
            yield _none_of(schema)
    finally:
        schema.release(schema)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if len({part.shape[1:] for part in parts}) > 1:
        parts = [_objects(list(part)) for part in parts]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _none_of(schema: _Schema) -> Any:
    """No rows of this type."""
    if schema.format == b"+s":
        return {_name(schema, at): _none_of(schema.children[at].contents) for at in range(schema.n_children)}
    return np.empty(0, dtype=_NUMBERS.get(schema.format.decode(), "O"))


def _name(schema: _Schema, at: int) -> str:
    return (schema.children[at].contents.name or b"").decode()


def _read(schema: _Schema, array: _Array) -> Any:
    if schema.format != b"+s":
        return _column(schema, array, array.offset, array.length)
    if not _valid(array, array.offset, array.length).all():
        raise InputError("a row of the Arrow table is missing as a whole: leave it out")
    children = ((_name(schema, at), schema.children[at].contents, array.children[at].contents) for at in range(schema.n_children))
    return {name: _column(kind, child, child.offset + array.offset, array.length) for name, kind, child in children}


def _buffer(array: _Array, at: int, dtype: str, start: int, count: int) -> NDArray[Any]:
    """Numbers of a buffer, copied."""
    kind = np.dtype(dtype)
    if not count or not array.buffers[at]:
        return np.zeros(count, dtype=kind)
    whole = (ctypes.c_char * (count * kind.itemsize)).from_address(array.buffers[at] + start * kind.itemsize)
    return np.frombuffer(memoryview(whole), dtype=kind).copy()


def _bits(array: _Array, at: int, start: int, count: int) -> NDArray[np.bool_]:
    first = start // 8
    packed = _buffer(array, at, "u1", first, (start + count + 7) // 8 - first)
    return np.unpackbits(packed, bitorder="little")[start - 8 * first :][:count].astype(np.bool_)


def _valid(array: _Array, start: int, count: int) -> NDArray[np.bool_]:
    has_bits = array.null_count != 0 and array.n_buffers > 0 and bool(array.buffers[0])
    return _bits(array, 0, start, count) if has_bits else np.ones(count, dtype=np.bool_)


def _column(schema: _Schema, array: _Array, start: int, count: int) -> NDArray[Any]:
    kind, valid = schema.format.decode(), _valid(array, start, count)
    if schema.dictionary:
        words = array.dictionary.contents
        values = _column(schema.dictionary.contents, words, words.offset, words.length)
        codes = _buffer(array, 1, _NUMBERS[kind], start, count)
        if valid.all():
            return np.asarray(values[codes])
        return _objects([values[code] if there else None for code, there in zip(codes.tolist(), valid, strict=True)])
    if kind in _NUMBERS or kind == "b":
        numbers = _bits(array, 1, start, count) if kind == "b" else _buffer(array, 1, _NUMBERS[kind], start, count)
        return numbers if valid.all() else np.where(valid, numbers, np.nan)
    if kind in ("u", "U"):
        words_of = _text(array, "i4" if kind == "u" else "i8", start, count)
    elif kind == "vu":
        words_of = _views(array, start, count)
    elif kind.startswith("+"):
        return _lists(schema, array, start, count, valid)
    else:
        name = f" `{schema.name.decode()}`" if schema.name else ""
        raise InputError(f"column{name} of the Arrow data is of type `{kind}`: give numbers or text, or leave it out")
    return _objects([word if there else None for word, there in zip(words_of, valid, strict=True)])


def _text(array: _Array, offset_type: str, start: int, count: int) -> list[str]:
    ends = _buffer(array, 1, offset_type, start, count + 1).tolist()
    data = _buffer(array, 2, "u1", ends[0], ends[-1] - ends[0]).tobytes()
    return [data[a - ends[0] : b - ends[0]].decode() for a, b in zip(ends[:-1], ends[1:], strict=True)]


def _views(array: _Array, start: int, count: int) -> list[str]:
    """Text of which short words stand beside their lengths, and others in one of several buffers."""
    views = _buffer(array, 1, "V16", start, count).tobytes()
    words = []
    for at in range(0, len(views), 16):
        size, _, buffer, offset = (int.from_bytes(views[at + 4 * part : at + 4 * part + 4], "little") for part in range(4))
        words.append(views[at + 4 : at + 4 + size] if size <= 12 else _buffer(array, 2 + buffer, "u1", offset, size).tobytes())
    return [word.decode() for word in words]


def _lists(schema: _Schema, array: _Array, start: int, count: int, valid: NDArray[np.bool_]) -> NDArray[Any]:
    """Lists, as rows if all are of one length."""
    kind = schema.format.decode()
    if kind.startswith("+w:"):
        width = int(kind[3:])
        ends = (start + np.arange(count + 1)) * width
    elif kind in ("+l", "+L"):
        ends = _buffer(array, 1, "i4" if kind == "+l" else "i8", start, count + 1)
    else:
        raise InputError(f"Arrow data of type `{kind}` are not read: give numbers, text, or lists of numbers")
    child, first = array.children[0].contents, int(ends[0])
    flat = _column(schema.children[0].contents, child, child.offset + first, int(ends[-1]) - first)
    sizes = np.diff(ends)
    if count and valid.all() and (sizes == sizes[0]).all():
        return flat.reshape(count, -1, *flat.shape[1:]) if flat.size else flat.reshape(count, 0)
    pairs = zip((ends[:-1] - first).tolist(), (ends[1:] - first).tolist(), valid, strict=True)
    return _objects([flat[a:b] if there else None for a, b, there in pairs])


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        array[at] = value
    return array
