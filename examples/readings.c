/* Readings of stations, in tables on flash that anybody could unsolder: made, filled, asked and reorganized on the chip.
 *
 * The flash here is an array, and so is the counter; on a device they are drivers. docs/devices.md says how this program is built.
 */
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "counterfoil.h"

enum { PAGE_BYTES = 512, BLOCK_PAGES = 16, BLOCKS = 96, READINGS = 60, QUESTION_BYTES = 32768 };

typedef struct part {
    uint8_t pages[BLOCKS * BLOCK_PAGES][PAGE_BYTES];
    uint64_t counter;
    uint32_t dice;
} part;

static int part_read(void *context, uint32_t page, uint32_t offset, void *bytes, uint32_t length) {
    memcpy(bytes, ((part *)context)->pages[page] + offset, length);
    return 0;
}

static int part_program(void *context, uint32_t page, const void *bytes) {
    memcpy(((part *)context)->pages[page], bytes, PAGE_BYTES);
    return 0;
}

static int part_erase(void *context, uint32_t block) {
    memset(((part *)context)->pages[block * BLOCK_PAGES], 0xFF, BLOCK_PAGES * PAGE_BYTES);
    return 0;
}

static int part_sync(void *context) {
    (void)context;
    return 0;
}

static int part_counter_read(void *context, uint64_t *value) {
    *value = ((part *)context)->counter;
    return 0;
}

static int part_counter_step(void *context, uint64_t to) {
    ((part *)context)->counter = to;
    return 0;
}

/* No generator at all: a device has one. */
static int part_random(void *context, void *bytes, uint32_t length) {
    for (uint32_t at = 0; at < length; at++) {
        uint32_t *dice = &((part *)context)->dice;
        *dice = *dice * 1664525 + 1013904223;
        ((uint8_t *)bytes)[at] = (uint8_t)(*dice >> 24);
    }
    return 0;
}

static part flash, kept;
static alignas(8) uint8_t memory[256 * 1024];
static const counterfoil_key key = {.volume_key = {7}, .database = {1}, .cipher = COUNTERFOIL_ASCON_AEAD128};

static const counterfoil_device device = {
    .context = &flash,
    .read = part_read,
    .program = part_program,
    .erase = part_erase,
    .sync = part_sync,
    .counter_read = part_counter_read,
    .counter_step = part_counter_step,
    .random = part_random,
    .page_bytes = PAGE_BYTES,
    .block_pages = BLOCK_PAGES,
    .block_count = BLOCKS,
};

static const counterfoil_column stations[] = {
    {.name = "id", .type = COUNTERFOIL_INTEGER, .flags = COUNTERFOIL_PRIMARY_KEY},
    {.name = "name", .type = COUNTERFOIL_VARCHAR, .size = 20, .flags = COUNTERFOIL_INDEXED},
};

static const counterfoil_column readings[] = {
    {.name = "id", .type = COUNTERFOIL_BIGINT, .flags = COUNTERFOIL_PRIMARY_KEY},
    {.name = "station", .type = COUNTERFOIL_INTEGER, .flags = COUNTERFOIL_NOT_NULL, .references = "stations"},
    {.name = "value", .type = COUNTERFOIL_DOUBLE},
};

/* How many readings the station named roof has, and the greatest: of table 2, with table 1 by its path 1, where column 2 is 'roof',
 * the count of rows and the greatest of column 3 of the first. */
static const uint8_t plan[] = {1, 2, 2, 0, 0, 0, 1, 2, 0, 1, 2, 2, 4, 'r', 'o', 'o', 'f', 2, 1, 6, 0, 3, 0, 0, 0, 0, 2};

static int show(void *context, const counterfoil_value *values, uint32_t count) {
    (void)context;
    if (count != 2 || values[1].is_null) return 1;
    printf("roof: %d readings, the greatest %d\n", (int)values[0].whole, (int)values[1].number);
    return 0;
}

/* Answers whether it went well, and says where not. */
static int good(const char *what, int code) {
    if (code < 0) printf("%s: %d\n", what, code);
    return code >= 0;
}

static int fill(counterfoil_tables *tables) {
    const char *names[] = {"cellar", "roof", "garden"};
    for (int id = 0; id < 3; id++) {
        const counterfoil_value station[] = {{.whole = id}, {.bytes = names[id], .length = (uint32_t)strlen(names[id])}};
        if (!good("station", counterfoil_tables_insert(tables, "stations", station, 2))) return 0;
    }
    for (int id = 0; id < READINGS; id++) {
        const counterfoil_value reading[] = {{.whole = id}, {.whole = id % 3}, {.number = id * 0.5}};
        if (!good("reading", counterfoil_tables_insert(tables, "readings", reading, 3))) return 0;
        /* Durable and counted before the next one comes; and what is then due. */
        if (!good("commit", counterfoil_tables_commit(tables))) return 0;
        if (!good("upkeep", counterfoil_tables_maintain(tables))) return 0;
    }
    const counterfoil_value nowhere[] = {{.whole = READINGS}, {.whole = 99}, {.number = 1}};
    int code = counterfoil_tables_insert(tables, "readings", nowhere, 3);
    printf("a reading of no station: %s\n", code == COUNTERFOIL_CONSTRAINT ? "refused" : "TAKEN");
    return code == COUNTERFOIL_CONSTRAINT;
}

/* A reading is corrected and another one goes; a station that has readings cannot. */
static int change(counterfoil_tables *tables) {
    const counterfoil_value highest = {.whole = 58}, wrong = {.whole = 4}, roof = {.whole = 1}, none = {.whole = 1000};
    const counterfoil_value corrected[] = {{.whole = 58}, {.whole = 1}, {.number = 31}};
    if (counterfoil_tables_update(tables, "readings", &highest, 1, corrected, 3) != 1) return 0;
    if (counterfoil_tables_delete(tables, "readings", &wrong, 1) != 1) return 0;
    if (counterfoil_tables_delete(tables, "readings", &none, 1) != 0) return 0;
    if (!good("commit", counterfoil_tables_commit(tables))) return 0;
    int code = counterfoil_tables_delete(tables, "stations", &roof, 1);
    printf("a station with readings: %s\n", code == COUNTERFOIL_CONSTRAINT ? "stays" : "GONE");
    return code == COUNTERFOIL_CONSTRAINT;
}

int main(void) {
    counterfoil_tables *tables;
    if (!good("create", counterfoil_tables_create(&tables, &device, &key, memory, sizeof memory))) return 1;
    if (!good("define", counterfoil_tables_define(tables, "stations", stations, 2))) return 1;
    if (!good("define", counterfoil_tables_define(tables, "readings", readings, 3))) return 1;
    if (!fill(tables) || !change(tables)) return 1;
    memcpy(&kept, &flash, sizeof flash);
    int step;
    while ((step = counterfoil_tables_reorganize(tables)) > 0) {}
    if (!good("reorganize", step)) return 1;
    if (!good("close", counterfoil_tables_close(tables))) return 1;

    if (!good("open", counterfoil_tables_open(&tables, &device, &key, memory, sizeof memory))) return 1;
    if (!good("ask", counterfoil_tables_ask(tables, plan, sizeof plan, QUESTION_BYTES, show, NULL))) return 1;
    if (!good("close", counterfoil_tables_close(tables))) return 1;

    /* The owner puts back the flash as it was before. The counter is in the chip. */
    memcpy(flash.pages, kept.pages, sizeof flash.pages);
    int code = counterfoil_tables_open(&tables, &device, &key, memory, sizeof memory);
    printf("yesterday's flash put back: %s\n", code == COUNTERFOIL_ROLLED_BACK ? "refused" : "TAKEN");
    return code == COUNTERFOIL_ROLLED_BACK ? 0 : 1;
}
