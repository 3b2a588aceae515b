"""What server and collector say to each other: messages, steps, outcomes and the constants both sides keep.

This room imports nothing of the house, so that the server's rooms and the collector can share it.
"""
