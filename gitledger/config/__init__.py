"""The configuration: schema, strict loading, defaults (knows neither git nor the clock)."""
