"""The faces of shared.ops: command line, and later page and MCP."""
