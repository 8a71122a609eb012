"""Recording: calls wait in a bounded queue, or on disk while the store is unavailable."""
