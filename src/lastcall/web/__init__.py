"""The pages: routes, templates, live updates, styles and scripts. They know services and queries, never
tables.
"""
