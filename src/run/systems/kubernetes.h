/* kubernetes: declarations shared by the requests to Kubernetes' API (kubernetes.c) and the parsers of its
 * answers (kubernetes_answers.c).
 *
 * Answers become lines of fields with "|" between them; the first field is the kind of the line. The
 * functions are those of struct batch_system (batch.h), which is their contract.
 */
#pragma once
#include "run/batch/batch.h"

#define KUBERNETES_GPU "nvidia.com/gpu"

extern const struct request_service kubernetes_service;
/* The answer to an apply is the line "applied|NAME". */
void kubernetes_status_read(struct str out, batch_take_fn *take, void *arg);
/* Returns the version of the list of Jobs in a status answer; empty: it has none. */
struct str kubernetes_version(struct str out);
void kubernetes_past_read(struct str out, batch_take_fn *take, void *arg);
void kubernetes_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c);
