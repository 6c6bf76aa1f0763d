#!/usr/bin/env bash
# What psql is answered is what the command `counterfoil sql` answers, value by value. The environment says where the server
# is (PGHOST and its kin), PROGRAM which command, and DATABASE what it serves.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

psql -Xq -v ON_ERROR_STOP=1 <<'SQL'
CREATE TABLE questions (id BIGINT PRIMARY KEY, small SMALLINT, n NUMERIC(12, 4), r REAL, d DOUBLE PRECISION, note VARCHAR(40),
    raw BYTEA, day DATE, at TIME, seen TIMESTAMPTZ, exact TIMESTAMP(9), who UUID);
INSERT INTO questions SELECT v, v % 7, v / 7.0, v / 3.0, sqrt(v), 'note ' || v, v::text::bytea, DATE '2000-01-01' + v::int,
    to_timestamp(v * 17)::time, to_timestamp(v * 3661),
    TIMESTAMP '2000-01-01', '12345678-1234-5678-1234-567812345678' FROM generate_series(1, 3000) AS s(v);
INSERT INTO questions (id) VALUES (0);
SQL

asked=0
while IFS= read -r question; do
    "$PROGRAM" sql "$DATABASE" --read-only --format csv -c "$question" >"$work/shell"
    psql -X --csv -v ON_ERROR_STOP=1 -c "$question" >"$work/psql"
    diff "$work/shell" "$work/psql" >&2 || { printf 'the shell and psql answer differently: %s\n' "$question" >&2; exit 1; }
    asked=$((asked + 1))
done <"$here/questions.sql"
[ "$asked" -ge 17 ] || { echo "only $asked questions were asked" >&2; exit 1; }
