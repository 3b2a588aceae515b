# Filled in as the house grows: demo, test, check, bench, soak, docs.
