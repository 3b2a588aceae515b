"""The MCP server: tools for agents that act in a person's name with an API token. Thin, over the services that the
HTTP API calls too; its answers have the HTTP API's shapes, and its errors are the house's sentences.
"""
