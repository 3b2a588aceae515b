"""The worker process: it leases connections, carries out one write per authorization, and keeps the journal.

It reaches the server over HTTP and VRChat through ``lastcall.vrchat``; it imports none of the server's rooms.
"""
