/* bank: the section "bank" of the settings: what jobs cost, and what happens to jobs that cannot pay. */
#pragma once
#include "core/core.h"

struct doc;
struct config_bank {
        bool on;               /* the section exists */
        struct core_bank core; /* `rates` points into this struct */
        struct config_bank_rate {
                char *place, *account, *charge; /* NULL: all */
        } * rates;
        size_t rate_count;
};
/* `place` is a struct config_bank, which is replaced. Returns 0, or -EINVAL with err that names file and
 * line. */
int config_bank_read(void *place, const struct doc *d, struct err *err);
void config_bank_deinit(struct config_bank *b);
/* Configures a new core. Does nothing without the section. Returns 0; CORE_INVALID with err. */
int config_bank_apply(const struct config_bank *b, struct core *c, struct err *err);
/* Calls fn for each place that a rate names and the bank's register of machines does not know. */
void config_bank_unknown_places(const struct config_bank *b, const struct core *c,
                                void (*fn)(const char *place));
