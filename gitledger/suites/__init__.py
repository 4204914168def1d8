"""Test suites: pytest plugin, journal, recorder, runners' formats (never holds a key)."""
