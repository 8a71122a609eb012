"""OpenTelemetry requests: decode them, and read model calls from log records and spans. Plain Python."""
