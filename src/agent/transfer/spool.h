/* spool: objects of the server's spool, in chunks: what was shipped with a submit, and outputs of jobs whose
 * submitter's folders are not ours. */
#pragma once
#include "agent/model/attempt.h"
#include "wire/drover.pb-c.h"

struct fetch;
void spool_fetch(struct agent *a, struct fetch *f);
void spool_data(struct agent *a, const Drover__SpoolData *m);
void spool_stored(struct agent *a, const Drover__SpoolStored *m);
void spool_session_lost(struct agent *a);
void spool_session_ready(struct agent *a);
void spool_open(struct agent *a);
void spool_close(struct agent *a);
void spool_forget(struct attempt *at); /* uploads */
/* Sends the files named in at->result.outputs, and then calls news->delivered. They are read from `paths`
 * (taken); or, when `data` (taken) is no -1, from there, each from where its `at` says. */
void spool_upload(struct attempt *at, char **paths, int data);
