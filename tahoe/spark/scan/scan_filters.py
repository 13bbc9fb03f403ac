"""The filters of a scan, as the JVM passes them: expressions and their JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.translate import Filter


class ScanFilters:
    """The filters of a scan: those on partition columns and the others.

    Args:
        texts: a line with the JSON of each of the two `Seq`s of expressions, separated by tabs.
        partition, data: these `Seq`s.
    """

    def __init__(self, texts: str, partition: JavaObject, data: JavaObject) -> None:
        of_partitions, of_data = (text.split("\t") if text else [] for text in texts.split("\n"))
        self.partition, self.data = self._filters(of_partitions, partition), self._filters(of_data, data)
        self.key = _EXPRESSION_ID.sub("", texts)
        """The same text for the same filters of another query."""
        self.are_texts_complete = True
        """Whether the JSON had all that the translation needed; if not, filters with the same `key` may differ."""

    def _filters(self, texts: Sequence[str], expressions: JavaObject) -> list[Filter]:
        return [Filter(text, partial(self._expression, expressions, number)) for number, text in enumerate(texts)]

    def _expression(self, expressions: JavaObject, number: int) -> JavaObject:
        self.are_texts_complete = False
        return expressions.apply(number)


# Each query gives the columns other ids. Quotes within a literal are escaped in the JSON.
_EXPRESSION_ID = re.compile(r'"exprId":\{[^}]*\}')
