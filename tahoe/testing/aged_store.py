"""A store whose files grow old as fast as a test likes, and the clock of a machine beside it: for what waits days before it deletes."""

from __future__ import annotations

from collections.abc import Iterator

from tahoe.clock import SYSTEM_CLOCK
from tahoe.store.log_store import Entry, LogStore, PutOutcome
from tahoe.testing.faulty_store import WrappedStore

__all__ = ["AgedClock", "AgedStore"]


class AgedStore(WrappedStore):
    """Its clock can be moved on: files keep the time that they were written at.

    Args:
        start_ms: where its clock begins. Whoever writes to it by a clock of his own, as the machine's, begins there: else what he writes may
            be of a time to come.
    """

    def __init__(self, inner: LogStore, start_ms: int = 1_800_000_000_000) -> None:
        super().__init__(inner)
        self.written: dict[str, int] = {}
        self.now_ms = start_ms

    def later(self, hours: float) -> None:
        """Move the clock on."""
        self.now_ms += round(hours * 3_600_000)

    def put(self, name: str, data: bytes) -> None:
        """See `LogStore.put`."""
        super().put(name, data)
        self.written[name] = self.tick()

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`."""
        outcome = super().put_if_absent(name, data)
        self.written.setdefault(name, self.tick())
        return outcome

    def delete(self, name: str) -> None:
        """See `LogStore.delete`."""
        super().delete(name)
        self.written.pop(name, None)

    def tick(self) -> int:
        """Milliseconds since the epoch; each answer is one more than the last."""
        self.now_ms += 1
        return self.now_ms

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """See `LogStore.list_from`."""
        return [self.aged(entry) for entry in super().list_from(folder, start)]

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """See `LogStore.walk`."""
        return iter([self.aged(entry) for entry in super().walk(folder)])

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`."""
        found = super().head(name)
        return None if found is None else self.aged(found)

    def aged(self, entry: Entry) -> Entry:
        """The entry with the time that the file has here."""
        return Entry(entry.name, entry.size, self.written.get(entry.name, self.now_ms))


class AgedClock:
    """The clock of a machine beside a store, wrong by so many hours."""

    def __init__(self, store: AgedStore, hours_wrong: float = 0.0) -> None:
        self.store = store
        self.wrong_ms = round(hours_wrong * 3_600_000)

    def now_ms(self) -> int:
        """The time of the storage, and what this clock is wrong by."""
        return self.store.tick() + self.wrong_ms

    def sleep(self, seconds: float) -> None:
        """Move the time of the storage on."""
        self.store.later(seconds / 3600)

    def uuid(self) -> str:
        """A random UUID."""
        return SYSTEM_CLOCK.uuid()

    def random(self) -> float:
        """A number in [0, 1)."""
        return SYSTEM_CLOCK.random()
