#include "agent/session/receive.h"

#include <errno.h>

#include "agent/attempt/chirp.h"
#include "agent/attempt/exec.h"
#include "agent/attempt/streams.h"
#include "agent/credential/credentials.h"
#include "agent/queue/offers.h"
#include "agent/session/assign.h"
#include "agent/session/script.h"
#include "agent/transfer/file_requests.h"
#include "agent/transfer/spool.h"
#include "agent/transfer/stores.h"
#include "agent/transfer/userlog.h"

static struct str bytes_of(const ProtobufCBinaryData *b)
{
        return str_make((const char *)b->data, b->len);
}

static const unsigned char *sum_of(const ProtobufCBinaryData *b)
{
        return b->len == 32 ? b->data : NULL;
}

static void take_credential(struct agent *a, const Drover__Credential *m)
{
        credentials_given(a, &(struct credential_given){.request = m->request,
                                                        .part = m->part,
                                                        .name = m->name,
                                                        .type = m->type,
                                                        .error = m->error,
                                                        .data = bytes_of(&m->data),
                                                        .expires_ms = (int64_t)m->expires_ms,
                                                        .urls = m->urls,
                                                        .url_count = m->n_urls});
}

static void take_spool_data(struct agent *a, const Drover__SpoolData *m)
{
        spool_data(a, &(struct spool_piece){sum_of(&m->sha256), m->offset, m->size, bytes_of(&m->data),
                                            m->error});
}

static void take_spool_stored(struct agent *a, const Drover__SpoolStored *m)
{
        spool_stored(a, sum_of(&m->sha256), m->stored, m->complete, m->full, m->error);
}

static void take_userlog(struct agent *a, const Drover__UserLogWrite *m)
{
        userlog_write(
                a, &(struct userlog_lines){m->serial, m->owner, m->path, bytes_of(&m->text), m->maybe_there});
}

static void take_wishes(struct agent *a, const Drover__Wishes *m)
{
        unsigned wishes[OFFER_WISHES_MAX];
        size_t n = 0;

        for (size_t i = 0; i < m->n_wishes && n < OFFER_WISHES_MAX; i++)
                if (m->wishes[i] > DROVER__WISH__WISH_NONE && m->wishes[i] <= DROVER__WISH__WISH_LARGE_MEMORY)
                        wishes[n++] = m->wishes[i];
        offers_wish(a, m->queue, wishes, n);
}

#define RESERVATIONS_MAX 64u /* of one queue */

static void take_reserved(struct agent *a, const Drover__Reserved *m)
{
        for (size_t i = 0; i < a->queue_count; i++) {
                struct runner *runner = a->queues[i]->backend->runner;
                struct run_reservation all[RESERVATIONS_MAX];
                size_t n = 0;

                if (!runner->kind->reserve)
                        continue;
                for (size_t k = 0; k < m->n_reservations && n < RESERVATIONS_MAX; k++) {
                        const Drover__Reservation *r = m->reservations[k];

                        if (!strcmp(r->queue, a->queues[i]->config->name) &&
                            (r->cpus > 0 || r->maintenance) && r->end_ms > r->start_ms)
                                all[n++] = (struct run_reservation){r->id, r->start_ms, r->end_ms,
                                                                    r->maintenance ? 0 : r->cpus,
                                                                    r->maintenance};
                }
                runner->kind->reserve(runner, all, n);
        }
}

static void take_stores(struct agent *a, const Drover__Stores *m)
{
        MEM_CLEANUP struct store_told *v = mem_array(NULL, m->n_stores + 1, sizeof(*v));

        for (size_t i = 0; i < m->n_stores; i++) {
                const Drover__Store *s = m->stores[i];

                v[i] = (struct store_told){s->name, s->probe, s->space, s->prefixes, s->n_prefixes};
        }
        stores_told(a, v, m->n_stores);
}

static void take_streams_get(struct agent *a, const Drover__StreamsGet *m)
{
        streams_ask(a, &(struct streams_question){.serial = m->serial,
                                                  .request = m->request,
                                                  .member = m->member,
                                                  .fence = m->fence,
                                                  .exec = m->exec,
                                                  .wanted = {m->stdout_wanted, m->stderr_wanted},
                                                  .offset = {m->stdout_offset, m->stderr_offset},
                                                  .last = m->last,
                                                  .most = m->most,
                                                  .wait_ms = m->wait_ms});
}

static void take_exec(struct agent *a, const Drover__Exec *m)
{
        exec_start(a, &(struct exec_request){.serial = m->serial,
                                             .request = m->request,
                                             .member = m->member,
                                             .fence = m->fence,
                                             .number = m->exec,
                                             .argv = m->argv,
                                             .argc = m->n_argv,
                                             .input = m->input,
                                             .terminal = m->terminal,
                                             .rows = m->rows,
                                             .columns = m->columns,
                                             .term = m->term,
                                             .stays = m->stays});
}

static void take_exec_input(struct agent *a, const Drover__ExecInput *m)
{
        exec_take_input(a, &(struct exec_input){.serial = m->serial,
                                                .request = m->request,
                                                .member = m->member,
                                                .fence = m->fence,
                                                .number = m->exec,
                                                .offset = m->offset,
                                                .data = bytes_of(&m->data),
                                                .end = m->end,
                                                .rows = m->rows,
                                                .columns = m->columns});
}

static void take_chirp_reply(struct agent *a, const Drover__ChirpReply *m)
{
        chirp_answer(a, m->serial,
                     &(struct chirp_answer){.error = m->error < 4096 ? (int)m->error : EPROTO,
                                            .text = m->text,
                                            .data = bytes_of(&m->data),
                                            .size = m->size,
                                            .mode = m->mode,
                                            .changed = m->changed,
                                            .command = m->command,
                                            .stderr_bytes = bytes_of(&m->stderr_bytes),
                                            .over = m->over,
                                            .signaled = m->signaled,
                                            .exit_code = m->exit_code});
}

static void take_file_call(struct agent *a, const Drover__FileCall *m)
{
        const Drover__Chirp *c = m->call;

        if (c)
                file_request_begin(a, &(struct file_request){.serial = m->serial,
                                                             .owner = m->owner,
                                                             .folder = m->folder,
                                                             .call = {.op = (enum file_op)c->op,
                                                                      .name = str_of(c->name),
                                                                      .data = bytes_of(&c->data),
                                                                      .offset = c->offset,
                                                                      .length = c->length,
                                                                      .flags = c->flags,
                                                                      .mode = c->mode}});
}

void receive_message(struct agent *a, const Drover__ToAgent *m)
{
        switch (m->kind_case) {
        case DROVER__TO_AGENT__KIND_ASSIGN: assign_message(a, m->assign); break;
        case DROVER__TO_AGENT__KIND_GO: assign_go(a, m->go); break;
        case DROVER__TO_AGENT__KIND_CONTROL: assign_control(a, m->control); break;
        case DROVER__TO_AGENT__KIND_RESULT_ACK: assign_acked(a, m->result_ack); break;
        case DROVER__TO_AGENT__KIND_CHECKPOINT_ACK: assign_checkpoint_acked(a, m->checkpoint_ack); break;
        case DROVER__TO_AGENT__KIND_SCRIPT_GET: session_script(a, m->script_get); return;
        case DROVER__TO_AGENT__KIND_WISHES: take_wishes(a, m->wishes); break;
        case DROVER__TO_AGENT__KIND_EXEC: take_exec(a, m->exec); return;
        case DROVER__TO_AGENT__KIND_EXEC_INPUT: take_exec_input(a, m->exec_input); return;
        case DROVER__TO_AGENT__KIND_STREAMS_GET: take_streams_get(a, m->streams_get); return;
        case DROVER__TO_AGENT__KIND_CHIRP_REPLY: take_chirp_reply(a, m->chirp_reply); return;
        case DROVER__TO_AGENT__KIND_FILE_CALL: take_file_call(a, m->file_call); return;
        case DROVER__TO_AGENT__KIND_CREDENTIAL: take_credential(a, m->credential); break;
        case DROVER__TO_AGENT__KIND_STORES: take_stores(a, m->stores); break;
        case DROVER__TO_AGENT__KIND_RESERVED: take_reserved(a, m->reserved); break;
        case DROVER__TO_AGENT__KIND_SPOOL_DATA: take_spool_data(a, m->spool_data); break;
        case DROVER__TO_AGENT__KIND_SPOOL_STORED: take_spool_stored(a, m->spool_stored); break;
        case DROVER__TO_AGENT__KIND_USER_LOG_WRITE: take_userlog(a, m->user_log_write); return;
        default: break;
        }
        agent_turn_later(a);
}
