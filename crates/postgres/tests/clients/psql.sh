#!/usr/bin/env bash
# What people do with psql. The environment says where the server is (PGHOST and its kin).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# is WANTED ANSWERED
is() {
    [ "$1" = "$2" ] || { printf 'psql: wanted:\n%s\nanswered:\n%s\n' "$1" "$2" >&2; exit 1; }
}
ask() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
# code SQL: how an error is called.
code() { psql -XAtq -v VERBOSITY=sqlstate -c "$1" 2>&1 | sed -n 's/^ERROR: *//p'; }

# Statements.
ask -c 'CREATE TABLE birds (id INTEGER PRIMARY KEY, name TEXT, wings INTEGER DEFAULT 2)'
is 'wren|2' "$(ask -c "INSERT INTO birds VALUES (1, 'wren') RETURNING name, wings")"
is 'größer|
t' "$(ask -c "SELECT 'größer', NULL; SELECT 1 < 2")"
is 'Time' "$(psql -Xq -c '\timing on' -c 'SELECT 1' | sed -n 's/^\(Time\): .*/\1/p')"
is '7' "$(printf '%s\n' 'SELECT 3 AS a, 4 AS b \gset' 'SELECT :a + :b;' | ask)"
is 'a|b
3|4' "$(psql -XAq -P footer=off -c 'SELECT 3 AS a, 4 AS b')"
is '2' "$(ask -v ids=1,2 <<<'SELECT count(*) + 1 FROM birds WHERE id IN (:ids);')"

# Transactions.
is '1' "$(ask -c 'BEGIN' -c "INSERT INTO birds VALUES (2, 'owl')" -c 'ROLLBACK' -c 'SELECT count(*) FROM birds')"
psql -Xq -1 -c "INSERT INTO birds VALUES (3, 'kite')" -c 'SELECT nothing' 2>/dev/null && exit 1
is '1' "$(ask -c 'SELECT count(*) FROM birds')"
is '2' "$(psql -XAtq -v ON_ERROR_ROLLBACK=on -c 'BEGIN' -c "INSERT INTO birds VALUES (3, 'kite')" -c 'SELECT nothing' -c 'COMMIT' \
    -c 'SELECT count(*) FROM birds' 2>/dev/null)"

# Errors: the statement's, and the connection goes on.
is '0A000' "$(code "COPY birds TO '/tmp/birds'")"
is 'after' "$(psql -XAtq -c 'SELECT nothing' -c "SELECT 'after'" 2>/dev/null)"
is 'the code' "$(case $(code "INSERT INTO birds VALUES (1, 'twice')") in 23*) echo the code ;; esac)"

# COPY, from this machine's files and from pipes.
seq 10 5009 | sed 's/.*/&\tname &\t2/' >"$work/in"
is 'COPY 5000' "$(psql -X -c "\\copy birds FROM '$work/in'")"
ask -c "\\copy (SELECT * FROM birds WHERE id >= 10 ORDER BY id) TO '$work/out'"
cmp "$work/in" "$work/out"
is 'id,name
1,wren' "$(ask -c 'COPY (SELECT id, name FROM birds ORDER BY id LIMIT 1) TO STDOUT WITH (FORMAT csv, HEADER)')"
is '2' "$(printf '9001,a\n9002,"b, c"\n' | ask -c 'COPY birds (id, name) FROM STDIN WITH (FORMAT csv)' -c 'SELECT count(*) FROM birds WHERE id > 9000')"
printf '9003\tgood\nx\tbad\n' | ask -c 'COPY birds (id, name) FROM STDIN' 2>/dev/null && exit 1
is '0' "$(ask -c 'SELECT count(*) FROM birds WHERE id = 9003')"

# Rows piece by piece, by a cursor of SQL.
is '5000' "$(ask -v FETCH_COUNT=100 <<<'SELECT v FROM generate_series(1, 5000) AS s(v);' | sort -n | tail -1)"

# Ctrl-C ends what runs, and nothing else.
long='SELECT count(*) FROM generate_series(1, 1000000000000) AS s(v) WHERE v % 7 = 8'
psql -XAtq -c "$long" -c "SELECT 'goes on'" >"$work/cancelled" 2>&1 &
running=$!
sleep 1
kill -INT $running
wait $running || true
grep -q 'goes on\|cancel\|interrupt' "$work/cancelled"
ask -c 'DROP TABLE birds'
