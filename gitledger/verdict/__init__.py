"""WHETHER it suffices: findings, policy, carry, union, verify; judgement has no doors."""
