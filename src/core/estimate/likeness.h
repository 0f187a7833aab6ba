/* likeness: which jobs are alike, for what is expected of their run times; for core/ only.
 *
 * Of a job's arguments the shape counts: options and plain words as they are, of numbers how large they are,
 * of files and other names what they end in. So `sort -n a.csv` is like `sort -n b.csv`, and `sleep 200` is
 * not like `sleep 1`.
 */
#pragma once
#include "base/str.h"
#include <stdint.h>

#define LIKENESS_START UINT64_C(0xcbf29ce484222325)

uint64_t likeness_add(uint64_t hash, struct str bytes);
uint64_t likeness_add_amount(uint64_t hash, double amount); /* amounts of the same size, by factors of two */
uint64_t likeness_add_arguments(uint64_t hash, struct str arguments);
