/* From reset to main on a Cortex-M3: the vector table, data and zeros into RAM, newlib's way to the debugger. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t data_source, data_begin, data_end, zero_begin, zero_end, stack_top;
extern void initialise_monitor_handles(void);
extern int main(void);

void reset(void) {
    const uint32_t *from = &data_source;
    for (uint32_t *to = &data_begin; to < &data_end;) *to++ = *from++;
    for (uint32_t *to = &zero_begin; to < &zero_end;) *to++ = 0;
    initialise_monitor_handles();
    exit(main());
}

/* Any fault ends the run as failed. */
static void fault(void) {
    exit(99);
}

/* newlib calls these before and after main, for constructors. C has none. */
void _init(void) {}
void _fini(void) {}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, reset, fault, fault, fault, fault, fault,
};
