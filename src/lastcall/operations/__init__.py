"""Operations: one reviewed provider write for one target, sent at most once.

A *request* freezes 1 to 100 reviewed payloads; each becomes an operation with its own state, revision and
outcome. The state machine is data (``machine.py``); the steps a worker takes are routines in ``sql/``, each
of which takes its locks first and judges in a new statement. This room knows nothing of HTTP.
"""
