"""Runs in the peer's own environment: writes one of its receipts for each shard, with its own functions.

Arguments: the repository, a folder for the receipts, the key, and a JSON file that maps shard names to node ids.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from pytest_gpu_proof.config import GpuProofConfig
from pytest_gpu_proof.receipt import build_receipt_payload, finalize_receipt, write_receipt
from pytest_gpu_proof.signers.ed25519 import SSHSigner

repo, out, key, layout = sys.argv[1:]
with open(layout) as file:
    shards = json.load(file)
now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
for name, node_ids in shards.items():
    path = str(Path(out) / f"{name}.json")
    config = GpuProofConfig(enabled=True, output=path, github_username="bench", repo_root=repo)
    tests = [
        {"checks": [], "duration_s": 0.0001, "node_id": node, "outcome": "passed", "phase": "call"}
        for node in node_ids
    ]
    payload = build_receipt_payload(config, tests, now, now)
    write_receipt(finalize_receipt(payload, SSHSigner(key_path=key, root=repo)), path)
