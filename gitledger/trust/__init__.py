"""WHO says so: SSHSIG, keys, allowed_signers; the only maker of Verified (knows no git)."""
