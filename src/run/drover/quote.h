/* quote: asks the other server when a step would begin. */
#pragma once
#include "run/runner.h"

struct remote;

/* Asks; the answer, or the reason for none, is delivered as an event. */
void remote_quote(struct remote *f, const struct run_spec *spec);
void remote_quotes_drop(struct remote *f); /* cancels calls in progress */
