"""Slack as a way to a club's door: an app in its workspace, links that its people ask for, and messages to them."""
