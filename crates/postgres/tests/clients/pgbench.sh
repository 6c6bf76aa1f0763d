#!/usr/bin/env bash
# pgbench's own transactions over its own tables. The environment says where the server is (PGHOST and its kin).
set -euo pipefail

pgbench --initialize --scale=1 --quiet >/dev/null 2>&1 || { pgbench --initialize --scale=1 --quiet >&2; exit 1; }
for mode in simple extended prepared; do
    for script in select-only simple-update tpcb-like; do
        said=$(pgbench --no-vacuum --builtin="$script" --protocol=$mode --client=4 --transactions=25 2>&1) || true
        grep -q 'actually processed: 100/100' <<<"$said" || { printf 'pgbench %s %s:\n%s\n' $mode $script "$said" >&2; exit 1; }
    done
done
# What one table gained, the others gained.
sums="SELECT (SELECT sum(delta) FROM pgbench_history) = (SELECT sum(abalance) FROM pgbench_accounts)"
[ "$(psql -XAtq -c "$sums")" = t ]
psql -XAtq -c 'DROP TABLE pgbench_branches; DROP TABLE pgbench_tellers; DROP TABLE pgbench_accounts; DROP TABLE pgbench_history'
