"""One module for each log format, and modules with parts of large formats or of several."""
