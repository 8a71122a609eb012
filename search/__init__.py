"""Text analysis, index segments and ranking of the search. Pure Python: no database, no Django."""
