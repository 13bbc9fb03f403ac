"""`FollowedTable`: the histories of `tahoe.testing.table_machine`, and readers of the table as streams beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tahoe.stream.source_options import SourceOptions
from tahoe.testing.table_machine import TableMachine
from tests.model.followers import KINDS, Feed, Follower

_FOLLOWERS = 4
_LIMITS: list[dict[str, int]] = [
    {"max_files_per_trigger": 1},
    {},
    {"max_bytes_per_trigger": 1500},
    {"max_files_per_trigger": 2},
    {"max_bytes_per_trigger": 1},
]
_STEPS_OF_A_NEW_ONE = 5


class FollowedTable(TableMachine):
    """Streams of each kind, with and without limits: at every step one of them reads a little or all, as it was or begun again from its
    position; every few steps one ends, and another begins with the table as it is then."""

    def __init__(self) -> None:
        super().__init__()
        self.followers: list[Follower] = []
        self.steps = 0
        self.kinds, self.limits = cycle(["feed", "changes passed over", "changes told again", *KINDS]), cycle(_LIMITS)

    @precondition(lambda self: self.versions)
    @rule(kind=st.sampled_from(sorted(KINDS)), start=st.sampled_from(["latest", 0, 1, 2]))
    def a_stream_begins_at_a_version(self, kind: str, start: Any) -> None:
        start = max(0, len(self.versions) - 1 - start) if isinstance(start, int) else start
        self.follow(Follower(self, replace(KINDS[kind], starting_version=start, **next(self.limits))))

    @precondition(lambda self: self.versions and self.feed_is_on[-1])
    @rule(back=st.sampled_from([0, 2, 5]))
    def a_feed_begins_at_a_version(self, back: int) -> None:
        start = len(self.versions) - 1
        while start and back and self.feed_is_on[start - 1]:
            start, back = start - 1, back - 1
        self.follow(Feed(self, _feed(next(self.limits), start)))

    @precondition(lambda self: self.versions)
    @invariant()
    def streams_go_on(self) -> None:
        self.steps += 1
        if len(self.followers) < _FOLLOWERS or self.steps % _STEPS_OF_A_NEW_ONE == 0:
            kind, limits = next(self.kinds), next(self.limits)
            if kind != "feed":
                self.follow(Follower(self, replace(KINDS[kind], **limits)))
            elif self.feed_is_on[-1]:
                self.follow(Feed(self, _feed(limits)))
        if not self.followers:
            return
        follower = self.followers[self.steps % len(self.followers)]
        if self.steps % 3 == 0:
            follower.starts_again()
        follower.read((1, 2, None, 1)[self.steps % 4])
        if follower.has_stopped:
            follower.check_again()
            self.followers.remove(follower)

    def follow(self, follower: Follower) -> None:
        """Read the oldest one to its end, if there are enough, and let this one begin."""
        self.followers.append(follower)
        if len(self.followers) > _FOLLOWERS:
            self.end(self.followers.pop(0))

    def end(self, follower: Follower) -> None:
        """All rows have been read at the end, and every reader gets the same rows again."""
        follower.read()
        follower.check_again()

    def teardown(self) -> None:
        """Read all to their ends."""
        for follower in self.followers:
            self.end(follower)
        super().teardown()


def _feed(limits: Mapping[str, int], start: int | None = None) -> SourceOptions:
    return replace(SourceOptions(starting_version=start, read_change_feed=True), **limits)
