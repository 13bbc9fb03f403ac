"""The data files of a client: registered as they are where every Delta reader reads them correctly, else written again.

file of a manifest ─► below the root? ─► footer: rows, size ─► `why_rewritten` ─┬─ None ──► add, with statistics of the footer
                                                                                └─ reason ► rows by field id ─► the table's writer
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, Unsupported
from tahoe.base.json_values import JsonMapping
from tahoe.base.lazy import pc
from tahoe.base.progress import silent
from tahoe.ops.copies.parquet_folder import each_footer
from tahoe.ops.rows.row_changes import is_in, position_column
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.row_ids import config_with_row_ids, without_id_statistics
from tahoe.ops.write.writer import WriterOptions, tagged, write_arrow
from tahoe.protocol.actions import AddFile
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT
from tahoe.protocol.column_values.identity import refuse_explicit
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import is_filled_in
from tahoe.protocol.nan_bounds import with_statistics
from tahoe.protocol.row_tracking import ROW_COMMIT_VERSION_FIELD_ID, ROW_ID_FIELD_ID
from tahoe.protocol.statistics.collect import indexed_columns, statistics_of_footer, string_prefix_length
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.mapping import PHYSICAL_NAME_KEY, transform_fields
from tahoe.schema.types import StructField, StructType
from tahoe.snapshot.scan import BareVersion, Scan
from tahoe.store.location import encode_path, name_below
from tahoe.store.log_store import Entry, LogStore
from tahoe.txn.transaction import Transaction
from tahoe.uniform.commits.client_manifests import ClientFile
from tahoe.uniform.commits.manifest_metrics import contradiction, wrong_row_ids
from tahoe.uniform.commits.partition_tuples import partition_texts, python_values
from tahoe.uniform.commits.registration import FIELD_ID, ids_in, why_rewritten
from tahoe.uniform.formats.metadata_files import FOLDER

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyroaring import BitMap64


_HIDDEN = ("_", ".")


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A data file of a client.

    Args:
        add: the file as it would be registered.
        rows: the number of its rows.
        reason: why its rows are written again; None if it is registered.
        has_ids: whether its columns have field ids; without any they are found by their names in the table.
        has_row_ids: whether it has a column for the ids that its rows had in other files.
        dead: the positions of its rows that the same commit deletes; they are not written.
    """

    add: AddFile
    rows: int
    reason: str | None
    has_ids: bool = True
    has_row_ids: bool = False
    dead: BitMap64 | None = None

    @property
    def live_rows(self) -> int:
        """The number of rows without deleted ones."""
        return self.rows - (0 if self.dead is None else len(self.dead))

    def without_rows(self, dead: BitMap64 | None) -> IncomingFile:
        """Return the file without rows that the same commit deletes."""
        if not dead:
            return self
        if dead.max() >= self.rows:
            raise InvalidRequest(
                f"A delete file deletes row {dead.max()} of the file {self.add.path}, which has {self.rows} rows.",
                code="TAHOE_ICEBERG_DELETES",
            )
        return replace(self, reason="the same commit deletes some of its rows", dead=dead)


def incoming_files(
    store: LogStore, config: TableConfig, document: JsonMapping, files: Sequence[ClientFile], now_ms: int
) -> list[IncomingFile]:
    """Read the footers of a client's data files, and decide which of them are registered. Nothing is written.

    Args:
        config: the configuration of the version that adds the files.
        document: the current Iceberg metadata.

    Raises:
        InvalidRequest: a file is outside the table's root, missing, no Parquet file, or has other numbers of rows or bytes than its manifest
            states.
        Unsupported: a file of another format.
    """
    names = [_data_name(store, file) for file in files]
    stored = config_with_row_ids(config)
    highest: dict[int, int] = {}
    if stored is not config:
        highest = {
            ROW_ID_FIELD_ID: document.get("next-row-id", 0) - 1,  # format 2 has no row ids
            ROW_COMMIT_VERSION_FIELD_ID: document["last-sequence-number"],
        }

    def looked_at(footer: FileMetaData, url: str) -> tuple[FileMetaData, Entry | None]:
        return footer, store.head(url.removeprefix(f"{store.url}/"))

    def decided(file: ClientFile, name: str, footer: FileMetaData, entry: Entry | None) -> IncomingFile:
        if footer.num_rows != file.rows:
            raise _wrong(file, f"has {footer.num_rows} rows, and {file.rows} by its manifest")
        if entry is None or entry.size != file.size:
            raise _wrong(file, f"has {0 if entry is None else entry.size} bytes, and {file.size} by its manifest")
        values = python_values(file, config, document)
        by_id = {
            column.field_id: values[column.physical_name] for column in config.partition_schema if column.field_id is not None
        }
        if (problem := contradiction(file, footer, by_id) or wrong_row_ids(footer, highest)) is not None:
            raise _wrong(file, problem)
        reason = "its folder is hidden" if _is_hidden(name) else why_rewritten(stored, footer, values)
        add = AddFile(encode_path(name), partition_texts(values, config), file.size, now_ms, True)
        has_row_ids = bool(highest) and ROW_ID_FIELD_ID in ids_in(footer)
        if reason is None:
            return IncomingFile(_with_footer(add, footer, config), file.rows, None, has_row_ids=has_row_ids)
        return IncomingFile(add, file.rows, reason, _has_ids(file, footer), has_row_ids)

    try:
        footers = list(each_footer(store, names, looked_at, silent))
    except (CorruptTable, NotFound) as error:
        raise InvalidRequest(error.message, code="TAHOE_ICEBERG_FILE", table=store.url) from error
    return [decided(file, name, *each) for file, name, each in zip(files, names, footers, strict=True)]


def stage_files(
    transaction: Transaction, config: TableConfig, files: Sequence[IncomingFile], *, data_change: bool
) -> list[AddFile]:
    """Stage the files: those without a reason as they are, the rows of the others as new files of the table's writer.

    Raises `InvariantViolation` if a row breaks a rule of the table; the rewritten files are then deleted.
    """
    adds = [file.add for file in files if file.reason is None]
    rewritten = [file for file in files if file.reason is not None]
    if rewritten:
        stored = config_with_row_ids(config)
        rows = _without_computed(stored, rows_of(transaction, stored, rewritten))
        options = WriterOptions(completion=Completion(transaction, rows.schema.names))
        written = write_arrow(stored, transaction.store, rows, transaction.clock, options)
        adds += [without_id_statistics(config, add) for add in written]
    staged = [tagged(config, replace(add, data_change=data_change)) for add in adds]
    transaction.stage(*staged)
    return staged


def _without_computed(config: TableConfig, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader | pa.Table:
    """Return the rows without identity and generated columns of which a client has left every value NULL: the table computes them.

    Raises `InvalidRequest` for values of a column whose values only the table may assign.
    """
    schema = _nullable(config)
    # A client applies defaults itself: NULL in a column with a default is the client's value.
    computed = [column.name for column in config.schema if is_filled_in(column) and CURRENT_DEFAULT not in column.metadata]
    if not computed:
        return pa.RecordBatchReader.from_batches(schema, batches)
    rows = pa.Table.from_batches(batches, schema)
    rows = rows.drop_columns([name for name in computed if rows.column(name).null_count == rows.num_rows])
    refuse_explicit(config.schema, rows.column_names, config.table)
    return rows


def rows_of(transaction: Transaction, config: TableConfig, files: Sequence[IncomingFile]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a client's files, whose columns are found by field ids, or by the table's names if a file has no ids at all.

    Args:
        config: with the columns of row ids (`config_with_row_ids`), if the rows keep theirs.
    """
    position, schema = position_column(config.schema), _nullable(config)
    for file in files:
        reading = _reading(config, "id", config.schema) if file.has_ids else _reading(config, "name", _by_logical_names(config))
        names = {column.physical_name: reading.schema.field(column.name).physical_name for column in config.schema}
        values = {names[name]: text for name, text in file.add.partition_values.items()}
        scan = Scan(BareVersion(transaction.store, 0, reading))
        for batch in scan.read_with_positions(replace(file.add, partition_values=values), position):
            rows = batch.select(schema.names).cast(schema)
            yield rows if file.dead is None else rows.filter(pc.invert(is_in(batch.column(position), file.dead)))


def _reading(config: TableConfig, mode: str, schema: StructType) -> TableConfig:
    configuration = {**config.metadata.configuration, "delta.columnMapping.mode": mode}
    return replace(config, metadata=replace(config.metadata, configuration=configuration, schema_string=schema.to_json()))


def _by_logical_names(config: TableConfig) -> StructType:
    def named(column: StructField) -> StructField:
        return replace(column, metadata={**column.metadata, PHYSICAL_NAME_KEY: column.name})

    return transform_fields(config.schema, named)


def _has_ids(file: ClientFile, footer: FileMetaData) -> bool:
    """Whether the columns of a file have field ids. Raises `InvalidRequest` if only some have, or several have the same."""
    ids = [(column.metadata or {}).get(FIELD_ID) for column in _columns_in(footer.schema.to_arrow_schema())]
    field_ids = [number for number in ids if number is not None]
    if len(field_ids) not in (0, len(ids)):
        raise _wrong(file, "has columns with field ids and others without")
    if len(set(field_ids)) < len(field_ids):
        raise _wrong(file, "has two columns with the same field id")
    return bool(field_ids)


def _columns_in(fields: Iterable[pa.Field]) -> Iterator[pa.Field]:
    """Yield the columns of a file and the fields of structs at every depth."""
    for column in fields:
        yield column
        kinds = [column.type]
        while kinds:
            kind = kinds.pop()
            if pa.types.is_struct(kind):
                yield from _columns_in(kind.fields)
            elif pa.types.is_map(kind):
                kinds += [kind.key_type, kind.item_type]
            elif pa.types.is_list(kind):
                kinds.append(kind.value_type)


def _nullable(config: TableConfig) -> pa.Schema:
    """Return the table's columns, all nullable: the writer checks NOT NULL."""
    return pa.schema([column.with_nullable(True) for column in to_arrow_schema(config.schema)])


def _with_footer(add: AddFile, footer: FileMetaData, config: TableConfig) -> AddFile:
    """Return the file with the statistics of its footer."""
    properties = config.metadata.configuration
    indexed, prefix = indexed_columns(config.schema, config.partition_columns, properties), string_prefix_length(properties)
    mode = config.column_mapping_mode
    statistics = statistics_of_footer(footer, config.schema, indexed, column_mapping_mode=mode, prefix_length=prefix)
    return with_statistics(add, statistics, indexed)


def store_name(store: LogStore, location: str) -> str:
    """Return the store name of a file of a client. Raises `InvalidRequest` if it is outside of the table's folder."""
    name = name_below(store.url, location)
    if name is not None:
        return name
    raise InvalidRequest(
        f"{location} is outside of the folder of table {store.url}; it is not opened. Write the file below the folder.",
        code="TAHOE_PATH_OUTSIDE_TABLE",
        table=store.url,
        path=location,
    )


def _data_name(store: LogStore, file: ClientFile) -> str:
    if file.file_format != "PARQUET":
        raise Unsupported(
            f"The file {file.path} is of the format {file.file_format:.20}, and a Delta table's files are Parquet files. Set "
            "write.format.default to parquet.",
            code="TAHOE_ICEBERG_FILE",
            file=file.path,
        )
    return store_name(store, file.path)


def _is_hidden(name: str) -> bool:
    """Whether a file is in a folder whose files are no data files to Delta: VACUUM ignores some, and Iceberg's has its own rules."""
    folder = name.partition("/")[0]
    return folder == FOLDER or any(part.startswith(_HIDDEN) for part in name.split("/"))


def _wrong(file: ClientFile, problem: str) -> InvalidRequest:
    return InvalidRequest(f"The file {file.path} {problem}. Write it again.", code="TAHOE_ICEBERG_FILE", file=file.path)
