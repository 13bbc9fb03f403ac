"""Python imports this module when it starts in `tahoe run`, if the environment lacks ``tahoe_startup.pth``."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

import tahoe_startup

tahoe_startup.install()

# The module of this name that this one hides, if there is one.
_folder = str(Path(__file__).parent)
_hidden = PathFinder.find_spec("sitecustomize", [folder for folder in sys.path if folder != _folder])
if _hidden is not None and _hidden.loader is not None:
    sys.modules["sitecustomize"] = module_from_spec(_hidden)
    _hidden.loader.exec_module(sys.modules["sitecustomize"])
