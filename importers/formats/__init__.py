"""One module for each log format, and modules with parts of the larger ones."""
