"""A store whose files age as fast as a test likes, and a machine's clock beside it, for code that waits days before it deletes."""

from __future__ import annotations

from collections.abc import Iterator

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.store.log_store import Entry, LogStore, PutOutcome
from tahoe.testing.faulty_store import WrappedStore

__all__ = ["AgedClock", "AgedStore"]


class AgedStore(WrappedStore):
    """Its clock can be advanced: files keep the time at which they were written.

    Args:
        start_ms: the start of its clock. If a writer uses another clock, such as the machine's, pass its time; else its files may be in
            the future.
    """

    def __init__(self, inner: LogStore, start_ms: int = 1_800_000_000_000) -> None:
        super().__init__(inner)
        self.written: dict[str, int] = {}
        self.now_ms = start_ms

    def later(self, hours: float) -> None:
        """Advance the clock."""
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
        """Return milliseconds since the epoch; each call adds one."""
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
        entry = super().head(name)
        return None if entry is None else self.aged(entry)

    def aged(self, entry: Entry) -> Entry:
        """Return the entry with the file's age in this store."""
        return Entry(entry.name, entry.size, self.written.get(entry.name, self.now_ms))


class AgedClock:
    """A machine's clock that differs from the store's by some hours."""

    def __init__(self, store: AgedStore, hours_wrong: float = 0.0) -> None:
        self.store = store
        self.wrong_ms = round(hours_wrong * 3_600_000)

    def now_ms(self) -> int:
        """Return the store's time plus this clock's error."""
        return self.store.tick() + self.wrong_ms

    def sleep(self, seconds: float) -> None:
        """Advance the store's clock."""
        self.store.later(seconds / 3600)

    def uuid(self) -> str:
        """Return a random UUID."""
        return SYSTEM_CLOCK.uuid()

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return SYSTEM_CLOCK.random()
