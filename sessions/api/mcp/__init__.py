"""The Model Context Protocol server at `/mcp`: streamable HTTP, stateless, bearer keys."""
