"""What the contract's acceptance cases ask, over HTTP alone: a real server on a port, staff with their API tokens, and
collectors with the worker keys of their accounts. Where something changes around them (a switch, a rotation), the very
command does it. Nothing due is done before a test turns it.

| case | shown by |
| --- | --- |
| 1, 2: delays | ``test_delays.py`` |
| 3 to 6: results that are kept, and what is not let in | ``test_results.py``, ``test_credentials.py`` |
| 7: recovery without anything that works | ``test_results.py`` |
| 9: invitations to an instance that is still to come | ``test_dependents.py`` |
| 10 to 12, 15: claims, leases, the feature switch | ``test_claims.py`` |
| 19, and a shared 429 | ``test_failures.py`` |
"""
