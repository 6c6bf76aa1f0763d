/* LMDB: a copy-on-write tree for each series, so that points in the order of time are appended (MDB_APPEND); those that come
 * late are put. */
#include "peer.h"
#include <lmdb.h>

static MDB_env *env;
static MDB_txn *txn;
static MDB_dbi tables[2 * SERIES];

static void check(int code) { if (code) fail("lmdb", mdb_strerror(code)); }

static MDB_dbi table(const unsigned char *key) {
    uint32_t series = (key[0] & 0x7f) << 24 | key[1] << 16 | key[2] << 8 | key[3];
    if (series >= SERIES) fail("lmdb", "a series too many");
    return tables[series + (key[0] >> 7) * SERIES];
}

static MDB_val time_of(const unsigned char *key) { return (MDB_val){8, (void *)(key + 4)}; }

static void engine_open(const char *folder) {
    check(mdb_env_create(&env));
    check(mdb_env_set_mapsize(env, (size_t)1 << 40));
    check(mdb_env_set_maxdbs(env, 2 * SERIES));
    check(mdb_env_open(env, folder, 0, 0600));
    check(mdb_txn_begin(env, NULL, 0, &txn));
    for (int i = 0; i < 2 * SERIES; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        check(mdb_dbi_open(txn, name, MDB_CREATE, &tables[i]));
    }
    engine_commit();
}

static void begin(void) { if (!txn) check(mdb_txn_begin(env, NULL, 0, &txn)); }

static void engine_put(const unsigned char *key, const unsigned char *value, size_t value_bytes) {
    begin();
    MDB_val k = time_of(key), v = {value_bytes, (void *)value};
    int code = mdb_put(txn, table(key), &k, &v, MDB_APPEND);
    if (code == MDB_KEYEXIST) code = mdb_put(txn, table(key), &k, &v, 0);
    check(code);
}

static void engine_delete(const unsigned char *key) {
    begin();
    MDB_val k = time_of(key);
    int code = mdb_del(txn, table(key), &k, NULL);
    if (code != MDB_NOTFOUND) check(code);
}

static void engine_end_of_group(void) {}

static void engine_commit(void) {
    if (txn) check(mdb_txn_commit(txn));
    txn = NULL;
}

static MDB_cursor *reader(MDB_txn **read, const unsigned char *key) {
    MDB_cursor *cursor;
    check(mdb_txn_begin(env, NULL, MDB_RDONLY, read));
    check(mdb_cursor_open(*read, table(key), &cursor));
    return cursor;
}

static void show(const unsigned char *like, const MDB_val *k, const MDB_val *v, visit_function *visit) {
    unsigned char key[KEY_BYTES];
    memcpy(key, like, 4);
    memcpy(key + 4, k->mv_data, 8);
    visit(key, v->mv_data, v->mv_size);
}

static void engine_visit(const unsigned char *from, const unsigned char *until, visit_function *visit) {
    MDB_txn *read;
    MDB_cursor *cursor = reader(&read, from);
    MDB_val k = time_of(from), v;
    int code = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    for (; !code && memcmp(k.mv_data, until + 4, 8) <= 0; code = mdb_cursor_get(cursor, &k, &v, MDB_NEXT))
        show(from, &k, &v, visit);
    if (code != MDB_NOTFOUND) check(code);
    mdb_cursor_close(cursor);
    mdb_txn_abort(read);
}

static void engine_last(const unsigned char *from, const unsigned char *until, visit_function *visit) {
    (void)until;
    MDB_txn *read;
    MDB_cursor *cursor = reader(&read, from);
    MDB_val k, v;
    int code = mdb_cursor_get(cursor, &k, &v, MDB_LAST);
    if (!code) show(from, &k, &v, visit);
    else if (code != MDB_NOTFOUND) check(code);
    mdb_cursor_close(cursor);
    mdb_txn_abort(read);
}

static void engine_settle(void) { engine_commit(); }
