"""Fuzz every decoder that reads what others wrote, guided by the branches that it reaches (atheris, libFuzzer).

    make fuzz                                    all of them, ten minutes together
    python tests/fuzz/fuzz.py --seconds 60 krl   one, with atheris on PYTHONPATH

No part of the test suite. Each target runs in a process of its own, from fresh seeds. Whatever a decoder raises
beside its own error, an assertion of `decoders.py`, ten seconds or 2 GB for one input end it; then the input lies
under `--findings`, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
LONGEST = 1 << 14
LIMITS = [f"-max_len={LONGEST}", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]


def fuzz_here(name: str, options: list[str]) -> None:
    """Fuzz one target in this process; libFuzzer ends it."""
    import atheris

    sys.path.insert(0, str(HERE))
    with atheris.instrument_imports(include=["gitledger"]):
        from decoders import targets
        from seeds import make_seeds

        from gitledger.errors import LedgerError
    seeds, signer = make_seeds()
    target = targets(frozenset(seeds["record"]), signer)[name]

    def once(data: bytes) -> None:
        with suppress(LedgerError):
            target(data)

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for number, seed in enumerate(seeds[name]):
            once(seed)
            (Path(folder) / str(number)).write_bytes(seed)
        atheris.Setup([sys.argv[0], folder, *options], once)
        atheris.Fuzz()


def fuzz_apart(name: str, seconds: float, findings: Path) -> bool:
    """Fuzz one target in a child, print its figures, and tell whether nothing was found."""
    options = [*LIMITS, f"-max_total_time={max(1, round(seconds))}", f"-artifact_prefix={findings}/{name}-"]
    command = [sys.executable, __file__, "--target", name, *options]
    done = subprocess.run(command, capture_output=True, timeout=seconds + 120, check=False)
    said = done.stderr.decode("utf-8", "replace")
    runs = re.findall(r"stat::number_of_executed_units:\s*(\d+)", said)
    progress = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", said)
    cov, features, kept = progress[-1] if progress else ("0", "0", "0")
    ran = f"{runs[-1] if runs else '?'} executions, {cov} edges, {features} features, {kept} inputs kept"
    print(f"{name}: {ran}, {'nothing found' if done.returncode == 0 else 'FOUND'}", flush=True)
    if done.returncode:
        print(said[-3000:], flush=True)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="for all targets together (600)")
    parser.add_argument("--findings", type=Path, default=HERE.parent.parent / ".fuzz", help="where findings go")
    parser.add_argument("--target", help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*", help="all of them, if none is named")
    given, options = parser.parse_known_args()
    if given.target:
        fuzz_here(given.target, options)
        return 0
    sys.path.insert(0, str(HERE))
    from seeds import make_seeds

    seeds, _ = make_seeds()
    unknown = set(given.targets) - set(seeds)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(seeds)}")
    names = given.targets or list(seeds)
    given.findings.mkdir(parents=True, exist_ok=True)
    clean = [fuzz_apart(name, given.seconds / len(names), given.findings) for name in names]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
