#include "agent/model/checkpointing.h"

#include <stdlib.h>
#include <string.h>

#include "agent/model/expand.h"
#include "agent/model/input_names.h"

bool checkpoint_ended_so(const struct attempt *at, const struct step_result *r)
{
        const struct job_checkpointing *c = at->t->m->checkpointing;

        return c && (c->by_signal != 0) == (r->signaled != 0) && r->exit_code == c->code;
}

bool checkpoint_goes_home(const struct attempt *at, const struct step_result *r)
{
        const struct job_origin *o = at->t->m->origin;

        return o && *o->job && checkpoint_ended_so(at, r);
}

int checkpoint_hop(const struct attempt *at, struct buf *files, struct run_checkpoints *ret, struct err *err)
{
        const struct job_template *m = at->t->m;
        const struct job_checkpointing *c = m->checkpointing;
        int r = 0;

        for (size_t i = 0; c && i < c->file_count && r == 0; i++) {
                if (files->n)
                        buf_char(files, ',');
                r = expand_text(at, c->files[i], files, err);
        }
        *ret = (struct run_checkpoints){.files = buf_z(files),
                                        .when_evicted = m->keeps_when_evicted,
                                        .kill_signal = m->kill_signal,
                                        .vacate_ms = m->vacate_ms};
        if (c) {
                ret->made = true;
                ret->by_signal = c->by_signal;
                ret->code = c->code;
                ret->signal = c->signal;
        }
        return r;
}

void checkpoint_restore(struct attempt *at, const struct spool_ref *files, size_t count)
{
        at->checkpoint.restore = mem_array(NULL, count + 1, sizeof(*at->checkpoint.restore));
        for (size_t i = 0; i < count; i++) {
                struct spool_ref *to = &at->checkpoint.restore[at->checkpoint.restore_count];

                if (!files[i].sha256 || !shipped_name_valid(files[i].name))
                        continue;
                *to = files[i];
                to->name = mem_dupz(to->name);
                to->sha256 = (unsigned char *)mem_dup(to->sha256, 32);
                at->checkpoint.restore_count++;
        }
}

bool checkpoint_restores(const struct attempt *at, const char *name)
{
        for (size_t i = 0; i < at->checkpoint.restore_count; i++)
                if (!strcmp(at->checkpoint.restore[i].name, name))
                        return true;
        return false;
}

void checkpoint_free(struct attempt *at)
{
        for (size_t i = 0; i < at->checkpoint.restore_count; i++) {
                free(at->checkpoint.restore[i].name);
                free(at->checkpoint.restore[i].sha256);
        }
        free(at->checkpoint.restore);
}
