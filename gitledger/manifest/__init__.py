"""WHICH inputs a shard stands on: definition, scope, resolution, digest."""
