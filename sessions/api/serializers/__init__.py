"""Request and response bodies, one module per resource: for validation and the OpenAPI schema."""
