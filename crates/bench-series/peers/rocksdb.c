/* RocksDB: write batches as the tuples come, the write-ahead log synced at each commit. LZ4 where Debian's build has it. */
#include "peer.h"
#include <rocksdb/c.h>

static rocksdb_t *db;
static rocksdb_writebatch_t *batch;
static rocksdb_writeoptions_t *lazily;
static rocksdb_readoptions_t *reading;
static rocksdb_options_t *options;

static void check(char *error) { if (error) fail("rocksdb", error); }

static void engine_open(const char *folder) {
    char *error = NULL;
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(CACHE_BYTES));
    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_increase_parallelism(options, 2);
    db = rocksdb_open(options, folder, &error);
    check(error);
    batch = rocksdb_writebatch_create();
    lazily = rocksdb_writeoptions_create();
    reading = rocksdb_readoptions_create();
}

static void engine_put(const unsigned char *key, const unsigned char *value, size_t value_bytes) {
    rocksdb_writebatch_put(batch, (const char *)key, KEY_BYTES, (const char *)value, value_bytes);
}

static void engine_delete(const unsigned char *key) {
    rocksdb_writebatch_delete(batch, (const char *)key, KEY_BYTES);
}

static void engine_end_of_group(void) {
    char *error = NULL;
    rocksdb_write(db, lazily, batch, &error);
    check(error);
    rocksdb_writebatch_clear(batch);
}

static void engine_commit(void) {
    char *error = NULL;
    rocksdb_flush_wal(db, 1, &error);
    check(error);
}

static void engine_visit(const unsigned char *from, const unsigned char *until, visit_function *visit) {
    rocksdb_iterator_t *at = rocksdb_create_iterator(db, reading);
    for (rocksdb_iter_seek(at, (const char *)from, KEY_BYTES); rocksdb_iter_valid(at); rocksdb_iter_next(at)) {
        size_t key_bytes, value_bytes;
        const unsigned char *key = (const unsigned char *)rocksdb_iter_key(at, &key_bytes);
        if (memcmp(key, until, KEY_BYTES) > 0) break;
        const unsigned char *value = (const unsigned char *)rocksdb_iter_value(at, &value_bytes);
        visit(key, value, value_bytes);
    }
    rocksdb_iter_destroy(at);
}

static void engine_last(const unsigned char *from, const unsigned char *until, visit_function *visit) {
    rocksdb_iterator_t *at = rocksdb_create_iterator(db, reading);
    rocksdb_iter_seek_for_prev(at, (const char *)until, KEY_BYTES);
    if (rocksdb_iter_valid(at)) {
        size_t key_bytes, value_bytes;
        const unsigned char *key = (const unsigned char *)rocksdb_iter_key(at, &key_bytes);
        const unsigned char *value = (const unsigned char *)rocksdb_iter_value(at, &value_bytes);
        if (memcmp(key, from, KEY_BYTES) >= 0) visit(key, value, value_bytes);
    }
    rocksdb_iter_destroy(at);
}

static void engine_settle(void) {
    char *error = NULL;
    engine_commit();
    rocksdb_flushoptions_t *flushing = rocksdb_flushoptions_create();
    rocksdb_flush(db, flushing, &error);
    check(error);
    rocksdb_flushoptions_destroy(flushing);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
}
