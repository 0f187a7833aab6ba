/* dataset: divides the files of a request into pieces, one for each job.
 *
 * Files come in groups: the files of a group can be processed at the same places, and no piece has files of
 * two groups. Within a group the order of the files is kept, and a piece is a run of neighbours. The same
 * files and limits always give the same pieces. Pure.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dataset_file {
        uint64_t bytes, events; /* 0: not known */
        uint32_t group;
};
struct dataset_limits { /* 0: none */
        /* limits of a piece; a larger file is a piece of its own */
        uint64_t files_max, bytes_max, events_max;
        uint64_t files_min; /* a smaller piece is merged with a neighbour, if its group has one */
};
struct dataset_piece {
        size_t first, count;
        uint64_t bytes, events;
        uint32_t group;
};
/* Divides the files, which must be in the order of their groups. *ret is the caller's to free. With
 * files_max alone the pieces of a group differ by at most one file; else the last two pieces of a group are
 * made about equal. Returns the number of pieces. */
size_t dataset_split(const struct dataset_file *files, size_t count, const struct dataset_limits *limits,
                     struct dataset_piece **ret);
