"""Club events: when something happens, in which world, and what a calendar elsewhere says about it."""
