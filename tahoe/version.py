"""The version of Tahoe, and how it names itself in commits."""

__all__ = ["ENGINE_INFO", "__version__"]

__version__ = "0.1.0"
ENGINE_INFO = f"Tahoe/{__version__}"
