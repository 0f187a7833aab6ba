/* likeness: hashes by which jobs are compared for predicting run times; for core/ only.
 *
 * Only the form of a job's arguments counts: options and plain words as they are, the magnitude of numbers,
 * and the extensions of files and other names. So `sort -n a.csv` is like `sort -n b.csv`, and `sleep 200`
 * is not like `sleep 1`.
 */
#pragma once
#include "base/str.h"
#include <stdint.h>

#define LIKENESS_START UINT64_C(0xcbf29ce484222325)

uint64_t likeness_add(uint64_t hash, struct str bytes);
uint64_t likeness_add_amount(uint64_t hash, double amount); /* amounts hash equally within a factor of two */
uint64_t likeness_add_arguments(uint64_t hash, struct str arguments);
