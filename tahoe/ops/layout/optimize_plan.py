"""The options of an OPTIMIZE, and its plan for a version. Pure except for reading that version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pc
from tahoe.ops.layout.bins import GIGABYTE, Bin, Rules, bins_of, one_bin_a_partition, target_for_rewrites
from tahoe.ops.layout.cluster_columns import cluster_columns, refuse_for_clustered
from tahoe.ops.layout.cubes import LEAST_BYTES, TARGET_BYTES, CubePlan, CubeRules, plan_cubes
from tahoe.ops.layout.curves import CURVES
from tahoe.ops.rows.conditions import PartitionFilter, select_partitions
from tahoe.ops.tables.cluster_by import clustering_columns
from tahoe.ops.tables.requests import OptimizeOptions
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import Path, shown_path
from tahoe.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeRequest(OptimizeOptions):
    """The options of an OPTIMIZE, with those that a session or an auto compaction sets.

    Args:
        shown_where: the condition for the history; None for the text itself.
        batch_size: bytes of rewritten files after which a commit follows; None for a single commit.
        threads: the greatest number of bins that are rewritten concurrently.
        need_statistics: refuse to cluster by columns without statistics, by which files cannot be skipped.
        engine: evaluates conditions that Tahoe does not evaluate.
        is_auto: whether it is an auto compaction after a write.
    """

    shown_where: tuple[str, ...] | None = None
    batch_size: int | None = None
    threads: int = 15
    need_statistics: bool = True
    engine: PartitionFilter | None = None
    is_auto: bool = False

    def __post_init__(self) -> None:
        sizes = {"target_file_size": self.target_file_size, "min_file_size": self.min_file_size, "batch_size": self.batch_size}
        cubes = {"min_cube_size": self.min_cube_size, "target_cube_size": self.target_cube_size}
        for least, options in ((1, sizes), (0, cubes)):
            for name, size in options.items():
                if size is not None and size < least:
                    raise InvalidRequest(
                        f"{name} must be at least {least}, in bytes, found {size}.", code="DELTA_ILLEGAL_OPTION", option=name
                    )
        if self.curve not in CURVES:
            raise InvalidRequest(
                f"There is no curve '{self.curve}' to cluster rows by; use one of {', '.join(CURVES)}.",
                code="DELTA_ILLEGAL_OPTION",
                option="curve",
            )
        if not 0 <= self.max_deleted_rows_ratio <= 1:
            raise InvalidRequest(
                f"max_deleted_rows_ratio must be from 0 to 1, found {self.max_deleted_rows_ratio}.",
                code="DELTA_ILLEGAL_OPTION",
                option="max_deleted_rows_ratio",
            )


@dataclass(frozen=True, slots=True)
class OptimizePlan:
    """The plan of an OPTIMIZE.

    Args:
        table: the URL of the table.
        version: the planned version.
        considered: the number of live files in the selected partitions.
        bins: the files that are rewritten together.
        rules: the rules that selected the files.
        columns, columns_with_statistics: the number of columns in the table, and the number of those with statistics.
        paths: the paths of the clustering columns.
        cubes: the existing and the new cubes of a clustered table; None for any other table.
    """

    table: str
    version: int
    request: OptimizeRequest = field(repr=False)
    considered: int
    bins: tuple[Bin, ...] = field(repr=False)
    rules: Rules
    columns: int
    columns_with_statistics: int
    paths: tuple[Path, ...] = ()
    cubes: CubePlan | None = field(default=None, repr=False)

    @property
    def clusters(self) -> bool:
        """Whether rows are clustered, not only bin-packed."""
        return bool(self.paths)

    @property
    def cluster_by(self) -> tuple[str, ...]:
        """The clustering columns of a clustered table in display form; empty for any other table, even with ``ZORDER BY``."""
        return () if self.cubes is None else tuple(map(shown_path, self.paths))

    @property
    def files(self) -> int:
        """The number of files to rewrite."""
        return sum(len(files.adds) for files in self.bins)

    @property
    def size(self) -> int:
        """The total size of the files to rewrite in bytes."""
        return sum(files.size for files in self.bins)

    @property
    def new_files(self) -> int:
        """The approximate number of new files."""
        return sum(self.files_of(files) for files in self.bins)

    def files_of(self, files: Bin) -> int:
        """Return the number of new files of a bin."""
        return max(1, files.size // self.rules.target) if self.clusters else 1

    def is_worth_it(self, adds: Sequence[AddFile]) -> bool:
        """Whether these files of a bin should be rewritten."""
        if self.clusters:
            return bool(adds)
        return len(adds) > 1 or any(add.deletion_vector is not None for add in adds)

    def batches(self) -> Iterator[list[Bin]]:
        """Yield the bins of each commit."""
        most = self.request.batch_size
        batch: list[Bin] = []
        for files in self.bins:
            if batch and most is not None and sum(other.size for other in batch) + files.size > most:
                yield batch
                batch = []
            batch.append(files)
        if batch:
            yield batch


def _usual_target(snapshot: Snapshot) -> int:
    if not snapshot.config.properties.get("delta.tuneFileSizesForRewrites"):
        return GIGABYTE
    return target_for_rewrites(pc.sum(snapshot.files()["size"]).as_py() or 0)


def plan_optimize(snapshot: Snapshot, request: OptimizeRequest, moment: Moment) -> OptimizePlan:
    """Plan an OPTIMIZE of a version. Raises `InvalidRequest` in the cases of `tahoe.ops.layout.optimize.optimize`.

    Args:
        moment: the time and time zone of the statement.
    """
    properties = snapshot.config.properties
    target = request.target_file_size or properties.target_file_size or _usual_target(snapshot)
    rules = Rules(target, request.min_file_size or target, request.max_deleted_rows_ratio)
    refuse_for_clustered(snapshot, where=request.where is not None, zorder_by=request.zorder_by, is_full=request.full)
    paths = cluster_columns(snapshot, request.zorder_by, need_statistics=request.need_statistics)
    selected = select_partitions(snapshot, request.where, moment, engine=request.engine)
    adds, request = selected.adds, replace(request, where=selected.condition, engine=None)  # the plan is sent to executors
    bins = one_bin_a_partition(adds) if paths else bins_of(adds, rules)
    clustered, cubes = clustering_columns(snapshot), None
    if clustered:
        cubes = plan_cubes(adds, _cube_rules(clustered, request))
        paths, bins = clustered, list(cubes.bins)
    columns, indexed = len(snapshot.schema), int(properties.get("delta.dataSkippingNumIndexedCols"))
    return OptimizePlan(
        table=snapshot.store.url,
        version=snapshot.version,
        request=request,
        considered=len(adds),
        bins=tuple(bins),
        rules=rules,
        columns=columns,
        columns_with_statistics=min(indexed, columns) if indexed >= 0 else columns,
        paths=paths,
        cubes=cubes,
    )


def _cube_rules(paths: Sequence[Path], request: OptimizeRequest) -> CubeRules:
    columns = tuple(map(shown_path, paths))
    least = LEAST_BYTES if request.min_cube_size is None else request.min_cube_size
    target = TARGET_BYTES if request.target_cube_size is None else request.target_cube_size
    return CubeRules(columns, least, target, request.max_deleted_rows_ratio, request.full)
