"""A footer of a known shape is one that Arrow accepts, and the quick check reports its problems."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from tahoe.log.checkpoints.footer_check import fault_in_footer
from tahoe.log.checkpoints.footer_shape import FooterShape
from tahoe.protocol.statistics.thrift import footer_of, read_integer, write_struct
from tahoe.schema.geospatial import WellKnownBinary

NESTED = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.string()))])


def footer(first: int, text: str, rows: int = 3, **options: object) -> bytes:
    """Of a file with a column of each kind of bounds; the nested ones of which nothing is known."""
    table = pa.table(
        {
            "id": pa.array(range(first, first + rows), pa.int64()),
            "text": [text] * rows,
            "truth": [True] * rows,
            "nested": pa.array([{"x": 1, "l": ["a"]}] * rows, NESTED),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    data = sink.getvalue().to_pybytes()
    return bytes(data[-8 - int.from_bytes(data[-8:-4], "little") : -8])


def test_files_of_one_writer_have_one_shape_and_their_numbers_and_bounds_are_found() -> None:
    shape = FooterShape.of(footer(1, "a"))
    assert shape is not None
    for first, text, rows in ((-5, "", 1), (1 << 40, "a longer text é", 63), (7, "z" * 100, 5)):
        actual = shape.values_in(footer(first, text, rows))
        assert actual is not None
        assert read_integer(actual[shape.rows], 0) == rows
        least, greatest = ([actual[place] for place in sides] for sides in zip(*shape.bounds.values(), strict=True))
        assert least[:2] == [first.to_bytes(8, "little", signed=True), text.encode()]
        assert greatest[:2] == [(first + rows - 1).to_bytes(8, "little", signed=True), text.encode()]


def test_another_schema_codec_or_number_of_row_groups_is_another_shape() -> None:
    shape = FooterShape.of(footer(1, "a"))
    assert shape is not None
    assert shape.values_in(footer(1, "a", compression="zstd")) is None
    assert shape.values_in(footer(1, "a", use_dictionary=False)) is None
    assert shape.values_in(footer(1, "a", 2, row_group_size=1)) is None
    assert shape.values_in(footer(1, "a", write_statistics=["id"])) is None
    assert FooterShape.of(footer(1, "a", 2, row_group_size=1)) is None
    assert shape.values_in(b"") is None and FooterShape.of(b"") is None and FooterShape.of(b"\x15") is None
    assert FooterShape.of(footer(1, "a") + b"\0") is None


def test_no_bit_can_be_changed_so_that_a_footer_has_the_shape_and_arrow_cannot_take_it() -> None:
    """All bits of a footer. (Of those that have the shape still, it is walked that nothing is wrong with them.)"""
    shape, whole = FooterShape.of(footer(1, "a")), footer(9, "text")
    assert shape is not None
    remaining = 0
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        if shape.values_in(bytes(changed)) is not None:
            assert fault_in_footer(bytes(changed)) is None, bit
            remaining += 1
    assert remaining > 200


def test_bytes_left_out_or_put_in_are_another_shape_or_a_footer_that_arrow_can_take() -> None:
    shape, whole = FooterShape.of(footer(1, "a")), footer(9, "text")
    assert shape is not None
    for at in range(len(whole)):
        for changed in (whole[:at] + whole[at + 1 :], whole[:at] + b"\x04" + whole[at:], whole[:at]):
            assert shape.values_in(changed) is None or fault_in_footer(changed) is None, at


def test_statistics_of_geometries_are_those_of_columns_that_hold_them() -> None:
    """Arrow reads them by the column's logical type, and ends the process over some that are none."""
    point = b"\x01\x01\x00\x00\x00" + b"\x00" * 16
    kind = WellKnownBinary("geometry(OGC:CRS84)")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"g": pa.ExtensionArray.from_storage(kind, pa.array([point]))}), sink, store_schema=False)
    _, values = footer_of(sink.getvalue().to_pybytes())
    assert fault_in_footer(write_struct(values)) is None
    statistics = values[4][1][1][0][1][1][1][0][3][1][17][1]
    box = statistics[1][1]
    assert set(box) == {1, 2, 3, 4}
    del box[4]
    assert "geospatial statistics that are none" in str(fault_in_footer(write_struct(values)))
    del statistics[1]
    assert fault_in_footer(write_struct(values)) is None
    del values[2][1][1][1][10]
    assert "geospatial statistics that are none" in str(fault_in_footer(write_struct(values)))
