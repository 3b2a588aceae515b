"""The only place that knows VRChat: transport, sign-in, evidence, the writes and how their answers are
judged.

It imports none of the server's rooms. ``lastcall.vrchat.simulator`` is a stand-in with the same manners.
"""
