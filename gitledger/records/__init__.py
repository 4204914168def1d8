"""WHAT is claimed: ids, outcomes, receipts, statement, envelope, bodies, strict decoding (no git, keys, clock)."""
