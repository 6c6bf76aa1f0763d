#!/usr/bin/env bash
# psql over TLS, and who is not let in. The environment says where the server is; CERTIFICATES is the folder of its root.
set -euo pipefail

to() { psql -XAtq -c "${2:-SELECT 1}" "host=localhost sslrootcert=$CERTIFICATES/$1 $3"; }
refused() {
    local said
    if said=$(to "$@" 2>&1); then
        echo "tls: $* is let in" >&2
        exit 1
    fi
    printf '%s\n' "$said"
}

for mode in require verify-ca verify-full; do
    [ "$(to root.pem 'SELECT 1' "sslmode=$mode channel_binding=require")" = 1 ]
    [ "$(to root.pem 'SELECT 1' "sslmode=$mode channel_binding=disable")" = 1 ]
done
psql -X -c '\conninfo' "host=localhost sslrootcert=$CERTIFICATES/root.pem sslmode=verify-full" | grep -q 'TLSv1.3'
to root.pem "SELECT repeat('x', 1000000)" 'sslmode=verify-full ssl_max_protocol_version=TLSv1.2' | wc -c | grep -qx 1000001
refused other.pem '' sslmode=verify-full | grep -q 'certificate verify failed'
refused root.pem '' 'sslmode=verify-full hostaddr=127.0.0.1 host=elsewhere.example' | grep -q 'elsewhere.example'
PGPASSWORD=wrong refused root.pem '' sslmode=verify-full | grep -q 'nobody with this name and password'
# This machine is trusted with what goes in clear.
[ "$(to root.pem 'SELECT 1' sslmode=disable)" = 1 ]
