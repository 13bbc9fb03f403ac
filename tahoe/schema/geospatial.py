"""The names of geometry and geography types in a schema and in Arrow.

PROTOCOL.md does not specify them yet. The rules are those that delta-spark, both kernels and Spark agree on (docs/design/036): a schema has
``geometry(<crs>)`` or ``geography(<crs>, <algorithm>)``, values are Well-Known Binary (OGC Simple feature access), and Parquet's logical
types are GEOMETRY and GEOGRAPHY. In Arrow they are binary with the field metadata of GeoArrow's ``geoarrow.wkb``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

DEFAULT_CRS = "OGC:CRS84"
"""Longitude and latitude on WGS 84, the default (Geospatial.md of apache/parquet-format)."""
_SPHERICAL = "SPHERICAL"
_TYPE = re.compile(r"(geometry|geography)(?:\(([^()]*)\))?")
_CRS = re.compile(r"\w+:-?\w+")
_ALGORITHMS = frozenset({_SPHERICAL, "VINCENTY", "THOMAS", "ANDOYER", "KARNEY"})
_SAME = {"EPSG:4326": DEFAULT_CRS}
"""Of another name for the same: the coordinates of Well-Known Binary are x and y whatever a system's own order of axes is."""
MIXED_CRS = "SRID:ANY"
"""In a name of Spark's: each value has a system of its own."""
_WITHOUT_CASE = ("OGC:", "EPSG:", "SRID:")
"""Authorities of which Spark knows one spelling."""

NAME, METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"
_EXTENSION = "geoarrow.wkb"


def normalised(text: str) -> str | None:
    """Return the type's name in the form that Tahoe and Spark write, parameters included; None for any other type.

    A coordinate reference system is ``authority:code``. `GEOMETRY(ANY)`, whose values have systems of their own, is not a column type of
    Delta (``DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED`` in delta-spark), and neither is a type whose system is written out in JSON.
    """
    match = _TYPE.fullmatch(text)
    if not match:
        return None
    parameters = [] if match[2] is None else [part.strip() for part in match[2].split(",")]
    algorithm = _SPHERICAL
    if match[1] == "geography" and parameters and ":" not in parameters[-1]:
        algorithm = parameters.pop().upper()
    crs = _crs(parameters[0]) if parameters else DEFAULT_CRS
    if len(parameters) > 1 or not _CRS.fullmatch(crs) or crs == MIXED_CRS or algorithm not in _ALGORITHMS:
        return None
    return f"geometry({crs})" if match[1] == "geometry" else f"geography({crs}, {algorithm})"


def is_geospatial_name(name: str) -> bool:
    """Whether a type name, with parameters or without, is that of a geometry or a geography."""
    return name.startswith(("geometry", "geography"))


def is_geography_name(name: str) -> bool:
    """Whether it is a geography: its coordinates are degrees."""
    return name.startswith("geography(")


def crs_of(name: str) -> str:
    """The system of coordinates in a name of `normalised`."""
    return name[name.index("(") + 1 : -1].partition(",")[0]


def arrow_mark(name: str) -> dict[bytes, bytes]:
    """Return the metadata of an Arrow field with values of the type: GeoArrow's, so that libraries recognize the type."""
    return {NAME: _EXTENSION.encode(), METADATA: _serialized(name)}


def name_of_mark(field: pa.Field) -> str | None:
    """The type's name that an Arrow field is marked with, as an extension type or by its metadata; None where it is not.

    A field that names no system of coordinates is ``SRID:0``, of which nothing is known.
    """
    if isinstance(field.type, pa.BaseExtensionType):
        if field.type.extension_name != _EXTENSION:
            return None
        serialize = getattr(field.type, "__arrow_ext_serialize__", None)
        return _name(serialize() if serialize is not None else b"")
    marked: Mapping[bytes, bytes] = field.metadata or {}
    return _name(marked.get(METADATA, b"")) if marked.get(NAME) == _EXTENSION.encode() else None


class WellKnownBinary(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """Binary values of which Arrow's Parquet writer knows that they are geometries or geographies, and writes them as such.

    Args:
        name: of `normalised`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(pa.binary(), _EXTENSION)

    def __arrow_ext_serialize__(self) -> bytes:
        return _serialized(self.name)

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> WellKnownBinary:
        return cls(_name(serialized) or f"geometry({DEFAULT_CRS})")


def _crs(name: str) -> str:
    upper = name.upper()
    return _SAME.get(upper, upper if upper.startswith(_WITHOUT_CASE) else name)


def _serialized(name: str) -> bytes:
    """GeoArrow's own JSON (https://geoarrow.org/extension-types.html)."""
    said: dict[str, str] = {"crs": crs_of(name), "crs_type": "authority_code"}
    if is_geography_name(name):
        said["edges"] = name[:-1].rpartition(", ")[2].lower()
    return json.dumps(said, separators=(",", ":")).encode()


def _name(serialized: bytes) -> str | None:
    try:
        said: Any = json.loads(serialized or b"{}")
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    crs, edges = said.get("crs"), said.get("edges", "planar")
    if isinstance(crs, dict):  # PROJJSON; its identifier says which one it is
        identifier = crs.get("id")
        crs = f"{identifier.get('authority')}:{identifier.get('code')}" if isinstance(identifier, dict) else "?"
    text = "SRID:0" if crs is None else f"SRID:{crs}" if said.get("crs_type") == "srid" else str(crs)
    return normalised(f"geometry({text})" if edges == "planar" else f"geography({text}, {edges})")
