"""Pages of working memory: a session's tab, each of its revisions, and what sessions of a project share."""
