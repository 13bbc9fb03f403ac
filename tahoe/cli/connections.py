"""The connections of `tahoe serve`: their number, and how long one may keep the server waiting.

For each connection, either a request is being answered, or the server waits for the peer: for a header, for a body, or for the peer to
receive the answer. Waiting has a time limit. If there are too many connections, the one that has kept the server waiting longest is
closed for the newest, so that complete requests are answered next to any number of incomplete ones.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on connections.

    Args:
        most: connections in total.
        most_of_a_peer: connections from one address (for IPv6, from one /64). All clients behind a proxy are one peer.
        header_seconds: from the first byte of a request, or from the connection, to the end of its header.
        body_seconds: from the end of the header to the end of the body.
        idle_seconds: between the end of an answer and the next request.
        answer_seconds: for the peer to receive an answer, or the part of it that fits the network buffers.
        report_seconds: between two log lines about closed connections.
    """

    most: int = 512
    most_of_a_peer: int = 256
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 30.0
    answer_seconds: float = 60.0
    report_seconds: float = 10.0


class _Phase(Enum):
    """The state of a connection, with the log text for one that was closed in it."""

    HEADER = "waiting for the end of a header"
    BODY = "waiting for the end of a body"
    IDLE = "idle"
    ANSWER = "waiting for the peer to receive an answer"
    WORK = "one too many, all others being answered"


class Connections:
    """All connections of one server. Its methods are called in the event loop's thread."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._of_peers: dict[str, dict[_Connection, None]] = {}
        self._count = 0
        self._closed: Counter[_Phase] = Counter()
        self._reported = -inf
        self._sweeping: asyncio.TimerHandle | None = None

    def enter(self, new: _Connection) -> bool:
        """Register a connection, and return whether it may stay; if there are too many, close the longest-waiting one for it."""
        mine = self._of_peers.setdefault(new.peer, {})
        mine[new] = None
        self._count += 1
        self._sweep_later(new.loop)
        if len(mine) > self.limits.most_of_a_peer:
            return self._make_room(mine, new)
        if self._count > self.limits.most:
            # Close one of the peer with the most connections, so that one busy peer does not push out the others.
            fullest = max(self._of_peers.values(), key=len)
            return self._make_room(fullest, new)
        return True

    def leave(self, gone: _Connection) -> None:
        """Unregister a connection; repeated calls do nothing."""
        mine = self._of_peers.get(gone.peer)
        if mine is None or gone not in mine:
            return
        del mine[gone]
        self._count -= 1
        if not mine:
            del self._of_peers[gone.peer]

    def _make_room(self, among: Iterable[_Connection], new: _Connection) -> bool:
        waiting = [connection for connection in among if connection is not new and connection.phase != _Phase.WORK]
        if waiting:
            self._close(min(waiting, key=lambda connection: connection.since))
        else:
            self._closed[_Phase.WORK] += 1
            self.leave(new)
        return bool(waiting)

    def _close(self, connection: _Connection) -> None:
        self._closed[connection.phase] += 1
        self.leave(connection)
        connection.transport.abort()  # a graceful close would wait for the peer to receive the data

    def _sweep_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._sweeping is None:
            self._sweeping = loop.call_later(_SWEEP_SECONDS, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections that have waited too long, and report them."""
        self._sweeping = None
        now = loop.time()
        for connection in [connection for mine in self._of_peers.values() for connection in mine]:
            connection.update()
            if now - connection.since > self._allowed(connection.phase):
                self._close(connection)
        if self._closed and now - self._reported >= self.limits.report_seconds:
            self._reported = now
            self._report()
        if self._count or self._closed:
            self._sweep_later(loop)

    def _allowed(self, phase: _Phase) -> float:
        match phase:
            case _Phase.HEADER:
                return self.limits.header_seconds
            case _Phase.BODY:
                return self.limits.body_seconds
            case _Phase.IDLE:
                return self.limits.idle_seconds
            case _Phase.ANSWER:
                return self.limits.answer_seconds
        return inf

    def _report(self) -> None:
        closed = ", ".join(f"{count} {phase.value}" for phase, count in self._closed.items())
        peer, mine = max(self._of_peers.items(), key=lambda item: len(item[1]), default=("", {}))
        largest = f", {len(mine)} of them from {peer} (at most {self.limits.most_of_a_peer})" if peer else ""
        logger.warning(
            "connections: %d are open of at most %d%s; closed since the last report: %s",
            self._count,
            self.limits.most,
            largest,
            closed,
        )
        self._closed.clear()


class _Connection(H11Protocol):
    """One connection as uvicorn serves it, which also tracks its state and since when."""

    guard: Connections

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.peer = ""
        self.phase = _Phase.HEADER
        self.since = self.loop.time()
        self._seen: object = None
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register a new connection, or answer that there are too many."""
        super().connection_made(transport)
        self.peer = _peer(self.client)
        if not self.guard.enter(self):
            transport.write(_TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection."""
        self.guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive bytes of a request."""
        if not self.transport.is_closing():
            super().data_received(data)
            self.update()

    def on_response_complete(self) -> None:
        """Handle the end of an answer."""
        super().on_response_complete()
        self.update()

    def update(self) -> None:
        """Update `phase` and `since`."""
        phase, unsent = self._current_phase(), self.transport.get_write_buffer_size()
        if phase != self.phase or self.cycle is not self._seen or unsent < self._unsent:
            self.since = self.loop.time()
        self.phase, self._seen, self._unsent = phase, self.cycle, unsent

    def _current_phase(self) -> _Phase:
        if self.transport.get_write_buffer_size():
            return _Phase.ANSWER
        if self.conn.their_state is h11.SEND_BODY:
            return _Phase.BODY
        if self.conn.their_state is h11.IDLE:
            return _Phase.HEADER if self.cycle is None or self.conn.trailing_data[0] else _Phase.IDLE
        return _Phase.WORK


def protocol_of(limits: Limits) -> type[_Connection]:
    """Return the connection class for uvicorn, bound to one server's limits."""
    return type("LimitedConnection", (_Connection,), {"guard": Connections(limits)})


def affordable(limits: Limits) -> Limits:
    """Reduce the limits to the open files allowed to this process: each connection is one, and reading tables needs some too."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return limits
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY or limits.most <= allowed // 2:
        return limits
    most = max(allowed // 2, 1)
    return replace(limits, most=most, most_of_a_peer=min(limits.most_of_a_peer, max(most // 2, 1)))


def accepted_at_once() -> int:
    """Return how many connections to accept in one turn of the event loop, before surplus ones are closed.

    Each accepted connection is an open file, and without free file descriptors no request can be answered. Closing the connection that
    makes room takes some turns of the event loop.
    """
    try:
        import resource
    except ImportError:
        return _MOST_AT_ONCE
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_AT_ONCE if allowed == resource.RLIM_INFINITY else max(1, min(_MOST_AT_ONCE, allowed // 16))


def _peer(client: tuple[str, int] | None) -> str:
    """Return the peer of an address: the address itself; for IPv6 its /64, which one machine owns as a whole."""
    address = client[0] if client else ""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4 or parsed.is_loopback:
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))


_SWEEP_SECONDS = 0.25
_MOST_AT_ONCE = 128
_BODY = b'{"error":{"message":"Too many connections; try again.","type":"ServiceUnavailableException","code":503}}'
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)
