"""The version of Tahoe, and its name in commits."""

__version__ = "0.1.0"
ENGINE_INFO = f"Tahoe/{__version__}"
