"""Pages of a project's settings. All members can view them; only owners can change them."""
