"""The parts of a portable data source that travel to executors: pickled so that a Python without Tahoe can use them.

process that plans ─► pickled: state, and what an executor does with it ─┬─ Tahoe can be imported: the part itself
                                                                        └─ no Tahoe: a stand-in, which runs the code that came with it
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from pyspark.sql.datasource import WriterCommitMessage

from tahoe.spark.executors.shipped import reviver

__all__ = ["Sent", "opened"]

Message = TypeVar("Message")


class Sent:
    """A part of a data source. Its class is also one of PySpark's, which `kind` names."""

    kind: ClassVar[str]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # A stand-in of a reader takes the attributes of a partition as the last arguments of its task.
        state = pickle.dumps(self.__getstate__())
        return reviver(), (type(self).__module__, type(self).__qualname__, state, self.kind, self._task())

    def _task(self) -> Any:
        """What an executor does, made by `tahoe.spark.executors.shipped.sent_whole`; None for a part that does nothing there."""
        return None


def opened(messages: list[WriterCommitMessage | None], kind: type[Message]) -> Iterator[Message]:
    """What tasks have written, whether by a part itself or by a stand-in."""
    for message in messages:
        content = getattr(message, "tahoe", None)
        written = message if content is None else pickle.loads(content)
        if isinstance(written, kind):
            yield written
