#include "agent/model/checkpointing.h"

#include <stdlib.h>
#include <string.h>

#include "agent/model/expand.h"
#include "agent/model/input_names.h"

bool checkpoint_ended_so(const struct attempt *at, const struct step_result *r)
{
        const Drover__Checkpointing *c = at->t->m->checkpointing;
        return c && (c->by_signal != 0) == (r->signaled != 0) && r->exit_code == c->code;
}

bool checkpoint_goes_home(const struct attempt *at, const struct step_result *r)
{
        const Drover__Origin *o = at->t->m->origin;
        return o && *o->job && checkpoint_ended_so(at, r);
}

int checkpoint_hop(const struct attempt *at, struct buf *files, struct run_checkpoints *ret, struct err *err)
{
        const Drover__Template *m = at->t->m;
        const Drover__Checkpointing *c = m->checkpointing;
        int r = 0;
        for (size_t i = 0; c && i < c->n_files && r == 0; i++) {
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

void checkpoint_restore(struct attempt *at, const Drover__Item *item)
{
        at->checkpoint.restore = mem_array(NULL, item->n_checkpoint + 1, sizeof(*at->checkpoint.restore));
        for (size_t i = 0; i < item->n_checkpoint; i++) {
                const Drover__SpoolRef *from = item->checkpoint[i];
                if (from->sha256.len != 32 || !shipped_name_valid(from->name))
                        continue;
                Drover__SpoolRef *to = &at->checkpoint.restore[at->checkpoint.restore_count++];
                drover__spool_ref__init(to);
                to->name = mem_dupz(from->name);
                to->sha256.data = (uint8_t *)mem_dup(from->sha256.data, 32);
                to->sha256.len = 32;
                to->size = from->size;
                to->executable = from->executable;
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
                free(at->checkpoint.restore[i].sha256.data);
        }
        free(at->checkpoint.restore);
}
