"""The inbox: what waits for a person, in one list over all the clubs they work for, reading only what it shows."""
