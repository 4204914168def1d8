"""One module per verb: wires the rooms; clock, repository and keyring come in as arguments."""
