"""Lastcall: the back office of a VRChat club."""

__version__ = "0.1.0"
