"""Measures: plans, runs and judges batch-size sweeps. Imports neither an interface nor, by itself, torch."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
