"""The parts of a portable data source that are sent to executors: pickled so that a Python without Tahoe can use them.

process that plans ─► pickled: state, and the executor's task ─┬─ Tahoe can be imported: the part itself
                                                              └─ no Tahoe: a proxy, which runs the code that was sent along
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import ClassVar, TypeVar

from pyspark.sql.datasource import WriterCommitMessage

from tahoe.spark.executors.shipped import carried, reviver

Message = TypeVar("Message")


class Sent:
    """A part of a data source. Its class is also a subclass of the PySpark class named by `kind`.

    Attributes:
        commits: whether it commits, in another process of the server than the one that plans.
    """

    kind: ClassVar[str]
    commits: ClassVar[bool] = False

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        # The proxy of a reader passes the attributes of a partition as the last arguments of its task.
        state = pickle.dumps(self.__getstate__())
        load = carried()
        place = type(self).__module__, type(self).__qualname__
        return reviver(), (*place, state, self.kind, self._task(), load if self.commits else None, load is not None)

    def _task(self) -> object:
        """Return the executor's task, created by `tahoe.spark.executors.shipped.sent_whole`; None for a part without one."""
        return None


def opened(messages: list[WriterCommitMessage | None], kind: type[Message]) -> Iterator[Message]:
    """Yield the files that tasks have written, whether by a part itself or by its proxy."""
    for message in messages:
        content = getattr(message, "tahoe", None)
        written = message if content is None else pickle.loads(content)
        if isinstance(written, kind):
            yield written
