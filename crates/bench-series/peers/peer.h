/* What every peer in C does: it takes orders from standard input and answers on standard output, as src/remote.rs has it.
 * The store itself is behind the engine_ functions. Any failure ends the program. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

enum { KEY_BYTES = 12, SERIES = 100, CACHE_BYTES = 256 << 20 };

struct tuple { uint32_t series; uint8_t quality; uint8_t zeros[3]; int64_t time; double value; };

typedef void visit_function(const unsigned char *key, const unsigned char *value, size_t value_bytes);

static void engine_open(const char *folder);
static void engine_put(const unsigned char *key, const unsigned char *value, size_t value_bytes);
static void engine_delete(const unsigned char *key);
static void engine_end_of_group(void);
static void engine_commit(void);
static void engine_visit(const unsigned char *from, const unsigned char *until, visit_function *visit);
static void engine_last(const unsigned char *from, const unsigned char *until, visit_function *visit);
static void engine_settle(void);

static void fail(const char *what, const char *why) {
    fprintf(stderr, "peer: %s: %s\n", what, why);
    exit(1);
}

static void take(void *to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) fail("orders", "ended too early");
}

static void give(const void *from, size_t bytes) {
    if (fwrite(from, 1, bytes, stdout) != bytes) fail("answer", "not taken");
}

/* series, with the highest bit for booleans, and time, both big endian */
static void make_key(unsigned char *key, int sort, uint32_t series, int64_t time) {
    uint32_t number = series | (uint32_t)sort << 31;
    for (int i = 0; i < 4; i++) key[i] = number >> (24 - 8 * i);
    for (int i = 0; i < 8; i++) key[4 + i] = (uint64_t)time >> (56 - 8 * i);
}

static size_t make_value(unsigned char *value, int sort, const struct tuple *tuple) {
    if (sort == 1) {
        value[0] = tuple->value != 0;
        value[1] = tuple->quality;
        return 2;
    }
    float single = tuple->value;
    memcpy(value, &single, 4);
    value[4] = tuple->quality;
    return 5;
}

static struct tuple read_tuple(const unsigned char *key, const unsigned char *value, size_t value_bytes) {
    struct tuple tuple = {0};
    for (int i = 0; i < 4; i++) tuple.series = tuple.series << 8 | key[i];
    tuple.series &= 0x7fffffff;
    uint64_t time = 0;
    for (int i = 0; i < 8; i++) time = time << 8 | key[4 + i];
    tuple.time = time;
    if (value_bytes == 2) {
        tuple.value = value[0];
        tuple.quality = value[1];
    } else {
        float single;
        memcpy(&single, value, 4);
        tuple.value = single;
        tuple.quality = value[4];
    }
    return tuple;
}

/* ---- folds ---- */

static struct { int kind; double parameter, sum, least, most; uint64_t tuples; int64_t last; } fold;

static void begin_fold(int kind, double parameter) {
    fold.kind = kind;
    fold.parameter = parameter;
    fold.sum = fold.tuples = 0;
    fold.least = INFINITY;
    fold.most = -INFINITY;
    fold.last = INT64_MAX;
}

static void visit_fold(const unsigned char *key, const unsigned char *value, size_t value_bytes) {
    struct tuple tuple = read_tuple(key, value, value_bytes);
    fold.tuples++;
    switch (fold.kind) {
    case 0: fold.sum += (double)(tuple.time % 1000) + tuple.value + tuple.quality; break;
    case 1: break;
    case 2: case 3: fold.sum += tuple.value; break;
    case 4:
        if (tuple.value < fold.least) fold.least = tuple.value;
        if (tuple.value > fold.most) fold.most = tuple.value;
        break;
    case 5: fold.sum += tuple.value > fold.parameter; break;
    case 6:
        fold.sum += fold.last != INT64_MAX && tuple.time - fold.last > fold.parameter;
        fold.last = tuple.time;
        break;
    }
}

static double folded(void) {
    switch (fold.kind) {
    case 1: return (double)fold.tuples;
    case 3: return fold.tuples ? fold.sum / fold.tuples : 0;
    case 4: return fold.tuples ? fold.least + fold.most : fold.sum;
    default: return fold.sum;
    }
}

static void fold_series(int sort, uint32_t series, int64_t first, int64_t last) {
    unsigned char from[KEY_BYTES], until[KEY_BYTES];
    make_key(from, sort, series, first);
    make_key(until, sort, series, last);
    engine_visit(from, until, visit_fold);
}

static void answer(uint64_t tuples, double number) {
    give(&tuples, 8);
    give(&number, 8);
    fflush(stdout);
}

/* ---- orders ---- */

static void change(int word) {
    static struct tuple *tuples;
    static uint32_t room;
    unsigned char sort, key[KEY_BYTES], value[5];
    uint32_t count;
    take(&sort, 1);
    take(&count, 4);
    if (count > room) {
        tuples = realloc(tuples, sizeof *tuples * count);
        if (!tuples) fail("tuples", "no memory");
        room = count;
    }
    take(tuples, sizeof *tuples * count);
    for (uint32_t i = 0; i < count; i++) {
        make_key(key, sort, tuples[i].series, tuples[i].time);
        if (word == 'D') engine_delete(key);
        else engine_put(key, value, make_value(value, sort, &tuples[i]));
    }
    engine_end_of_group();
}

static void fold_one(void) {
    unsigned char head[2];
    uint32_t series;
    int64_t span[2];
    double parameter;
    take(head, 2);
    take(&series, 4);
    take(span, 16);
    take(&parameter, 8);
    begin_fold(head[1], parameter);
    fold_series(head[0], series, span[0], span[1]);
    answer(fold.tuples, folded());
}

static void fold_all(void) {
    unsigned char head[2];
    int64_t span[2];
    uint32_t count;
    double parameters[SERIES];
    take(head, 2);
    take(span, 16);
    take(&count, 4);
    if (count > SERIES) fail("orders", "more series than there are");
    take(parameters, 8 * count);
    uint64_t tuples = 0;
    double number = 0;
    for (uint32_t series = 0; series < count; series++) {
        begin_fold(head[1], parameters[series]);
        fold_series(head[0], series, span[0], span[1]);
        tuples += fold.tuples;
        number += folded();
    }
    answer(tuples, number);
}

static struct tuple newest[SERIES];
static uint32_t newest_count;

static void visit_newest(const unsigned char *key, const unsigned char *value, size_t value_bytes) {
    newest[newest_count++] = read_tuple(key, value, value_bytes);
}

static void tell_newest(void) {
    unsigned char sort, from[KEY_BYTES], until[KEY_BYTES];
    take(&sort, 1);
    newest_count = 0;
    for (uint32_t series = 0; series < SERIES; series++) {
        make_key(from, sort, series, 0);
        make_key(until, sort, series, INT64_MAX);
        engine_last(from, until, visit_newest);
    }
    give(&newest_count, 4);
    give(newest, sizeof *newest * newest_count);
    fflush(stdout);
}

static void tell_done(void) {
    give("", 1);
    fflush(stdout);
}

int main(int count, char **words) {
    if (count != 2) fail("usage", "PEER FOLDER");
    static char in[1 << 18], out[1 << 16];
    setvbuf(stdin, in, _IOFBF, sizeof in);
    setvbuf(stdout, out, _IOFBF, sizeof out);
    engine_open(words[1]);
    for (int word; (word = getchar()) != EOF;) {
        switch (word) {
        case 'I': case 'U': case 'D': change(word); break;
        case 'C': engine_commit(); tell_done(); break;
        case 'S': engine_settle(); tell_done(); break;
        case 'F': fold_one(); break;
        case 'A': fold_all(); break;
        case 'N': tell_newest(); break;
        default: fail("orders", "a word that nobody knows");
        }
    }
    return 0;
}
