/* reservations: the section "reservations" of the settings: which users may make reservations for
 * themselves, and how large. Admins and operators always may. */
#pragma once
#include <stdint.h>

#include "base/err.h"

struct doc;
struct config_reservations {
        char *users;         /* ann@lab, *@lab, *; separated by commas; NULL: nobody */
        int64_t cpus;        /* in total, of one reservation; 0: no limit */
        int64_t duration_ms; /* of one reservation; 0: a day */
        /* from now until its beginning, and until the beginning of its last repetition; 0: 30 days */
        int64_t ahead_ms;
        uint32_t count; /* reservations of one user; 0: 10 */
};
/* `place` is a struct config_reservations, which is replaced. Returns 0, or -EINVAL with err that names
 * file and line. */
int config_reservations_read(void *place, const struct doc *d, struct err *err);
void config_reservations_deinit(struct config_reservations *r);
