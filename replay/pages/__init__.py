"""Pages of replays: a project's runs, one run with its curves, a session's own, and the advice."""
