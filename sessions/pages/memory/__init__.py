"""Working memory pages: a session's memory, its revisions and the facts shared by sessions."""
