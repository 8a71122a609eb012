"""Working memory over REST: the current one, its history, its settings, and what sessions share."""
