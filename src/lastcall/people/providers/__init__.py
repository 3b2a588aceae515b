"""Accounts elsewhere that sign people in: Discord, Slack and any OpenID provider that the settings name."""
