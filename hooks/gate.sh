#!/bin/sh
# A gate for any CI: run what is stale, publish, judge. Each part may run on a machine of its own.
#
#   gate.sh plan     names what is stale, one shard a line
#   gate.sh run [SHARD…]   runs those (all that is stale without), records, publishes
#   gate.sh judge    judges the commit that is checked out by the policy of the target branch
#
# GITLEDGER_REMOTE (origin), GITLEDGER_TARGET (the branch that the change is to land on; the remote's default branch
# without), GITLEDGER_SIGNING_KEY (the runner's key, a path or the key itself). The clone needs its whole history.
#
# What it needs:
#   * a key of the runners' own: `ssh-keygen -q -t ed25519 -N '' -C ci -f ../ci-key`;
#     its private half (../ci-key, never in the tree) is what GITLEDGER_SIGNING_KEY hands over (GitHub: LEDGER_KEY)
#   * its public half in .gitledger/allowed_signers: `git ledger init --key ../ci-key --principal ci@ledger` adds it
#   * its principal (ci@ledger) in policy.allowed_signers of .gitledger/config.yaml, and its fingerprint
#     (`ssh-keygen -lf ../ci-key.pub`) in policy.ci_key_fingerprints; both count once they are on the main branch
#   * git-ledger on PATH; until its first release `pip install git-ledger` finds nothing, so it is installed from a
#     repository with this project: `pip install git+https://HOST/OWNER/git-ledger@COMMIT`
set -eu
remote=${GITLEDGER_REMOTE:-origin}

# The ref that policy comes from, as the remote has it now. Whoever calls this in a word of another command would go on
# without: assign it, and stop where that fails.
policy() {
    target=${GITLEDGER_TARGET:-$(git ls-remote --symref "$remote" HEAD | sed -n 's,^ref: refs/heads/\(.*\)	HEAD$,\1,p')}
    if [ -z "$target" ]; then
        echo "error: $remote names no default branch; set GITLEDGER_TARGET" >&2
        return 2
    fi
    git fetch --quiet --no-tags "$remote" "+refs/heads/$target:refs/remotes/$remote/$target" || return 2
    printf 'refs/remotes/%s/%s\n' "$remote" "$target"
}

case "${1:-}" in
plan)
    from=$(policy) || exit 2
    git ledger sync --fetch-only "$remote" >&2
    plan=$(git ledger plan --policy-from "$from" --json)
    printf '%s\n' "$plan" |
        python3 -c 'import json, sys
for row in json.load(sys.stdin)["shards"]:
    if row["verdict"] == "stale":
        print(row["name"] + ("@" + row["variant"] if row["variant"] else ""))'
    ;;
run)
    shift
    from=$(policy) || exit 2
    git ledger sync --fetch-only "$remote"
    status=0
    git ledger run "$@" --mode ci --policy-from "$from" || status=$?
    git ledger sync "$remote" # what failed is published as well
    exit "$status"
    ;;
judge)
    from=$(policy) || exit 2
    git ledger gate --remote "$remote" --policy-from "$from"
    ;;
*)
    echo "usage: gate.sh plan | run [SHARD...] | judge" >&2
    exit 2
    ;;
esac
