"""Connections: a club's link to its VRChat group, the account that serves it, and that account's right to
do so.

The room owns accounts with their worker keys, leases with fencing tokens, the allowance of provider
requests, the switches that stop work, and evidence. It does not know what is sent: who does
(``operations/``) asks the SQL functions in ``sql/`` while it holds the gates, and registers here for what
it must do when a worker says hello or a connection starts a new epoch.
"""
