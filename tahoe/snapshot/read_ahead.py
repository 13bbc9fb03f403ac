"""Joins several streams of batches, in their order, and reads them ahead in parallel within a limit of bytes.

    streams ─► the next few are open ─► threads read one batch at a time of the first that may go on ─► the caller, stream by stream

Threads run only while there is something to read and room for it: if the caller pauses, all threads end soon, and memory has at most
`most_bytes` and one batch a stream. There is no thread pool, which would lose its threads in a forked process.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator

import pyarrow as pa

from tahoe.snapshot.memory_release import MemoryRelease

Batches = Iterator[pa.RecordBatch]


def read_ahead(
    streams: Iterable[Callable[[], Batches]], *, threads: int, most_open: int, most_bytes: int
) -> Generator[pa.RecordBatch, None, None]:
    """Yield all batches, stream by stream. An error of a stream is raised when its turn comes, and ends the iteration.

    Args:
        streams: functions that open a stream; called in a thread when the turn of the stream is near.
        threads: the greatest number of batches that are read at once.
        most_open: the greatest number of streams that are open at once.
        most_bytes: the size of waiting batches beyond which only the stream that the caller reads continues.
    """
    ahead = _Ahead(iter(streams), threads, most_open, most_bytes)
    try:
        while (batch := ahead.next()) is not None:
            yield batch
    finally:
        ahead.stop()


class _Stream:
    """One stream: its batches that wait for the caller, and whether a thread is reading it."""

    def __init__(self, begin: Callable[[], Batches]) -> None:
        self.begin = begin
        self.batches: Batches | None = None
        self.waiting: deque[pa.RecordBatch] = deque()
        self.begun = False
        self.busy = False
        self.ended = False
        self.error: BaseException | None = None

    def read(self) -> pa.RecordBatch | None:
        """The next batch, None at the end. Only the thread that made the stream busy may call this."""
        if self.batches is None:
            self.batches = self.begin()
        return next(self.batches, None)

    def close(self) -> None:
        close = getattr(self.batches, "close", None)
        if close is not None:
            close()


class _Ahead:
    """The state that the caller and the threads share; everything but reading itself happens under `changed`."""

    def __init__(self, rest: Iterator[Callable[[], Batches]], threads: int, most_open: int, most_bytes: int) -> None:
        self.changed = threading.Condition()
        self.rest = rest
        self.near: deque[_Stream] = deque()
        self.most_threads, self.most_open, self.most_bytes = threads, most_open, most_bytes
        self.threads: set[threading.Thread] = set()
        self.bytes = 0
        self.memory_release = MemoryRelease()
        self.stopped = False

    def next(self) -> pa.RecordBatch | None:
        """The next batch in order, None after the last."""
        with self.changed:
            while True:
                self._draw_near()
                if not self.near:
                    return None
                first = self.near[0]
                if first.waiting:
                    batch = first.waiting.popleft()
                    self.bytes -= batch.nbytes
                    self._go_on()
                    self.memory_release.passed(batch.nbytes)
                    return batch
                if first.error is not None:
                    raise first.error
                if first.ended:
                    self.near.popleft()
                    continue
                self._go_on()
                self.changed.wait()

    def stop(self) -> None:
        """No further batch is begun. Threads are not waited for: the garbage collector may call this from within one of them."""
        with self.changed:
            self.stopped = True
            idle = [stream for stream in self.near if not stream.busy]
            self.near.clear()
            self.changed.notify_all()
        for stream in idle:
            stream.close()

    def _draw_near(self) -> None:
        while len(self.near) < _MOST_NEAR and (begin := next(self.rest, None)) is not None:
            self.near.append(_Stream(begin))

    def _go_on(self) -> None:
        """Wake the threads, and start more where there is work for more."""
        self.changed.notify_all()
        readable = len(self._readable())
        for _ in range(min(readable, self.most_threads - len(self.threads))):
            thread = threading.Thread(target=self._work, name="tahoe-read-ahead")
            self.threads.add(thread)
            thread.start()

    def _readable(self) -> list[_Stream]:
        """Return the streams from which a batch may be read now, beginning with the stream that the caller reads."""
        if self.stopped:
            return []
        room = self.bytes < self.most_bytes
        begun = sum(stream.begun and not stream.ended for stream in self.near)
        return [
            stream
            for place, stream in enumerate(self.near)
            if not (stream.busy or stream.ended)
            # The stream that the caller reads next must continue, regardless of the memory that the others use.
            and ((place == 0 and not stream.waiting) or (room and (stream.begun or begun < self.most_open)))
        ]

    def _work(self) -> None:
        while (stream := self._take()) is not None:
            batch, error = None, None
            try:
                batch = stream.read()
            except BaseException as raised:  # noqa: BLE001 - it is raised where the caller asks
                error = raised
            with self.changed:
                stream.busy = False
                if batch is None:
                    stream.ended, stream.error = True, error
                elif batch.num_rows and not self.stopped:
                    stream.waiting.append(batch)
                    self.bytes += batch.nbytes
                self.changed.notify_all()
                stopped = self.stopped
            if stopped:
                stream.close()

    def _take(self) -> _Stream | None:
        """Return a stream for this thread to read from; None, which ends the thread, if there is none after a short wait."""
        with self.changed:
            for patience in (_SECONDS_OF_PATIENCE, None):
                readable = self._readable()
                if readable:
                    readable[0].busy = readable[0].begun = True
                    return readable[0]
                if patience is None or self.stopped:
                    break
                self.changed.wait(patience)
            self.threads.discard(threading.current_thread())
            return None


_MOST_NEAR = 64
"""Streams that may have been read to their end before their turn: many small files are read ahead as well as a few large ones."""
_SECONDS_OF_PATIENCE = 0.02
"""The time that a thread without work waits before it ends: a new thread costs more than a short wait."""
