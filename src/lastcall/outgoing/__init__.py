"""How the server asks others over HTTP on somebody's behalf, without being led into its own network."""
