"""The project's settings: everybody of the project sees them, owners change them."""
