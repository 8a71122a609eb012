"""Store what telemetry reports: calls, compactions by clients, and durations of tools."""
