"""The door of a club: invites, and the join requests they turn into."""
