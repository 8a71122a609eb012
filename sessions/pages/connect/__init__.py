"""Connect an agent through the gateway."""
