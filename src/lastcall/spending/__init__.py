"""What agents cost: costs that they report, budgets, and what happens when one is used up."""
