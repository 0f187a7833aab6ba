/* machine: facts about the agent's machine: its kind, resources, capabilities and load. */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define MACHINE_NO_INODES "its agent's disk has no inodes left for files"

struct machine {
        char arch[65], opsys[65];
        uint64_t cpus_milli, memory_bytes;
        struct buf attributes; /* "OpSysAndVer = …; HasConda = true; …": found by machine_init */
        struct buf processor;  /* "Microarch = …; KFlops = …": for this machine's processors */
        /* measured by machine_measure */
        uint64_t load_milli, disk_free_bytes; /* disk: at the agent's folder, in steps of 256 MiB */
        uint64_t inodes_free;                 /* of the same file system; UINT64_MAX: it has no such limit */
        int64_t measured_ms;
};

/* Returns 0 if the kernel has all calls that the agent and its shepherd need (Linux 5.11); or -ENOSYS with
 * err.
 */
int machine_check_kernel(struct err *err);
void machine_init(struct machine *m);
void machine_deinit(struct machine *m);
void machine_measure(struct machine *m, int dir); /* measures at most every 15 s */
/* Returns whether too few inodes are left for staging, by the last measurement. */
bool machine_lacks_inodes(const struct machine *m);
/* Returns whether making a file in the folder failed with this errno for lack of inodes, by a new
 * measurement. */
bool machine_is_out_of_inodes(struct machine *m, int dir, int error);

bool machine_find_program(const char *name,
                          struct buf *out); /* searches PATH; appends the whole path if found */
/* Appends ClassAd attributes for a machine with these folders in PATH; `root` is put before absolute paths
 * ("": none). */
void machine_capabilities(const char *path, const char *root, struct buf *out);
/* Appends ClassAd attributes of the processors: x86-64 level and extensions, and speed by the highest clock
 * rate. */
void machine_processors(const char *root, struct buf *out);
/* Appends the numbers of the devices /dev/nvidiaN, each after a space. */
void machine_gpus(const char *root, struct buf *out);
