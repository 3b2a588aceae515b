"""Approvals: a question that an agent or a person puts to staff, with what is done once somebody says yes."""
