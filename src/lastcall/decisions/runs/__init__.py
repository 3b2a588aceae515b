"""What agents report of their runs, as far as people must see it: above all, the ones that failed."""
