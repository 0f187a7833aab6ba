#include "agent/transfer/file_requests.h"

#include <errno.h>

#include "agent/outbox/outbox.h"
#include "agent/transfer/stage.h"
#include "agent/transfer/stage_task.h"

#define UNDER_WAY_MAX 64u

static void request_answer(struct agent *a, uint64_t serial, int r, const struct file_answer *said,
                           const char *why)
{
        Drover__ChirpReply m = DROVER__CHIRP_REPLY__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        m.serial = serial;
        m.error = r < 0 ? (uint32_t)-r : 0;
        m.text = (char *)(uintptr_t)(r < 0 ? why : "");
        if (r == 0) {
                m.data.data = (uint8_t *)said->data.p;
                m.data.len = said->data.n;
                m.size = said->size;
                m.mode = said->mode;
                m.changed = said->changed;
        }
        to.kind_case = DROVER__TO_SERVER__KIND_FILE_REPLY;
        to.file_reply = &m;
        outbox_send(a, &to);
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
        request_answer(a, serial, r, &said, why);
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
                request_answer(a, m->serial, r, NULL, err.text);
}
