"""The product running against a simulated VRChat: to click through, or as an evening that plays itself.

The only place with sample data. Everything is done by the same services, processes and protocol as in earnest.
"""
