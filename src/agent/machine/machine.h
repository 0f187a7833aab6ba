/* machine: what an agent's own machine is, has and can do. */
#pragma once
#include <stdint.h>

#include "base/buf.h"

#define MACHINE_NO_INODES "its agent's disk has no inodes left for files"

struct machine {
        char arch[65], opsys[65];
        uint64_t cpus_milli, memory_bytes;
        struct buf attributes; /* "OpSysAndVer = …; HasConda = true; …": what was found when it was opened */
        struct buf processor; /* "Microarch = …; KFlops = …": of this machine's processors */
        /* measured now and then */
        uint64_t load_milli, disk_free_bytes; /* disk: where the agent's folder is, in steps of 256 MiB */
        uint64_t inodes_free;                 /* there, too; UINT64_MAX: its file system has no such limit */
        int64_t measured_ms;
};

void machine_init(struct machine *m);
void machine_deinit(struct machine *m);
void machine_measure(struct machine *m, int dir); /* not more often than every 15 s */
/* Whether so few inodes are left that nothing can be staged, as measured last. */
bool machine_lacks_inodes(const struct machine *m);
/* A file could not be made in the folder, with this errno: whether that is for want of inodes, as measured
 * now. */
bool machine_is_out_of_inodes(struct machine *m, int dir, int error);

bool machine_find_program(const char *name, struct buf *out); /* in PATH; out: the whole path, or nothing */
/* What is told of a machine with these folders in PATH, appended as ClassAd attributes; `root` is put before
 * absolute paths ("": none). */
void machine_capabilities(const char *path, const char *root, struct buf *out);
/* What its processors are, appended in the same way: their x86-64 level and extensions, and how fast they are
 * by their highest clock rate. */
void machine_processors(const char *root, struct buf *out);
/* The numbers of the devices /dev/nvidiaN, each behind a space. */
void machine_gpus(const char *root, struct buf *out);
