"""Options of stream writers work, cause one warning, or are refused by name."""

from __future__ import annotations

import warnings

import pytest

from tahoe.base.exceptions import TahoeWarning, Unsupported
from tahoe.settings.setting import Setting, State
from tahoe.settings.stream_writer_options import STREAM_WRITER_OPTIONS, check_stream_writer_options
from tahoe.settings.warn_once import reset_warnings


@pytest.mark.parametrize("setting", STREAM_WRITER_OPTIONS, ids=lambda setting: setting.name)
def test_each_option_behaves_as_its_row_states(setting: Setting) -> None:
    reset_warnings()
    name = setting.name.upper() + ("appendOnly" if setting.name.endswith(".") else "")
    if setting.state is State.REFUSED:
        with pytest.raises(Unsupported, match=setting.name):
            check_stream_writer_options({name: "x"})
    elif setting.state is State.WORKS:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_stream_writer_options({name: "x"})
    else:
        with pytest.warns(TahoeWarning, match=name if setting.name == "delta." else setting.name):
            check_stream_writer_options({name: "x"})


def test_usual_values_cause_no_warning() -> None:
    reset_warnings()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_stream_writer_options({"dataChange": "true", "partitionOverwriteMode": "static", "unknown": "x"})
