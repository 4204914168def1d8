"""HOW and ON WHAT it ran: process groups, environment facts (knows no git, keys, pytest)."""
