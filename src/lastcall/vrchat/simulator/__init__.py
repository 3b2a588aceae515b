"""A VRChat to try things on: a real HTTP server with a club's worth of state, a ledger, and faults to
order."""

from lastcall.vrchat.simulator.ledger import Arrival, Entry, Ledger, read_ledger
from lastcall.vrchat.simulator.remote import RemoteSimulator
from lastcall.vrchat.simulator.seed import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Seed
from lastcall.vrchat.simulator.server import Simulator, run

__all__ = [
    "BOT_PASSWORD",
    "BOT_TOTP_SECRET",
    "BOT_USERNAME",
    "Arrival",
    "Entry",
    "Ledger",
    "RemoteSimulator",
    "Seed",
    "Simulator",
    "read_ledger",
    "run",
]
