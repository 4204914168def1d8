"""git ledger: signed test evidence, kept in the repository itself as git notes."""

__version__ = "0.1.0"
