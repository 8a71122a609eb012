"""The stories that the sample sessions tell."""
