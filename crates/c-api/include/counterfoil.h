/* Counterfoil's record store for small devices: sealed, replay-proof, atomic commits, no heap.
 *
 * A store keeps numbered records on raw flash. Whoever holds the flash cannot read them, change them, or put back an
 * older image unnoticed: every commit is bound by one step of a counter that only goes up.
 *
 * Every call returns COUNTERFOIL_OK (0) or one of the negative numbers below. After an error that came from writing, the
 * store answers COUNTERFOIL_LATCHED until it is opened again; what was acknowledged is safe.
 * One store is used by one thread at a time. No function keeps a pointer that it was given, but for the memory handed to
 * counterfoil_format and counterfoil_open, and the device's context: they stay where they are until counterfoil_close.
 */
#ifndef COUNTERFOIL_H
#define COUNTERFOIL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call can answer. */
enum {
    COUNTERFOIL_OK = 0,
    COUNTERFOIL_DEVICE = -1,           /* a callback of the medium failed */
    COUNTERFOIL_TAMPERED = -2,         /* a page is not what the commit says it must be */
    COUNTERFOIL_CORRUPT = -3,          /* a page authenticates and makes no sense */
    COUNTERFOIL_NO_COMMIT = -4,        /* no store is there, or another key's */
    COUNTERFOIL_ROLLED_BACK = -5,      /* the image is older than its counter says */
    COUNTERFOIL_COUNTER_LOST = -6,     /* the counter stands below the image */
    COUNTERFOIL_COUNTER = -7,          /* a callback of the counter failed */
    COUNTERFOIL_FULL = -8,             /* no room; nothing was changed; deallocating still works */
    COUNTERFOIL_NO_RECORD = -9,        /* there is no record of this number */
    COUNTERFOIL_ID_OUT_OF_RANGE = -10, /* the number is past the last that the memory has room for */
    COUNTERFOIL_IDS_EXHAUSTED = -11,   /* all numbers are in use */
    COUNTERFOIL_RECORD_TOO_LONG = -12, /* the record is longer than a page holds */
    COUNTERFOIL_TOO_MANY_CHANGES = -13,
    COUNTERFOIL_BUFFER_TOO_SMALL = -14,
    COUNTERFOIL_GEOMETRY = -15,        /* the device does not suit a store */
    COUNTERFOIL_NO_GENERATOR = -16,    /* neither counter nor generator, and a cipher that does not stand that */
    COUNTERFOIL_LATCHED = -18,         /* an earlier write failed: open the store again */
    COUNTERFOIL_WORN_OUT = -19,        /* the numbers of laps or openings are used up: it can only be read */
    COUNTERFOIL_NAME = -20,            /* a name has 1 to 255 bytes, in a store that was made for names */
    COUNTERFOIL_BUG = -21,             /* a fault of this library: please report it */
    COUNTERFOIL_MISUSE = -32,          /* a null pointer, or memory that is not aligned; of tables what makes no sense */
    COUNTERFOIL_CONSTRAINT = -40,      /* tables: a row breaks a rule; the commit under way was undone */
    COUNTERFOIL_MEMORY = -41           /* tables: a question needs more memory than it was given */
};

/* Ciphers; a library has those that it was built with. AES-256-GCM-SIV stands a broken generator and a lost counter best;
 * Ascon is the smallest. */
enum {
    COUNTERFOIL_AES_256_GCM_SIV = 1,
    COUNTERFOIL_AES_256_GCM = 2,
    COUNTERFOIL_CHACHA20_POLY1305 = 3,
    COUNTERFOIL_ASCON_AEAD128 = 4,
    COUNTERFOIL_AES_128_OCB3 = 5
};

/* The medium, its counter and its generator. Callbacks return 0, or anything else if they failed. */
typedef struct counterfoil_device {
    void *context; /* handed to every callback */
    /* Reads `length` bytes from `offset` bytes after the start of `page`; the range lies within the page. */
    int (*read)(void *context, uint32_t page, uint32_t offset, void *bytes, uint32_t length);
    /* Programs one page, in order within its block, once between two erases. */
    int (*program)(void *context, uint32_t page, const void *bytes);
    int (*erase)(void *context, uint32_t block);
    /* Returns once everything programmed and erased so far survives a power cut. */
    int (*sync)(void *context);
    /* The counter: what it holds, and one step up to `to`, read back. Both or neither. */
    int (*counter_read)(void *context, uint64_t *value);
    int (*counter_step)(void *context, uint64_t to);
    /* Unpredictable bytes; NULL if there is no generator. It must be the same at every opening. */
    int (*random)(void *context, void *bytes, uint32_t length);
    uint32_t page_bytes;   /* 256 to 65536 */
    uint32_t block_pages;  /* 2 to 1024 */
    uint32_t first_block;  /* where the store begins, and how many blocks it has: 4 at least */
    uint32_t block_count;
    uint32_t index_blocks; /* how many of them hold the index: 2 at least, 3 of 16 */
    uint32_t names;        /* ids below this one belong to names; 0 if nothing is named */
} counterfoil_device;

/* The keys. */
typedef struct counterfoil_key {
    uint8_t volume_key[32]; /* the secret */
    uint8_t database[32];   /* the name of the store; no secret, but never the same for two */
    uint32_t cipher;
} counterfoil_key;

/* One change of a commit. `bytes` NULL deallocates the record. */
typedef struct counterfoil_change {
    uint32_t id;
    const void *bytes;
    uint32_t length;
} counterfoil_change;

typedef struct counterfoil_store counterfoil_store;

/* How much memory a store takes that shall hold up to `records` records, with `pending` index changes kept in it (64 to
 * 200 do; more of them save writes; never fewer than a store is made with, which is twice the entries of a page and four for each
 * leaf of the index, whatever is asked for); 0 if the device does not suit a store of so many. */
size_t counterfoil_memory_bytes(const counterfoil_device *device, uint32_t records, uint32_t pending);

/* Makes an empty store; whatever the blocks held is gone. `memory` is aligned to 8 bytes. On success `*store` is the
 * store, which lies in that memory. */
int counterfoil_format(counterfoil_store **store, const counterfoil_device *device, const counterfoil_key *key,
                       void *memory, size_t memory_bytes, uint32_t records, uint32_t pending);

/* Opens a store. Nothing is written before the first commit. Reads the head of every page, and the pages that the newest
 * commit needs. */
int counterfoil_open(counterfoil_store **store, const counterfoil_device *device, const counterfoil_key *key,
                     void *memory, size_t memory_bytes, uint32_t records, uint32_t pending);

/* The same, even if the counter stands above the image, unless the image says that this has happened `rollbacks_max` times
 * before: for devices that nobody looks after, on media that lie about what they have written. It is written down in the image
 * at once. It bounds nothing for one who has the flash and puts the same older image back again. */
int counterfoil_open_despite_rollback(counterfoil_store **store, const counterfoil_device *device,
                                      const counterfoil_key *key, void *memory, size_t memory_bytes,
                                      uint32_t records, uint32_t pending, uint16_t rollbacks_max);

/* How often that has happened, as far as the image knows. */
uint32_t counterfoil_rollbacks(const counterfoil_store *store);

/* A number without a record, not handed out since the last commit. It stays free unless it is committed. */
int counterfoil_allocate(counterfoil_store *store, uint32_t *id);

/* Copies a record to `bytes`, and its length to `*length`. Reads two pages at most. */
int counterfoil_read(counterfoil_store *store, uint32_t id, void *bytes, uint32_t capacity, uint32_t *length);

/* Writes all changes or, after a power cut, none of them; durable and counted on return. 16 changes at most. */
int counterfoil_commit(counterfoil_store *store, const counterfoil_change *changes, uint32_t count);

/* A commit that deallocates one record. */
int counterfoil_deallocate(counterfoil_store *store, uint32_t id);

/* Commits that share a step of the counter: each is durable on return, but until the group is closed (by counterfoil_close_group
 * or by an ordinary commit, which is then the last of it), whoever has the flash can put back any commit of it, or the one before
 * it, unnoticed; after that any commit of this last group, until the next commit or group. */
int counterfoil_commit_in_group(counterfoil_store *store, const counterfoil_change *changes, uint32_t count);
int counterfoil_close_group(counterfoil_store *store);

/* Records by name. `buffer` has room for a byte and the longest name with its value that the store holds; it does not overlap
 * name and value. A value is read to the start of `buffer`. Reads two pages, and two for each other name in the way: keep a
 * quarter of the ids of names free. */
int counterfoil_read_named(counterfoil_store *store, const void *name, uint32_t name_bytes, void *buffer,
                           uint32_t capacity, uint32_t *length);
int counterfoil_put_named(counterfoil_store *store, const void *name, uint32_t name_bytes, const void *value,
                          uint32_t value_bytes, void *buffer, uint32_t capacity);
int counterfoil_delete_named(counterfoil_store *store, const void *name, uint32_t name_bytes, void *buffer,
                             uint32_t capacity);

/* Does one step of what later commits would have to do otherwise; 1 if there is more to do, 0 if not. A step is an erase, or a
 * commit of a quarter of a block and two pages, with the leaves that fill up by it; where the index is short of room, a commit
 * that clears a block of it besides. The first one after an opening takes up writing. */
int counterfoil_prepare(counterfoil_store *store);

/* Moves everything that is current, erases everything else, and reads back that it is erased; 0 if it is, 1 if the flash did
 * not read as erased. Copies taken before are out of reach. */
int counterfoil_purge(counterfoil_store *store);

/* How many more records of so many bytes there is room for at least. Reads every page that holds something. */
int counterfoil_space_left(counterfoil_store *store, uint32_t record_bytes, uint32_t *records);

/* How many more times each block can be erased before the most used one has been erased `endurance` times. */
uint32_t counterfoil_lifetime_left(const counterfoil_store *store, uint32_t endurance);

/* The most bytes that a record may have, and what the newest commit took the counter to. */
uint32_t counterfoil_record_bytes_max(const counterfoil_store *store);
uint64_t counterfoil_counted(const counterfoil_store *store);

/* Ends the use of a store and wipes its keys. Nothing needs to be written. */
void counterfoil_close(counterfoil_store *store);

/* Tables (a library built with the feature `relation`): rows with keys, foreign keys and indexes, asked with plans that were
 * compiled elsewhere. They take a whole device of their own: `first_block` is 0, `index_blocks` and `names` are not looked at, and
 * there are 26 blocks at least, and one more for each table and index. There must be a generator. Tables need a heap, unlike
 * records: `memory`, aligned to 8 bytes, is handed to the first call and is the library's until the program ends; with an operating
 * system it may be NULL. Where it does not suffice the part halts. Tables are used by one thread, and never from an interrupt. */
typedef struct counterfoil_tables counterfoil_tables;

/* Types of columns; `size` is the number of characters of CHAR and VARCHAR. Instants count microseconds since 1970, dates days. */
enum {
    COUNTERFOIL_BOOLEAN = 1,
    COUNTERFOIL_SMALLINT = 2,
    COUNTERFOIL_INTEGER = 3,
    COUNTERFOIL_BIGINT = 4,
    COUNTERFOIL_REAL = 5,
    COUNTERFOIL_DOUBLE = 6,
    COUNTERFOIL_TEXT = 7,
    COUNTERFOIL_VARCHAR = 8,
    COUNTERFOIL_CHAR = 9,
    COUNTERFOIL_BYTEA = 10,
    COUNTERFOIL_DATE = 11,
    COUNTERFOIL_TIME = 12,
    COUNTERFOIL_TIMESTAMP = 13,
    COUNTERFOIL_TIMESTAMPTZ = 14,
    COUNTERFOIL_UUID = 15
};

/* What a column is beside its type. */
enum { COUNTERFOIL_NOT_NULL = 1, COUNTERFOIL_PRIMARY_KEY = 2, COUNTERFOIL_INDEXED = 4 };

typedef struct counterfoil_column {
    const char *name;
    uint32_t type;
    uint32_t size;
    uint32_t flags;
    const char *references; /* the table whose primary key this is; NULL if none */
} counterfoil_column;

/* A value. By the type of its column counts `whole` (truth values, integers, dates and times), `number` (REAL, DOUBLE) or `bytes`
 * (texts in UTF-8, BYTEA, UUID). */
typedef struct counterfoil_value {
    uint32_t is_null;
    uint32_t length;
    int64_t whole;
    double number;
    const void *bytes;
} counterfoil_value;

/* Makes tables, or opens those that are there, as the last commit left them. Whatever the device held is gone after the first. */
int counterfoil_tables_create(counterfoil_tables **tables, const counterfoil_device *device, const counterfoil_key *key,
                              void *memory, size_t memory_bytes);
int counterfoil_tables_open(counterfoil_tables **tables, const counterfoil_device *device, const counterfoil_key *key,
                            void *memory, size_t memory_bytes);

/* Makes a table; adds a row, with a value for each column. Both belong to the commit under way, which the first change begins. If one
 * of them fails, all of it is undone. */
int counterfoil_tables_define(counterfoil_tables *tables, const char *name, const counterfoil_column *columns, uint32_t count);
int counterfoil_tables_insert(counterfoil_tables *tables, const char *name, const counterfoil_value *values, uint32_t count);

/* Makes the row with a primary key another one, with a value for each column, its key among them; takes the row away. `key` has a
 * value for each column of the primary key, in the order in which they were defined. 1 if there was such a row, and 0 if there is none
 * and nothing was done. A row that others reference cannot go, and its key cannot change (CONSTRAINT); a table without a primary key is
 * MISUSE. Both belong to the commit under way, as above. */
int counterfoil_tables_update(counterfoil_tables *tables, const char *name, const counterfoil_value *key, uint32_t key_count,
                              const counterfoil_value *values, uint32_t count);
int counterfoil_tables_delete(counterfoil_tables *tables, const char *name, const counterfoil_value *key, uint32_t key_count);

/* Ends the commit under way: durable and counted on return, or after a power cut not there at all. Or undoes it. */
int counterfoil_tables_commit(counterfoil_tables *tables);
int counterfoil_tables_roll_back(counterfoil_tables *tables);

/* Runs a compiled plan (SPEC.md, "Compiled plans") with so much of the memory, 16 KB at least in a library built with the feature
 * `small` and 32 KB in any other, and calls `row` for each row of the answer. The values are there until it returns; what it returns
 * other than 0 ends the answer and is returned. Nothing is put aside: what cannot be sorted or grouped in that memory is refused
 * (MEMORY), and so is less than the least; rows may have been handed over before. */
int counterfoil_tables_ask(counterfoil_tables *tables, const void *plan, size_t plan_bytes, size_t memory_bytes,
                           int (*row)(void *context, const counterfoil_value *values, uint32_t count), void *context);

/* One step of what is due after changes, or of a reorganization: tables and indexes in one piece each. A commit of its own; none
 * must be under way. 1 if there is more to do, 0 if not. Not a purge: blocks that it leaves are erased when they are taken again. */
int counterfoil_tables_maintain(counterfoil_tables *tables);
int counterfoil_tables_reorganize(counterfoil_tables *tables);

/* Puts a header into its place (SPEC.md, "header"), so that a host can open what the device wrote with a secret of its own: bytes that
 * were made elsewhere, under the device's key, for a volume of its page and block sizes, without a counter. TAMPERED if they were not
 * made under this key, GEOMETRY if they are of another volume. Commits of its own; none must be under way. After a cut: once more. */
int counterfoil_tables_put_header(counterfoil_tables *tables, const counterfoil_key *key, const void *header,
                                  size_t header_bytes);

/* Undoes the commit under way, leaves the tables so that they open quickly, and ends their use. */
int counterfoil_tables_close(counterfoil_tables *tables);

#ifdef __cplusplus
}
#endif
#endif
