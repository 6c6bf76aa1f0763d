#!/usr/bin/env bash
# pgbench's own transactions over tables of its own. The environment says where the server is (PGHOST and its kin).
set -euo pipefail

# What `pgbench -i` makes.
psql -XAtq -v ON_ERROR_STOP=1 <<'SQL'
CREATE TABLE pgbench_branches (bid INTEGER PRIMARY KEY, bbalance INTEGER, filler CHAR(88));
CREATE TABLE pgbench_tellers (tid INTEGER PRIMARY KEY, bid INTEGER, tbalance INTEGER, filler CHAR(84));
CREATE TABLE pgbench_accounts (aid INTEGER PRIMARY KEY, bid INTEGER, abalance INTEGER, filler CHAR(84));
CREATE TABLE pgbench_history (tid INTEGER, bid INTEGER, aid INTEGER, delta INTEGER, mtime TIMESTAMP, filler CHAR(22));
INSERT INTO pgbench_branches VALUES (1, 0, '');
INSERT INTO pgbench_tellers SELECT v, 1, 0, '' FROM generate_series(1, 10) AS s(v);
INSERT INTO pgbench_accounts SELECT v, 1, 0, '' FROM generate_series(1, 100000) AS s(v);
SQL
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
