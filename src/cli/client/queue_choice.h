/* queue_choice: which queues would take the jobs of a request, and why, as text for its report. */
#pragma once
#include "cli/client/submit.h"

/* Asks the server, which submits nothing, and appends a line for the first choice and a table of all queues.
 * To be called before the request is sent. Appends a line that says so if the server makes no quote for the
 * request, as for one that is too large. */
void queue_choice_ask(struct submit *s, struct buf *out);
/* Appends the presets of the server's settings that a request at the server was given. */
void queue_choice_presets(struct cli *cli, int64_t request, struct buf *out);
