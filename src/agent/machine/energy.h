/* energy: what the machine's processors and memory have consumed, by the kernel's powercap counters (RAPL).
 *
 * Only packages and DRAM are counted: cores are part of their package, and the platform's counter (psys)
 * contains both. Counters wrap, some after minutes, so energy_look is called more often than that. The kernel
 * lets only root open them, but whoever has opened one can read it: an agent that gives up root's rights
 * opens them before. Because short differences tell about the work of others, readings are at least
 * ENERGY_EVERY_MS apart. One thread at a time.
 */
#pragma once
#include <stdint.h>

#define ENERGY_FOLDER   "/sys/class/powercap"
#define ENERGY_EVERY_MS 100

struct energy;
/* Opens the counters in the folder. Returns NULL if it has none that can be read. */
struct energy *energy_open(const char *folder);
void energy_close(struct energy *e); /* NULL is fine */
/* Returns the microjoules since energy_open by the last reading, and reads again if that is older than
 * ENERGY_EVERY_MS. now_ms: the boot clock. NULL: 0. */
uint64_t energy_look(struct energy *e, int64_t now_ms);
/* Returns the part of that energy which counts for so many of the machine's processors. */
uint64_t energy_share(const struct energy *e, uint64_t uj, uint64_t cpus_milli);
