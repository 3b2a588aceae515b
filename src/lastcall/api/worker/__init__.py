"""The worker API, ``POST /worker/v1/<call>``: what collectors call. Thin: admit, call a service, answer.

What a call means is told in ``protocol/messages.py``; who decides is in ``connections/`` and ``operations/``.
"""
