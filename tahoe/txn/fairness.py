"""`Turn`: lets writers that have lost more races go first, and asks the others to wait.

It never decides whether a commit is correct, and never fails one: storage failures are only logged for debugging. All
waiting is bounded: each commit has one patience for all waits together, so that a crashed writer's request costs each process one wait.
Writers that take seconds to try again say so in the name of their request, and are waited for longer.
Clocks of two machines are never compared. An intent's age is measured by the store's own times, or by how long it has been observed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from tahoe.base.clock import Clock
from tahoe.base.exceptions import TahoeError
from tahoe.base.log_fields import about
from tahoe.log import intents
from tahoe.log.intents import Intent
from tahoe.store.log_store import LogStore

logger = logging.getLogger(__name__)

EXPIRY_MS = 10_000
"""After this long, an intent that was not renewed is garbage: its writer has died, or can ask again."""

SLOW_SECONDS = 2.0
"""How much longer a commit waits for a writer that takes seconds to try again."""

_LONGEST_PAUSE_SECONDS = 0.02
_MOST_REMEMBERED = 1_000


@dataclass(slots=True)
class Turn:
    """One commit's place among the writers of a table.

    Args:
        patience_seconds: the total time for which the commit waits for other writers.
        first_pause_seconds: the first pause between two checks whether another writer is done; pauses grow.
    """

    store: LogStore
    transaction_id: str
    clock: Clock
    patience_seconds: float
    first_pause_seconds: float
    _is_visible: bool = field(default=False, init=False)
    _asked: bool = field(default=False, init=False)
    _waits_longer: bool = field(default=False, init=False)

    @property
    def is_asked_for(self) -> bool:
        """Whether this commit's priority request is visible to other writers."""
        return self._is_visible

    def ask(self) -> None:
        """Ask other writers to wait, or renew the request. If storage refuses, only the threads of this process see it."""
        name = self._name
        if not self._asked:
            intents.announce(self.store.url, name)
        self._asked = True
        try:
            self.store.put(name, b"")
            self._is_visible = True
        except TahoeError as error:
            logger.debug(
                "other writers were not asked to wait for a commit to %s: %s", self.store.url, error, extra=about(self.store.url)
            )

    def withdraw(self) -> None:
        """Withdraw the request. May be called more than once."""
        if not self._asked:
            return
        self._asked = self._is_visible = False
        intents.forget(self.store.url, self._name)
        self._delete(self._name)

    def wait_for_others(self, store_time_ms: int) -> bool:
        """Wait for writers that asked to go before this commit, but not longer than its patience.

        Args:
            store_time_ms: the newest known time by the store's clock.

        Returns:
            whether there was any, so that knowledge of the log may be outdated.
        """
        ahead, could_wait = self._ahead(store_time_ms), self.patience_seconds > 0
        for intent in ahead:
            self._wait_for(intent)
        if self.patience_seconds <= 0:
            for intent in ahead:
                _remember(self.store.url, intent, self.clock.now_ms())
        return bool(ahead) and could_wait

    @property
    def _name(self) -> str:
        return intents.intent_name(self.store, self.transaction_id)

    def _ahead(self, store_time_ms: int) -> list[Intent]:
        if self.store.asks_cheaply:
            try:
                intents.notice(self.store, self.store.list_from(intents.FOLDER))
            except TahoeError as error:
                logger.debug(
                    "the requests for a turn at %s could not be read: %s", self.store.url, error, extra=about(self.store.url)
                )
        ahead: list[Intent] = []
        for intent in intents.standing(self.store.url):
            if self._asked and intent.name == self._name:
                break
            waited_at = _waited.get((self.store.url, intent.name, intent.modified_ms))
            if self._is_expired(intent, store_time_ms, waited_at):
                intents.forget(self.store.url, intent.name)
                self._delete(intent.name)
            elif waited_at is None:
                ahead.append(intent)
        return ahead

    def _is_expired(self, intent: Intent, store_time_ms: int, waited_at: int | None) -> bool:
        if intent.is_of_this_process or intent.modified_ms is None:
            return False
        if store_time_ms - intent.modified_ms > EXPIRY_MS:
            return True
        # A clock that was set back does not show how long, but the difference shows that it was long.
        return waited_at is not None and abs(self.clock.now_ms() - waited_at) > EXPIRY_MS

    def _wait_for(self, intent: Intent) -> None:
        pause = self.first_pause_seconds
        if self.patience_seconds > 0 and intent.name.endswith(intents.SLOW) and not self._waits_longer:
            self._waits_longer = True
            self.patience_seconds += SLOW_SECONDS
        while self.patience_seconds > 0 and self._is_active(intent):
            # A clock may be adjusted during the wait, so the pauses themselves are counted too.
            before = self.clock.now_ms()
            self.clock.sleep(pause)
            self.patience_seconds -= max(pause, (self.clock.now_ms() - before) / 1000)
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)

    def _is_active(self, intent: Intent) -> bool:
        if all(visible.name != intent.name for visible in intents.standing(self.store.url)):
            return False
        if intent.is_of_this_process:
            return True
        try:
            exists = self.store.head(intent.name) is not None
        except TahoeError as error:
            logger.debug("the request %s for a turn could not be read: %s", intent.name, error, extra=about(self.store.url))
            exists = False
        if not exists:
            intents.forget(self.store.url, intent.name)
        return exists

    def _delete(self, name: str) -> None:
        try:
            self.store.delete(name)
        except TahoeError as error:
            logger.debug(
                "%s of %s is left for other writers to remove: %s", name, self.store.url, error, extra=about(self.store.url)
            )


# Intents that were waited for in vain, with the observer's time of that wait: each is waited for once.
_waited: dict[tuple[str, str, int | None], int] = {}


def _remember(url: str, intent: Intent, now_ms: int) -> None:
    _waited.setdefault((url, intent.name, intent.modified_ms), now_ms)
    while len(_waited) > _MOST_REMEMBERED:
        _waited.pop(next(iter(_waited)), None)
