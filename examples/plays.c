/* How often may a song be played? The counters of a player, in a store on flash that its owner could unsolder.
 *
 * The flash here is an array, and so is the counter; on a device they are drivers. It is small, so that two of it fit into
 * 64 KB of RAM: docs/devices.md says how this program is built for this machine and for a Cortex-M3.
 */
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "counterfoil.h"

enum { PAGE_BYTES = 512, BLOCK_PAGES = 8, BLOCKS = 5, SONGS = 40 };

typedef struct part {
    uint8_t pages[BLOCKS * BLOCK_PAGES][PAGE_BYTES];
    uint64_t counter;
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

static part flash, kept;
static alignas(8) uint8_t memory[4096];
static const counterfoil_key key = {.volume_key = {7}, .database = {1}, .cipher = COUNTERFOIL_ASCON_AEAD128};

static const counterfoil_device device = {
    .context = &flash,
    .read = part_read,
    .program = part_program,
    .erase = part_erase,
    .sync = part_sync,
    .counter_read = part_counter_read,
    .counter_step = part_counter_step,
    .page_bytes = PAGE_BYTES,
    .block_pages = BLOCK_PAGES,
    .block_count = BLOCKS,
    .index_blocks = 2,
};

static int open_store(counterfoil_store **store) {
    return counterfoil_open(store, &device, &key, memory, sizeof memory, SONGS, 64);
}

/* Plays a song once: one less is left, and that is durable before the first note. */
static int play(counterfoil_store *store, uint32_t song, uint32_t *left) {
    uint32_t length;
    int answer = counterfoil_read(store, song, left, sizeof *left, &length);
    if (answer != COUNTERFOIL_OK || *left == 0) return answer;
    *left -= 1;
    counterfoil_change change = {.id = song, .bytes = left, .length = sizeof *left};
    return counterfoil_commit(store, &change, 1);
}

int main(void) {
    counterfoil_store *store;
    uint32_t song, left = 7;
    size_t needed = counterfoil_memory_bytes(&device, SONGS, 64);
    printf("%lu bytes of memory are needed\n", (unsigned long)needed);
    if (needed == 0 || needed > sizeof memory) return 1;
    if (counterfoil_format(&store, &device, &key, memory, sizeof memory, SONGS, 64) != COUNTERFOIL_OK) return 2;
    if (counterfoil_allocate(store, &song) != COUNTERFOIL_OK) return 3;
    counterfoil_change sold = {.id = song, .bytes = &left, .length = sizeof left};
    if (counterfoil_commit(store, &sold, 1) != COUNTERFOIL_OK) return 4;
    counterfoil_close(store);

    /* The owner keeps a copy of the flash. The counter is not in his reach. */
    kept = flash;
    if (open_store(&store) != COUNTERFOIL_OK) return 5;
    for (int times = 0; times < 7; times++) {
        if (play(store, song, &left) != COUNTERFOIL_OK) return 6;
        printf("played: %u left\n", (unsigned)left);
    }
    if (left != 0 || play(store, song, &left) != COUNTERFOIL_OK || left != 0) return 7;
    counterfoil_close(store);

    memcpy(flash.pages, kept.pages, sizeof flash.pages);
    int answer = open_store(&store);
    printf("yesterday's flash put back: %s\n", answer == COUNTERFOIL_ROLLED_BACK ? "refused" : "TAKEN");
    return answer == COUNTERFOIL_ROLLED_BACK ? 0 : 8;
}
