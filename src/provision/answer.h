/* answer: parses the output of a site's provisioner program (drover-provisioner(7)).
 *
 * The program passes on data from a provider, which is not trusted: texts are cut to PROVISIONER_TEXT_MAX,
 * and an answer counts as failed that is incomplete, too long, or has more than PROVISIONER_INSTANCES_MAX
 * lines.
 */
#pragma once
#include "base/arena.h"
#include "base/format/json_read.h"
#include "provision/provisioner.h"

enum verb { LIST, START, STOP, DESCRIBE };
/* An answer while it is parsed. */
struct reading {
        struct provisioner_answer a; /* its lists are set when answer_read returns */
        struct provisioner_instance *instances;
        struct provisioner_offer *offers;
        size_t instance_cap, offer_cap;
        struct arena texts; /* of the answer */
        bool ended;
};

/* Parses an answer into r->a. status: exit status from waitpid; both texts are borrowed until
 * reading_deinit. *r must be zero before. */
void answer_read(struct reading *r, enum verb verb, int status, struct str out, struct str errors);
void reading_deinit(struct reading *r);
