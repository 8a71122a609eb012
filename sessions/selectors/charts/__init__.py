"""The turns of one session, as its page shows them: chart, largest growth, most expensive calls."""
