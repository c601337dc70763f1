"""What happens to one request: routing, delivery, sessions, telemetry."""
