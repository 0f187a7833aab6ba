#include "agent/transfer/file_requests.h"

#include <errno.h>

#include "agent/outbox/outbox.h"
#include "agent/transfer/stage.h"
#include "agent/transfer/stage_task.h"

#define UNDER_WAY_MAX 64u

static void refuse(struct agent *a, uint64_t serial, int r, const char *why)
{
        outbox_file_reply(a, serial, &(struct file_reply){.error = -r, .text = why});
}

void file_request_done(struct agent *a, uint64_t serial, const struct stage_work *w)
{
        BUF_CLEANUP struct buf packed = {0};
        struct file_answer said = {0};
        int r = w->result;
        const char *why = w->err.text;

        if (r == 0 && (stage_work_said(w, &packed) < 0 || !file_answer_unpack(buf_view(&packed), &said))) {
                r = -EPROTO;
                why = "the agent that sees the file has no answer";
        }
        if (r < 0)
                refuse(a, serial, r, why);
        else
                outbox_file_reply(a, serial,
                                  &(struct file_reply){.data = buf_view(&said.data),
                                                       .size = said.size,
                                                       .mode = said.mode,
                                                       .changed = said.changed});
        buf_deinit(&said.data);
}

void file_request_begin(struct agent *a, const struct file_request *m)
{
        struct err err = {""};
        struct users_entry user;
        int r = 0;

        if (a->users_path)
                r = users_find(&a->config, m->owner, &user, &err);
        else if (!users_own(&a->config, m->owner))
                r = err_set(&err, -EPERM, "the agent that sees the file does not run the owner's jobs");
        if (r == 0 && (*m->folder != '/' || !file_call_is_sane(&m->call)))
                r = err_set(&err, -EINVAL, "the call makes no sense");
        if (r == 0 && a->stages->file_calls >= UNDER_WAY_MAX)
                r = err_set(&err, -EAGAIN, "the agent that sees the file has too much to do");
        if (r == 0)
                stage_file_call(a, m, a->users_path ? &user : NULL);
        else
                refuse(a, m->serial, r, err.text);
}
