"""Reads: what VRChat says now, asked for by somebody at a screen and gone soon after.

A page of one kind is asked for under a person's permission, read once by a collector for everybody who asked for the
same, shown for sixty seconds to whoever may see it then, and deleted a quarter of an hour after it was asked for. This
room knows nothing of HTTP.
"""
