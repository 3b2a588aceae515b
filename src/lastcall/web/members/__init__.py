"""The people of the VRChat group as they were just read: who is in it, wants in, is invited, is banned."""
