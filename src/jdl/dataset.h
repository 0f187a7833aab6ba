/* dataset: the files of a request cut into pieces, one for each job.
 *
 * Files come in groups: those of a group can be processed at the same places, and no piece has files of two.
 * Within a group their order stays, and a piece is a run of neighbours. The same files and limits always give
 * the same pieces. Pure.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dataset_file {
        uint64_t bytes, events; /* 0: not known */
        uint32_t group;
};
struct dataset_limits {                            /* 0: none */
        uint64_t files_max, bytes_max, events_max; /* of a piece; a file that is larger has one of its own */
        uint64_t files_min; /* a piece of fewer becomes part of a neighbour, where its group has one */
};
struct dataset_piece {
        size_t first, count;
        uint64_t bytes, events;
        uint32_t group;
};
/* The files must stand in the order of their groups. *ret is the caller's to free. With files_max alone the
 * pieces of a group differ by one file at most; else the last two of a group are made about as large.
 * Returns how many pieces there are. */
size_t dataset_split(const struct dataset_file *files, size_t count, const struct dataset_limits *limits,
                     struct dataset_piece **ret);
