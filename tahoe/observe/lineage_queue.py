"""The queue of commits whose lineage is sent in the background.

    commit ──Event──► `Lineage` ──LineageFacts──► LineageQueue ──► its thread ──► `tahoe.observe.lineage_events` ──► OpenLineage's transport

A commit waits only for the queue's lock: a server that is slow or does not answer delays the thread. At most `MOST_WAITING` commits wait;
further ones are dropped with a warning. Interpreter exit waits `EXIT_SECONDS` at most.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

from tahoe.base.log_fields import about
from tahoe.base.secrets import without_secrets
from tahoe.observe.lineage_facts import LineageFacts

logger = logging.getLogger(__name__)

MOST_WAITING = 1000
EXIT_SECONDS = 5.0


class LineageQueue:
    """The commits that wait to be sent, oldest first, and the thread that sends them; it ends with the work.

    Args:
        send: sends the events of one commit; may block and may raise.
        most_waiting: further commits are dropped.
    """

    def __init__(self, send: Callable[[LineageFacts], None], most_waiting: int = MOST_WAITING) -> None:
        self._send = send
        self._most_waiting = most_waiting
        self._begin()

    def _begin(self) -> None:
        self._changed = Condition()
        self._waiting: deque[LineageFacts] = deque()
        self._is_running = False

    def submit(self, facts: LineageFacts) -> None:
        """Queue a commit. Returns at once."""
        with self._changed:
            if len(self._waiting) >= self._most_waiting:
                message = "the lineage of version %d of %s is dropped: %d commits wait for the OpenLineage server"
                record = about(facts.table, facts.version)
                logger.warning(message, facts.version, facts.table, len(self._waiting), extra=record)
                return
            self._waiting.append(facts)
            if self._is_running:
                return
            self._is_running = True
        Thread(target=self._work, name="tahoe-openlineage", daemon=True).start()

    def drain(self, timeout: float) -> int:
        """Wait at most `timeout` seconds until all commits are sent; return the number of those that are not."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_running, timeout)
            return len(self._waiting) + self._is_running

    def finish_at_exit(self) -> None:
        """Send what waits at interpreter exit, for `EXIT_SECONDS` at most; a forked child leaves its parent's commits to the parent."""
        atexit.register(self._finish)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _finish(self) -> None:
        if left := self.drain(EXIT_SECONDS):
            logger.warning("at exit the lineage of %d commits was not sent: the OpenLineage server did not answer in time", left)

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._is_running = False
                    self._changed.notify_all()
                    return
                facts = self._waiting.popleft()
            try:
                self._send(facts)
            except Exception as error:  # noqa: BLE001 - the commit is made; whatever the transport raises only costs its lineage
                # Without the stack: errors of HTTP libraries may contain addresses with passwords.
                reason = without_secrets(f"{type(error).__name__}: {error}", (), os.environ)
                message = "the lineage of version %d of %s was not sent: %s"
                logger.warning(message, facts.version, facts.table, reason, extra=about(facts.table, facts.version))


def _send(facts: LineageFacts) -> None:
    from tahoe.observe.lineage_events import (
        send,
    )  # loads OpenLineage's client, which takes a second: in the thread, not in the commit

    send(facts)


# One for the process: a module is loaded once.
LINEAGE_QUEUE = LineageQueue(_send)
LINEAGE_QUEUE.finish_at_exit()
