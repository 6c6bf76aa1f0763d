/* Berkeley DB, under the licence of its own (AGPL): a program that the benchmark starts, and links nothing of ours with. One
 * tree with transactions; the log is synced at each commit. */
#include "peer.h"
#include <db.h>

static DB_ENV *env;
static DB *db;
static DB_TXN *txn;

static void check(int code) { if (code) fail("berkeleydb", db_strerror(code)); }

static void engine_open(const char *folder) {
    check(db_env_create(&env, 0));
    check(env->set_cachesize(env, 0, CACHE_BYTES, 1));
    check(env->set_lg_bsize(env, 8 << 20));
    check(env->set_lg_max(env, 64 << 20));
    check(env->set_lk_max_locks(env, 1 << 20));
    check(env->set_lk_max_objects(env, 1 << 20));
    check(env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1));
    check(env->open(env, folder, DB_CREATE | DB_INIT_MPOOL | DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK | DB_PRIVATE, 0600));
    check(db_create(&db, env, 0));
    check(db->set_pagesize(db, 4096));
    check(db->open(db, NULL, "tuples.db", NULL, DB_BTREE, DB_CREATE | DB_AUTO_COMMIT, 0600));
}

static DBT item(const void *bytes, size_t count) {
    DBT item = {0};
    item.data = (void *)bytes;
    item.size = count;
    return item;
}

static void begin(void) { if (!txn) check(env->txn_begin(env, NULL, &txn, 0)); }

static void engine_put(const unsigned char *key, const unsigned char *value, size_t value_bytes) {
    begin();
    DBT k = item(key, KEY_BYTES), v = item(value, value_bytes);
    check(db->put(db, txn, &k, &v, 0));
}

static void engine_delete(const unsigned char *key) {
    begin();
    DBT k = item(key, KEY_BYTES);
    int code = db->del(db, txn, &k, 0);
    if (code != DB_NOTFOUND) check(code);
}

static void engine_end_of_group(void) {}

static void engine_commit(void) {
    static uint64_t commits;
    if (txn) check(txn->commit(txn, 0));
    txn = NULL;
    /* Without checkpoints the log would grow for ever: one in ten seconds or so. */
    if (++commits % 100 == 0) check(env->txn_checkpoint(env, 0, 0, 0));
}

static void engine_visit(const unsigned char *from, const unsigned char *until, visit_function *visit) {
    DBC *cursor;
    unsigned char place[KEY_BYTES];
    memcpy(place, from, KEY_BYTES);
    DBT k = item(place, KEY_BYTES), v = {0};
    check(db->cursor(db, NULL, &cursor, 0));
    int code = cursor->get(cursor, &k, &v, DB_SET_RANGE);
    for (; !code && memcmp(k.data, until, KEY_BYTES) <= 0; code = cursor->get(cursor, &k, &v, DB_NEXT))
        visit(k.data, v.data, v.size);
    if (code != DB_NOTFOUND) check(code);
    check(cursor->close(cursor));
}

static void engine_last(const unsigned char *from, const unsigned char *until, visit_function *visit) {
    DBC *cursor;
    unsigned char place[KEY_BYTES];
    memcpy(place, until, KEY_BYTES);
    DBT k = item(place, KEY_BYTES), v = {0};
    check(db->cursor(db, NULL, &cursor, 0));
    /* Nothing has the last key there could be: the one before what follows it. */
    int code = cursor->get(cursor, &k, &v, DB_SET_RANGE);
    code = cursor->get(cursor, &k, &v, code == DB_NOTFOUND ? DB_LAST : DB_PREV);
    if (!code && memcmp(k.data, from, KEY_BYTES) >= 0) visit(k.data, v.data, v.size);
    else if (code && code != DB_NOTFOUND) check(code);
    check(cursor->close(cursor));
}

static void engine_settle(void) {
    engine_commit();
    check(env->txn_checkpoint(env, 0, 0, DB_FORCE));
}
