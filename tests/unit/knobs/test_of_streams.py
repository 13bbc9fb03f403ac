"""Options of the writers of streams: followed, told of once, or refused by name."""

from __future__ import annotations

import warnings

import pytest

from tahoe.exceptions import TahoeWarning, Unsupported
from tahoe.knobs.knob import Knob, State
from tahoe.knobs.of_streams import STREAM_WRITER_OPTIONS, stream_writer_given
from tahoe.knobs.told import forget_what_was_told


@pytest.mark.parametrize("knob", STREAM_WRITER_OPTIONS, ids=lambda knob: knob.name)
def test_each_row_of_the_table_holds(knob: Knob) -> None:
    forget_what_was_told()
    name = knob.name.upper() + ("appendOnly" if knob.name.endswith(".") else "")
    if knob.state is State.REFUSED:
        with pytest.raises(Unsupported, match=knob.name):
            stream_writer_given({name: "x"})
    elif knob.state is State.WORKS:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stream_writer_given({name: "x"})
    else:
        with pytest.warns(TahoeWarning, match=name if knob.name == "delta." else knob.name):
            stream_writer_given({name: "x"})


def test_what_is_usual_is_not_told() -> None:
    forget_what_was_told()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream_writer_given({"dataChange": "true", "partitionOverwriteMode": "static", "unknown": "x"})
