/* clock_text: local times in the formats of HTCondor's listings. */
#pragma once
#include "base/buf.h"

void clock_text_run(struct buf *out, int64_t seconds); /* 0+01:02:03; negative counts as 0 */
void clock_text_date(struct buf *out,
                     int64_t at_s); /* "11/21 09:14", "4/3  17:05" with the month to the right; 11 wide */
void clock_text_full(struct buf *out, int64_t at_s); /* 11/21/26 09:14:05 */
