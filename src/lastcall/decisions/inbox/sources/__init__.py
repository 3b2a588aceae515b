"""One file a kind of thing that waits."""
