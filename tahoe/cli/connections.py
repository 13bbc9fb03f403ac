"""The connections of `tahoe serve`: how many there may be, and how long one may keep the server waiting.

A connection either has a request that is being answered, or the server waits for its peer: for a header, for a body, for the peer to
take the answer. Waiting is bounded in time. Where there are too many connections, the one that has kept the server waiting longest makes
room for the newest, so that whoever sends a whole request is answered beside any number that do not.
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

__all__ = ["Connections", "Limits", "accepted_at_once", "affordable", "protocol_of"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What connections may take.

    Args:
        most: connections in all.
        most_of_a_peer: connections from one address (of IPv6, from one /64). All clients behind a proxy are one peer.
        header_seconds: from the first byte of a request, or from the connection, to the end of its header.
        body_seconds: from the end of the header to the end of the body.
        idle_seconds: between the end of an answer and the next request.
        answer_seconds: for the peer to take an answer, or a part of it, that the network would carry.
        report_seconds: between two lines of the log about connections that were closed.
    """

    most: int = 512
    most_of_a_peer: int = 256
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 30.0
    answer_seconds: float = 60.0
    report_seconds: float = 10.0


class _Phase(Enum):
    """What a connection is about, with what the log says of one that was closed in it."""

    HEADER = "waiting for the end of a header"
    BODY = "waiting for the end of a body"
    IDLE = "idle"
    ANSWER = "waiting for an answer to be taken"
    WORK = "one too many, all others being answered"


class Connections:
    """All connections of one server. Its methods are called in the thread of the event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._of_peers: dict[str, dict[_Connection, None]] = {}
        self._count = 0
        self._closed: Counter[_Phase] = Counter()
        self._reported = -inf
        self._sweeping: asyncio.TimerHandle | None = None

    def enter(self, new: _Connection) -> bool:
        """Whether the connection may stay; where there are too many, the one that has kept us waiting longest is closed for it."""
        mine = self._of_peers.setdefault(new.peer, {})
        mine[new] = None
        self._count += 1
        self._sweep_later(new.loop)
        if len(mine) > self.limits.most_of_a_peer:
            return self._make_room(mine, new)
        if self._count > self.limits.most:
            # At the cost of the peer that has most, so that many from one place do not push out the few of another.
            fullest = max(self._of_peers.values(), key=len)
            return self._make_room(fullest, new)
        return True

    def leave(self, gone: _Connection) -> None:
        """Forget a connection; more often than once does nothing."""
        mine = self._of_peers.get(gone.peer)
        if mine is None or gone not in mine:
            return
        del mine[gone]
        self._count -= 1
        if not mine:
            del self._of_peers[gone.peer]

    def _make_room(self, among: Iterable[_Connection], new: _Connection) -> bool:
        waiting = [one for one in among if one is not new and one.phase != _Phase.WORK]
        if waiting:
            self._close(min(waiting, key=lambda one: one.since))
        else:
            self._closed[_Phase.WORK] += 1
            self.leave(new)
        return bool(waiting)

    def _close(self, one: _Connection) -> None:
        self._closed[one.phase] += 1
        self.leave(one)
        one.transport.abort()  # a polite end would wait for the peer to take what was sent

    def _sweep_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._sweeping is None:
            self._sweeping = loop.call_later(_SWEEP_SECONDS, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what has kept us waiting too long, and say so."""
        self._sweeping = None
        now = loop.time()
        for one in [one for mine in self._of_peers.values() for one in mine]:
            one.look()
            if now - one.since > self._allowed(one.phase):
                self._close(one)
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
            "connections: %d are open of at most %d%s; closed since the last such line: %s",
            self._count,
            self.limits.most,
            largest,
            closed,
        )
        self._closed.clear()


class _Connection(H11Protocol):
    """One connection as uvicorn serves it, which also knows what is waited for and since when."""

    guard: Connections

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.peer = ""
        self.phase = _Phase.HEADER
        self.since = self.loop.time()
        self._seen: object = None
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A peer has come: it stays, or is told that it is one too many."""
        super().connection_made(transport)
        self.peer = _peer(self.client)
        if not self.guard.enter(self):
            transport.write(_TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer has gone, or was sent away."""
        self.guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if not self.transport.is_closing():
            super().data_received(data)
            self.look()

    def on_response_complete(self) -> None:
        """An answer was given to the transport."""
        super().on_response_complete()
        self.look()

    def look(self) -> None:
        """Bring `phase` and `since` up to date."""
        phase, unsent = self._found(), self.transport.get_write_buffer_size()
        if phase != self.phase or self.cycle is not self._seen or unsent < self._unsent:
            self.since = self.loop.time()
        self.phase, self._seen, self._unsent = phase, self.cycle, unsent

    def _found(self) -> _Phase:
        if self.transport.get_write_buffer_size():
            return _Phase.ANSWER
        if self.conn.their_state is h11.SEND_BODY:
            return _Phase.BODY
        if self.conn.their_state is h11.IDLE:
            return _Phase.HEADER if self.cycle is None or self.conn.trailing_data[0] else _Phase.IDLE
        return _Phase.WORK


def protocol_of(limits: Limits) -> type[_Connection]:
    """What uvicorn makes its connections of, for one server."""
    return type("LimitedConnection", (_Connection,), {"guard": Connections(limits)})


def affordable(limits: Limits) -> Limits:
    """The limits as far as this process may open files: a connection is one, and reading tables needs some too."""
    try:
        import resource
    except ImportError:  # Windows has no such bound
        return limits
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY or limits.most <= allowed // 2:
        return limits
    most = max(allowed // 2, 1)
    return replace(limits, most=most, most_of_a_peer=min(limits.most_of_a_peer, max(most // 2, 1)))


def accepted_at_once() -> int:
    """How many connections are accepted before those that are too many are closed: of many that come at once each would be an open file,
    and where no file can be opened any more, no request is answered.

    It takes some turns of the event loop from the acceptance of a connection to the end of the one that makes room for it.
    """
    try:
        import resource
    except ImportError:
        return _MOST_AT_ONCE
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_AT_ONCE if allowed == resource.RLIM_INFINITY else max(1, min(_MOST_AT_ONCE, allowed // 16))


def _peer(client: tuple[str, int] | None) -> str:
    """Whom an address counts for: itself; of IPv6 its /64, which one machine has as a whole."""
    address = client[0] if client else ""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4 or found.is_loopback:
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


_SWEEP_SECONDS = 0.25
_MOST_AT_ONCE = 128
_BODY = b'{"error":{"message":"Too many connections; try again.","type":"ServiceUnavailableException","code":503}}'
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)
