"""Tools pages: what the tools of a session or a project cost."""
