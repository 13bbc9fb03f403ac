"""The request of a stream's writer."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest, TahoeWarning, Unsupported
from tahoe.settings.warn_once import reset_warnings
from tahoe.spark.sink.sink_request import sink_request


def test_append_and_complete() -> None:
    append = sink_request("Append", ["p"], {"mergeSchema": "true", "checkpointLocation": "/c", "path": "/t"}, {})
    assert (append.options.mode, append.options.partition_by, append.options.merge_schema) == ("append", ("p",), True)
    assert append.options.same_types is False and append.files.hadoop == {}
    settings = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
    complete = sink_request("complete", None, {"overwriteSchema": "true"}, settings)
    assert (complete.options.mode, complete.options.overwrite_schema) == ("overwrite", True)
    assert complete.options.dynamic_partitions is False


def test_a_stream_has_no_other_number_than_its_own() -> None:
    settings = {"spark.databricks.delta.write.txnAppId": "a", "spark.databricks.delta.write.txnVersion": "1"}
    assert sink_request("append", None, {}, settings).options.app is None
    reset_warnings()
    with pytest.warns(TahoeWarning, match="txnAppId|txnVersion"):
        request = sink_request("append", None, {"txnAppId": "a", "TXNVERSION": "1"}, {})
    assert request.options.app is None
    with pytest.raises(InvalidRequest, match="both txnAppId and txnVersion"):
        sink_request("append", None, {"txnAppId": "a"}, {})


def test_refused_options_are_named() -> None:
    with pytest.raises(Unsupported) as caught:
        sink_request("Update", None, {}, {})
    assert caught.value.code == "DELTA_UNSUPPORTED_OUTPUT_MODE"
    with pytest.raises(Unsupported, match="replaceWhere"):
        sink_request("complete", None, {"replaceWhere": "id = 1"}, {})
    with pytest.raises(InvalidRequest, match="mergeSchema"):
        sink_request("append", None, {"mergeSchema": "perhaps"}, {})
