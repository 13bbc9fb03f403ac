from __future__ import annotations

import pytest

from tahoe.spark.versions.class_file import parameters_in, parsed


@pytest.mark.parametrize(
    ("descriptor", "count"), [("()V", 0), ("(I)V", 1), ("(JD[[ILjava/lang/String;Z)Ljava/lang/Object;", 5), ("([Lx/I;B)V", 2)]
)
def test_the_parameters_of_a_descriptor_are_counted(descriptor: str, count: int) -> None:
    assert parameters_in(descriptor) == count


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 not a class at all", b"\xca\xfe\xba\xbe\x00\x00\x00\x3d\x00\x09\x63"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="class file"):
        parsed(data)
