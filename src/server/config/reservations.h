/* reservations: the section "reservations" of the settings: which users may set room aside for themselves,
 * and how much. Admins and operators always may. */
#pragma once
#include <stdint.h>

#include "base/err.h"

struct doc;
struct config_reservations {
        char *users;         /* ann@lab, *@lab, *; commas between; NULL: nobody */
        int64_t cpus;        /* of one reservation, in all; 0: any number */
        int64_t duration_ms; /* of one; 0: a day */
        int64_t ahead_ms; /* from now until its beginning, and until it comes for the last time; 0: 30 days */
        uint32_t count;   /* of one user's; 0: 10 */
};
/* `place` is a struct config_reservations, read anew. 0, or -EINVAL with err that names file and line. */
int config_reservations_read(void *place, const struct doc *d, struct err *err);
void config_reservations_deinit(struct config_reservations *r);
