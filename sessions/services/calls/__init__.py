"""Model calls that several sources report: telemetry, the gateway and imported logs. Each is counted once."""
