"""Session settings of delta-spark (``spark.databricks.delta.…``), each with its state. `session_settings.toml` lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files

from tahoe.base.wording import suggestion
from tahoe.settings.setting import Setting, State, check_setting

PREFIX = "spark.databricks.delta."
KIND = "session setting"
_CHECKED_ELSEWHERE = (
    "spark.databricks.delta.properties.defaults.",
    *(
        f"spark.databricks.delta.streaming.allowSourceColumn{kind}.ckpt_"
        for kind in ("Drop", "Rename", "RenameAndDrop", "TypeChange")
    ),
)
"""Prefixes of settings that are checked where they are used: defaults of table properties are checked as properties, and settings that let
one stream read past schema changes have the stream in their names."""


def _session_settings() -> Iterator[Setting]:
    text = (files("tahoe.settings") / "session_settings.toml").read_text(encoding="utf-8")
    for group in tomllib.loads(text)["group"]:
        for name, _, usual in (entry.partition("=") for entry in group["settings"].split()):
            full_name = group.get("prefix", PREFIX) + name
            yield Setting(full_name, State[group["state"]], group.get("reason", ""), KIND, (usual,) if usual else ())


SESSION_SETTINGS: tuple[Setting, ...] = tuple(_session_settings())
"""All session settings, the working ones first; a name that ends with a dot is a prefix."""

_LOG_STORES = "spark.delta.logStore."
_PREFIXES = (PREFIX, "spark.databricks.io.skipping.", _LOG_STORES)
_BY_NAME = {setting.name: setting for setting in SESSION_SETTINGS}


def check_session_settings(settings: Mapping[str, str]) -> None:
    """Check the settings of a session that reads or writes a Delta table: warn once about each without effect, raise for refused ones.

    A name with delta-spark's prefix that delta-spark does not have causes a warning too, since it may be misspelled.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    for name, value in settings.items():
        if not name.startswith(_PREFIXES) or name.startswith(_CHECKED_ELSEWHERE):
            continue
        setting = _BY_NAME.get(name)
        if setting is None and name.startswith(_LOG_STORES):
            setting = replace(_BY_NAME[_LOG_STORES], name=name)
        if setting is None:
            why = f"delta-spark has no setting of this name.{suggestion(name, _BY_NAME)}"
            setting = Setting(name, State.NO_EFFECT, why, KIND)
        check_setting(setting, str(value))
