"""What tools cost a session or a project."""
