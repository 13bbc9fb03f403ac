"""Iceberg writers that bypass Delta: detected before anything is overwritten, reported, and resolved by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import Result
from pyiceberg.catalog.sql import SqlCatalog as TheirCatalog
from typer.testing import CliRunner

from tahoe import Table
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.base.exceptions import ForeignWriter, InvalidRequest, TahoeError, Unsupported
from tahoe.cli.main import app
from tahoe.uniform.catalogs.catalog_entries import SqlCatalog
from tahoe.uniform.formats.metadata_files import metadata_name
from tests.interop.engines import canonical
from tests.interop.iceberg import read_pyiceberg

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("part", pa.string())])
PROPERTIES = {"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"}


def rows(start: int, count: int = 5) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": list(ids), "text": [f"t{i}" for i in ids], "part": ["ab"[i % 2] for i in ids]}, schema=SCHEMA)


class Scene:
    """A Delta table whose Iceberg side is in a catalog; `theirs` is that catalog as another writer has it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "table"
        self.table = Table.create(self.path, SCHEMA, properties=PROPERTIES, partition_by=["part"])
        self.theirs = TheirCatalog("theirs", uri=f"sqlite:///{folder}/catalog.db")
        self.ours = SqlCatalog(self.theirs, "a.b")
        for start in (0, 10):
            self.table.append(rows(start))
            self.sync()  # each: a snapshot for each version, where one conversion of both would make one

    def sync(self, **options: bool) -> str:
        return self.table.uniform.sync(self.ours, **options).metadata_location

    @property
    def newest(self) -> Path:
        return self.path / metadata_name(self.table.version())

    def edit(self, change: Callable[[dict[str, object]], None], target: Path | None = None) -> None:
        document = json.loads(self.newest.read_text())
        change(document)
        (target or self.newest).write_text(json.dumps(document))

    def load(self) -> object:
        return self.theirs.load_table("a.b")


def append(scene: Scene) -> None:
    scene.load().append(rows(100, 4))


def overwrite(scene: Scene) -> None:
    scene.load().overwrite(rows(100, 4))


def delete(scene: Scene) -> None:
    scene.load().delete("id = 3")


def change_schema(scene: Scene) -> None:
    with scene.load().update_schema() as update:
        update.add_column("more", _string())


def set_properties(scene: Scene) -> None:
    scene.load().transaction().set_properties({"mine": "now"}).commit_transaction()


def expire_snapshots(scene: Scene) -> None:
    first = scene.load().metadata.snapshots[0].snapshot_id
    scene.load().maintenance.expire_snapshots().by_id(first).commit()


def append_through_a_catalog_of_its_own(scene: Scene) -> None:
    mine = TheirCatalog("mine", uri=f"sqlite:///{scene.path.parent}/mine.db")
    mine.create_namespace("x")
    mine.register_table("x.y", f"file://{scene.newest}").append(rows(100, 4))
    mine.engine.dispose()


def drop_from_the_catalog(scene: Scene) -> None:
    scene.theirs.drop_table("a.b")


def purge(scene: Scene) -> None:
    """The result of a purge that ignores gc.enabled = false: no metadata at all."""
    scene.theirs.drop_table("a.b")
    for file in (scene.path / "metadata").iterdir():
        file.unlink()


def write_a_newer_metadata_file_by_hand(scene: Scene) -> None:
    scene.edit(lambda document: document.update({"last-sequence-number": 99}), scene.path / metadata_name(77))


def edit_our_metadata_file(scene: Scene) -> None:
    scene.edit(lambda document: document["properties"].update({"owner": "me"}))


def edit_the_hint(scene: Scene) -> None:
    (scene.path / "metadata/version-hint.text").write_text("00001-abc")


ROGUES = [
    append,
    overwrite,
    delete,
    change_schema,
    set_properties,
    expire_snapshots,
    append_through_a_catalog_of_its_own,
    drop_from_the_catalog,
    purge,
    write_a_newer_metadata_file_by_hand,
    edit_our_metadata_file,
    edit_the_hint,
]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    # The catalog was given by hand: a conversion in the background, which does not know of it, would go on where only it was changed.
    monkeypatch.setattr(UNIFORM_RUNTIME.queue, "submit", lambda *_: None)
    scene = Scene(tmp_path)
    yield scene
    scene.theirs.engine.dispose()


def _string() -> object:
    from pyiceberg.types import StringType

    return StringType()


def _content(scene: Scene) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in scene.path.rglob("*") if file.is_file() and "_delta_log" not in str(file)}


@pytest.mark.parametrize("rogue", ROGUES, ids=lambda rogue: rogue.__name__)
def test_another_writer_is_noticed_by_the_next_conversion_which_changes_nothing(
    scene: Scene, rogue: Callable[[Scene], None]
) -> None:
    expected = canonical(scene.table.to_arrow())
    rogue(scene)
    left = _content(scene)
    scene.table.append(rows(20))  # the Delta side continues despite the external writer
    with pytest.raises(ForeignWriter, match="Another writer has changed the Iceberg side"):
        scene.sync()
    now = _content(scene)
    assert {name: now.get(name) for name in left} == left, "what was there is there still, theirs and ours"
    assert not [name for name in now.keys() - left.keys() if name.endswith(".metadata.json")]
    # The Delta side is sound; the other side is reported, except where only the catalog changed, which the caller passed in.
    assert {actual.code for actual in scene.table.check()} == (set() if rogue is drop_from_the_catalog else {"iceberg"})

    plan = scene.table.uniform.repair(discard=True, dry_run=True)
    assert plan.kind == ("none" if rogue is drop_from_the_catalog else "discard"), "the catalog was given by hand"
    scene.sync(rebuild=True)
    assert canonical(read_pyiceberg(scene.load().metadata_location)) == canonical(scene.table.to_arrow())
    assert len(canonical(scene.table.to_arrow())) == len(expected) + 5
    scene.table.append(rows(30))
    scene.sync()
    assert canonical(scene.load().scan().to_arrow()) == canonical(scene.table.to_arrow())


def test_the_error_names_snapshot_files_and_rows(scene: Scene) -> None:
    append(scene)
    foreign = scene.load().metadata.snapshots[-1]
    with pytest.raises(ForeignWriter) as caught:
        scene.sync()
    facts = caught.value.facts
    assert facts["snapshots"] == [foreign.snapshot_id]
    assert facts["rows"] == 4
    assert len(facts["files"]) == 2, "one for each partition"
    assert all(Path(file.removeprefix("file://")).exists() for file in facts["files"])
    assert str(foreign.snapshot_id) in str(caught.value)
    assert scene.table.uniform.status().last_error.code == "TAHOE_UNIFORM_FOREIGN_WRITER"


@pytest.mark.parametrize("rogue", [append, append_through_a_catalog_of_its_own], ids=lambda rogue: rogue.__name__)
def test_appended_rows_can_be_taken_over_once(scene: Scene, rogue: Callable[[Scene], None]) -> None:
    expected = canonical(pa.concat_tables([scene.table.to_arrow().select(SCHEMA.names), rows(100, 4)]))
    rogue(scene)
    planned = scene.table.uniform.repair(adopt=True, dry_run=True)
    assert (planned.kind, planned.adopted_rows, planned.adopted_files, planned.version) == ("adopt", 4, 2, None)
    assert scene.table.version() == 2
    done = scene.table.uniform.repair(adopt=True)
    assert (done.version, done.adopted_rows) == (3, 4)
    assert canonical(scene.table.to_arrow()) == expected
    assert canonical(read_pyiceberg(done.metadata_location)) == expected
    assert scene.table.check() == []
    assert scene.table.uniform.repair(adopt=True).kind == "none"


def test_a_crash_between_taking_over_and_going_on_does_not_double_rows(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    append(scene)
    handle = scene.table.uniform
    with monkeypatch.context() as crash:
        crash.setattr(type(handle), "sync", lambda self, **options: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            handle.repair(adopt=True)
    handle.repair(adopt=True)
    assert scene.table.to_arrow().num_rows == 14


@pytest.mark.parametrize("rogue", [overwrite, delete, change_schema], ids=lambda rogue: rogue.__name__)
def test_commits_other_than_appends_are_not_taken_over(scene: Scene, rogue: Callable[[Scene], None]) -> None:
    rogue(scene)
    with pytest.raises((Unsupported, InvalidRequest), match="discard"):
        scene.table.uniform.repair(adopt=True)
    assert scene.table.version() == 2


def test_rows_that_break_a_constraint_are_not_taken_over(scene: Scene) -> None:
    scene.table.add_constraint("small", "id < 100")
    scene.sync()
    append(scene)
    with pytest.raises(InvalidRequest, match="small"):
        scene.table.uniform.repair(adopt=True)
    assert scene.table.to_arrow().num_rows == 10


def test_a_repair_is_one_of_two_things(scene: Scene) -> None:
    for options in ({}, {"adopt": True, "discard": True}):
        with pytest.raises(InvalidRequest, match="adopt=True"):
            scene.table.uniform.repair(**options)


def test_the_command_line_repairs(scene: Scene) -> None:
    append(scene)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["uniform", *arguments])

    status = run("status", str(scene.path), "--json")
    assert json.loads(status.stdout)["last_error"]["code"] == "TAHOE_UNIFORM_FOREIGN_WRITER"
    for command in ("sync", "repair"):
        assert isinstance(run(command, str(scene.path)).exception, TahoeError)
    dry = run("repair", str(scene.path), "--adopt", "--dry-run", "--json")
    assert json.loads(dry.stdout)["adopted_rows"] == 4
    assert run("repair", str(scene.path), "--adopt").exit_code == 0
    assert scene.table.to_arrow().num_rows == 14
    assert json.loads(run("status", str(scene.path), "--json").stdout)["lag_versions"] == 0


def test_clean_conversions_raise_no_alarm(memory_url: str) -> None:
    """60 commits, each with its conversion. `make soak` makes a thousand."""
    _convert_again_and_again(memory_url, 60)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_thousand_clean_conversions_raise_no_alarm(memory_url: str) -> None:
    _convert_again_and_again(memory_url, 1_000)


def _convert_again_and_again(memory_url: str, commits: int) -> None:
    few_snapshots = {"delta.deletedFileRetentionDuration": "interval 1 second"}
    table = Table.create(memory_url, SCHEMA, properties=PROPERTIES | few_snapshots)
    for number in range(commits):
        table.append(rows(number, 1))
        if number % 3 == 0:  # conversions of one commit and of several; those in the background run beside these
            table.uniform.sync()
    status = table.uniform.wait(timeout=200)
    assert (status.lag_versions, status.last_error) == (0, None)
