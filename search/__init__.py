"""Text analysis, index segments and ranking for the search. Pure Python: no database, no Django."""
