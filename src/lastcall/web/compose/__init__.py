"""What a person fills in for an action: the fields of its kind, when it is due, and the review made of both. The same
for a new action and for the edit of one.
"""
