#include "server/agents/command.h"

#include <errno.h>

#include "base/format/name.h"
#include "base/job/file_id.h"
#include "base/pack.h"
#include "server/agents/agents.h"
#include "server/agents/inflow.h"

/* Agents' counts are summed; with this bound no sum overflows. */
#define AMOUNT_MAX  (1ull << 50)
#define ENERGY_MAX  (1ull << 60) /* microjoules: 300 MWh */
#define SIGNAL_MAX  64
#define ARENA_LEAST 1024 /* bytes of the smallest arena that is not empty */

struct command *command_new(enum command_kind kind, uint64_t session, struct str agent)
{
        struct command *c = mem_new(struct command);

        c->kind = kind;
        c->session = session;
        c->task.run = agents_hear;
        c->task.drop = (void (*)(struct task *))command_free;
        c->agent = arena_str(&c->arena, agent);
        return c;
}

void command_free(struct command *c)
{
        if (!c)
                return;
        for (size_t i = 0; i < c->attempt_count; i++) {
                struct set *members = (struct set *)c->attempts[i].members;

                set_deinit(members);
                free(members);
        }
        free(c->attempts);
        arena_deinit(&c->arena);
        if (c->inflow)
                inflow_give(c->inflow, c->counted);
        free(c);
}

bool command_count(struct command *c, struct inflow *f)
{
        c->inflow = f;
        c->counted = sizeof(*c) + ARENA_LEAST + c->arena.used;
        for (size_t i = 0; i < c->attempt_count; i++)
                c->counted += sizeof(*c->attempts) + sizeof(struct set) + set_bytes(c->attempts[i].members);
        return !inflow_take(f, c->counted);
}

struct command *command_take(struct command *c)
{
        struct command *taken = mem_new(struct command);

        *taken = *c;
        taken->task.mail.next = NULL;
        c->arena = (struct arena){0};
        c->attempts = NULL;
        c->attempt_count = 0;
        c->inflow = NULL;
        return taken;
}

struct str command_text(struct command *c, const char *z)
{
        return arena_str(&c->arena, str_of(z));
}

/* Copies a text for people, cut at max. */
static struct str words(struct command *c, const char *z, size_t max)
{
        return arena_str(&c->arena, str_head(str_of(z), max));
}

static struct str bytes(struct command *c, ProtobufCBinaryData d)
{
        return arena_str(&c->arena, str_make((const char *)d.data, d.len));
}

/* Adds attempts to the command; called for both lists of an inventory. */
static int add_attempts(struct command *c, Drover__Attempts *const *list, size_t count, struct err *err)
{
        uint64_t members = 0;

        if (count > COMMAND_ATTEMPTS_MAX)
                return err_set(err, -E2BIG, "too many attempts in one message");
        for (size_t i = 0; i < c->attempt_count; i++)
                members += set_count(c->attempts[i].members);
        if (count == 0)
                return 0;
        c->attempts = mem_array(c->attempts, c->attempt_count + count, sizeof(*c->attempts));
        for (size_t i = 0; i < count; i++) {
                struct set *set = mem_new(struct set);

                c->attempts[c->attempt_count++] =
                        (struct core_attempts){list[i]->request, list[i]->fence, set};
                for (size_t k = 0; k < list[i]->n_members; k++) {
                        const Drover__Range *r = list[i]->members[k];

                        members += r->count;
                        if (members > COMMAND_MEMBERS_MAX)
                                return err_set(err, -E2BIG, "too many members in one message");
                        if ((uint64_t)r->first + r->count > UINT32_MAX)
                                return err_set(err, -ERANGE, "a range of members passes the end");
                        set_add_range(set, r->first, (uint64_t)r->first + r->count);
                }
        }
        return 0;
}

static struct str pack_outputs(struct command *c, const Drover__JobResult *j)
{
        BUF_CLEANUP struct buf out = {0};
        size_t n = 0;

        for (size_t i = 0; i < j->n_outputs; i++)
                n += j->outputs[i]->sha256.len == 32;
        if (n == 0)
                return STR_NONE;
        pack_u64(&out, n);
        for (size_t i = 0; i < j->n_outputs; i++) {
                const Drover__OutputRef *o = j->outputs[i];

                if (o->sha256.len != 32)
                        continue;
                pack_str(&out, str_of(o->name));
                buf_add(&out, o->sha256.data, 32);
                pack_u64(&out, o->size);
                pack_u64(&out, o->mode);
        }
        return arena_str(&c->arena, buf_view(&out));
}

/* Returns the step whose result is the job's: the last one, because no step follows a failed one unless
 * its failure is ignored. */
static const Drover__StepResult *deciding_step(const Drover__JobResult *j)
{
        return j->n_steps ? j->steps[j->n_steps - 1] : NULL;
}

static int64_t amount(uint64_t said)
{
        return (int64_t)(said < AMOUNT_MAX ? said : AMOUNT_MAX);
}

static void command_set_steps(struct command *c, const Drover__JobResult *j, struct command_tails *to)
{
        if (j->n_steps < 2)
                return;
        to->steps = arena_alloc(&c->arena, j->n_steps * sizeof(*to->steps));
        for (size_t i = 0; i < j->n_steps && i < COMMAND_STEPS_MAX; i++) {
                const Drover__StepResult *s = j->steps[i];

                to->steps[to->step_count++] = (struct command_step){
                        .signaled = s->signaled,
                        .exit_code = s->exit_code,
                        .started_ms = amount(s->started_ms),
                        .ended_ms = amount(s->ended_ms),
                        .printed = {(uint64_t)amount(s->stdout_end), (uint64_t)amount(s->stderr_end)}};
        }
}

static struct command_tails tails_of(struct command *c, const Drover__JobResult *j)
{
        const ProtobufCBinaryData said[2] = {j->stdout_tail, j->stderr_tail};
        const uint64_t size[2] = {j->stdout_size, j->stderr_size};
        struct command_tails t = {0};

        command_set_steps(c, j, &t);
        for (int k = 0; k < 2; k++) {
                size_t cut = said[k].len > COMMAND_STREAM_MAX ? said[k].len - COMMAND_STREAM_MAX : 0;

                t.bytes[k] =
                        arena_str(&c->arena, str_make((const char *)said[k].data + cut, said[k].len - cut));
                t.size[k] = (uint64_t)amount(size[k] > said[k].len ? size[k] : said[k].len);
        }
        return t;
}

/* Returns the outputs that have a checksum and a valid URL. */
static struct command_sent sent_of(struct command *c, const Drover__JobResult *j)
{
        struct command_sent s = {.files = arena_alloc(&c->arena, (j->n_sent + 1) * sizeof(*s.files))};

        for (size_t i = 0; i < j->n_sent; i++) {
                const Drover__OutputRef *o = j->sent[i];
                struct command_sent_file *f = &s.files[s.count];

                if (o->sha256.len != 32 || !name_is_line(str_of(o->name), FILE_URL_MAX))
                        continue;
                f->url = command_text(c, o->name);
                f->size = (uint64_t)amount(o->size);
                memcpy(f->sha256, o->sha256.data, 32);
                s.count++;
        }
        return s;
}

static int add_results(struct command *c, Drover__JobResult *const *list, size_t count, struct err *err)
{
        struct command_results *to = &c->results;

        to->items = arena_alloc(&c->arena, (count + 1) * sizeof(*to->items));
        to->tails = arena_alloc(&c->arena, (count + 1) * sizeof(*to->tails));
        to->sent = arena_alloc(&c->arena, (count + 1) * sizeof(*to->sent));
        for (size_t i = 0; i < count; i++) {
                const Drover__JobResult *j = list[i];
                const Drover__StepResult *step = deciding_step(j);

                if ((unsigned)j->outcome > CORE_OUTCOME_LOST)
                        return err_set(err, -EPROTO, "a result has an unknown outcome");
                if (step && step->signaled && (step->exit_code < 1 || step->exit_code > SIGNAL_MAX))
                        return err_set(err, -EPROTO, "a result has the signal %d, which does not exist",
                                       step->exit_code);
                to->tails[to->count] = tails_of(c, j);
                to->sent[to->count] = sent_of(c, j);
                to->items[to->count++] = (struct core_result){
                        .request = j->request,
                        .member = j->member,
                        .fence = j->fence,
                        .outcome = (enum core_outcome)j->outcome,
                        .signaled = step && step->signaled,
                        .exit_code = step ? step->exit_code : 0,
                        .started_ms = amount(j->started_ms),
                        .ended_ms = amount(j->ended_ms),
                        .cpu_user_ms = amount(j->cpu_user_ms),
                        .cpu_system_ms = amount(j->cpu_system_ms),
                        .memory_peak_bytes = (uint64_t)amount(j->memory_peak_bytes),
                        .bytes_in = (uint64_t)amount(j->bytes_in),
                        .bytes_out = (uint64_t)amount(j->bytes_out),
                        .bytes_freed = (uint64_t)amount(j->bytes_freed),
                        .energy_uj = j->energy_uj < ENERGY_MAX ? j->energy_uj : ENERGY_MAX,
                        .hold_code = (int32_t)j->hold_code,
                        .hold_subcode = j->hold_subcode,
                        .reason = words(c, j->reason, COMMAND_REASON_MAX),
                        .outputs = pack_outputs(c, j),
                        .checkpoint = j->checkpoint,
                };
        }
        return 0;
}

static int set_offer(struct command *c, const Drover__Offer *o, struct err *err)
{
        if (!name_is_queue(str_of(o->queue)))
                return err_set(err, -EPROTO, "an offer of a queue whose name is not " NAME_QUEUE_IS);
        if (o->n_owners > COMMAND_OWNERS_MAX)
                return err_set(err, -E2BIG, "an offer with more than %u owners", COMMAND_OWNERS_MAX);
        for (size_t i = 0; i < o->n_owners; i++)
                if (!name_is_line(str_of(o->owners[i]), COMMAND_REASON_MAX))
                        return err_set(err, -EPROTO, "an offer with an owner that is no line of text");
        c->offer = (struct command_offer){
                .queue = command_text(c, o->queue),
                .ad = command_text(c, o->ad),
                .serial = o->serial,
                .jobs_max = o->jobs_max,
                .own_users = o->own_users,
                .hands_on = o->hands_on,
                .owners = arena_alloc(&c->arena, (o->n_owners + 1) * sizeof(*c->offer.owners)),
        };
        for (size_t i = 0; i < o->n_owners; i++)
                c->offer.owners[c->offer.owner_count++] = command_text(c, o->owners[i]);
        for (size_t i = 0, n = 0; i < o->n_wishes && n < CORE_WISHES_MAX; i++)
                if (o->wishes[i] > DROVER__WISH__WISH_NONE && o->wishes[i] <= DROVER__WISH__WISH_LARGE_MEMORY)
                        c->offer.wishes[n++] = (enum core_wish)o->wishes[i];
        return 0;
}

static int set_hash(unsigned char to[32], ProtobufCBinaryData d, struct err *err)
{
        if (d.len != 32)
                return err_set(err, -EPROTO, "a checksum is not 32 bytes long");
        memcpy(to, d.data, 32);
        return 0;
}

static int set_spool_read(struct command *c, const Drover__SpoolRead *r, struct err *err)
{
        c->spool_read = (struct command_spool_read){r->request, r->offset, r->length};
        return set_hash(c->spool_read.sha256, r->sha256, err);
}

static int set_spool_write(struct command *c, const Drover__SpoolWrite *w, struct err *err)
{
        c->spool_write = (struct command_spool_write){
                .request = w->request,
                .offset = w->offset,
                .member = w->member,
                .fence = w->fence,
                .data = bytes(c, w->data),
                .last = w->last,
        };
        return set_hash(c->spool_write.sha256, w->sha256, err);
}

static void set_cache_delta(struct command *c, const Drover__CacheDelta *d)
{
        struct command_cache_delta *to = &c->cache_delta;

        to->full = d->full;
        to->added = arena_alloc(&c->arena, (d->n_added + 1) * sizeof(*to->added));
        for (size_t i = 0; i < d->n_added; i++)
                to->added[to->added_count++] =
                        (struct core_file){d->added[i]->file, (uint64_t)amount(d->added[i]->size)};
        to->gone_count = d->n_removed;
        to->gone = arena_alloc(&c->arena, (d->n_removed + 1) * sizeof(*to->gone));
        if (d->n_removed)
                memcpy(to->gone, d->removed, d->n_removed * sizeof(*to->gone));
}

static void set_links(struct command *c, const Drover__Links *l)
{
        c->links.items = arena_alloc(&c->arena, (l->n_links + 1) * sizeof(*c->links.items));
        for (size_t i = 0; i < l->n_links; i++)
                c->links.items[c->links.count++] = (struct core_link){
                        .store = command_text(c, l->links[i]->store),
                        .latency_us = (uint64_t)amount(l->links[i]->latency_us),
                        .bytes_per_s = (uint64_t)amount(l->links[i]->bytes_per_s),
                        .bytes_per_s_out = (uint64_t)amount(l->links[i]->bytes_per_s_out),
                        .down_ms = l->links[i]->down_ms,
                        .down_why = command_text(c, l->links[i]->down_why),
                        .measured_ms = l->links[i]->measured_ms,
                        .free_known = l->links[i]->free_known,
                        .free_bytes = l->links[i]->free_bytes,
                };
}

static void set_locations(struct command *c, const Drover__Whereabouts *m)
{
        c->locations.items = arena_alloc(&c->arena, (m->n_attempts + 1) * sizeof(*c->locations.items));
        for (size_t i = 0; i < m->n_attempts; i++) {
                const Drover__Whereabout *w = m->attempts[i];

                c->locations.items[c->locations.count++] =
                        (struct attempt_location){.request = w->request,
                                                  .member = w->member,
                                                  .fence = w->fence,
                                                  .runner = command_text(c, w->runner),
                                                  .native = command_text(c, w->native),
                                                  .word = command_text(c, w->word),
                                                  .said = command_text(c, w->said),
                                                  .doing = command_text(c, w->doing),
                                                  .doing_since_ms = w->doing_since_ms,
                                                  .doing_bytes = w->doing_bytes,
                                                  .doing_bytes_all = w->doing_bytes_all,
                                                  .hops = bytes(c, w->hops)};
        }
}

static void set_streams(struct command *c, const Drover__Streams *m)
{
        c->streams = (struct command_streams){
                .serial = m->serial,
                .offset = {(uint64_t)amount(m->stdout_offset), (uint64_t)amount(m->stderr_offset)},
                .bytes = {str_head(bytes(c, m->stdout_bytes), COMMAND_STREAM_MAX),
                          str_head(bytes(c, m->stderr_bytes), COMMAND_STREAM_MAX)},
                .over = m->over,
                .unknown = m->unknown,
                .error = words(c, m->error, COMMAND_REASON_MAX),
                .signaled = m->signaled,
                .exit_code = m->exit_code,
                .input_next = m->input_next,
                .cpu_ms = amount(m->cpu_ms),
                .memory_bytes = amount(m->memory_bytes),
        };
}

static int set_chirp(struct command *c, const Drover__Chirp *m, struct err *err)
{
        if (m->data.len > COMMAND_CHIRP_MAX || m->length > COMMAND_CHIRP_MAX)
                return err_set(err, -E2BIG, "a call of more than %u bytes", COMMAND_CHIRP_MAX);
        c->chirp = (struct command_chirp){.serial = m->serial,
                                          .request = m->request,
                                          .member = m->member,
                                          .fence = m->fence,
                                          .op = (uint32_t)m->op,
                                          .name = words(c, m->name, COMMAND_REASON_MAX),
                                          .data = bytes(c, m->data),
                                          .offset = (uint64_t)amount(m->offset),
                                          .length = m->length,
                                          .flags = m->flags,
                                          .mode = m->mode,
                                          .node = m->node,
                                          .command = m->command,
                                          .stderr_offset = (uint64_t)amount(m->stderr_offset)};
        return 0;
}

static int set_chirp_reply(struct command *c, const Drover__ChirpReply *m, struct err *err)
{
        if (m->data.len > COMMAND_CHIRP_MAX)
                return err_set(err, -E2BIG, "an answer of more than %u bytes", COMMAND_CHIRP_MAX);
        c->chirp_reply = (struct command_chirp_reply){.serial = m->serial,
                                                      .data = bytes(c, m->data),
                                                      .size = (uint64_t)amount(m->size),
                                                      .mode = m->mode,
                                                      .changed = m->changed,
                                                      .error = m->error,
                                                      .text = words(c, m->text, COMMAND_REASON_MAX)};
        return 0;
}

static int command_fill(struct command *c, const Drover__ToServer *m, struct err *err)
{
        int r;

        switch (m->kind_case) {
        case DROVER__TO_SERVER__KIND_OFFER: c->kind = COMMAND_OFFER; return set_offer(c, m->offer, err);
        case DROVER__TO_SERVER__KIND_WITHDRAW:
                c->kind = COMMAND_WITHDRAW;
                c->withdraw = command_text(c, m->withdraw->queue);
                return 0;
        case DROVER__TO_SERVER__KIND_ACCEPT:
                c->kind = COMMAND_ACCEPT;
                return add_attempts(c, m->accept->attempts, m->accept->n_attempts, err);
        case DROVER__TO_SERVER__KIND_REFUSE:
                c->kind = COMMAND_REFUSE;
                c->refuse = (struct command_refuse){words(c, m->refuse->reason, COMMAND_REASON_MAX),
                                                    m->refuse->hold};
                return add_attempts(c, m->refuse->attempts, m->refuse->n_attempts, err);
        case DROVER__TO_SERVER__KIND_STARTED:
                c->kind = COMMAND_STARTED;
                c->started_ms = amount(m->started->at_ms);
                return add_attempts(c, m->started->attempts, m->started->n_attempts, err);
        case DROVER__TO_SERVER__KIND_RESULT:
                c->kind = COMMAND_RESULT;
                return add_results(c, m->result->jobs, m->result->n_jobs, err);
        case DROVER__TO_SERVER__KIND_RENEW: c->kind = COMMAND_RENEW; return 0;
        case DROVER__TO_SERVER__KIND_INVENTORY:
                c->kind = COMMAND_INVENTORY;
                r = add_attempts(c, m->inventory->running, m->inventory->n_running, err);
                return r ? r : add_attempts(c, m->inventory->finished, m->inventory->n_finished, err);
        case DROVER__TO_SERVER__KIND_SPOOL_READ:
                c->kind = COMMAND_SPOOL_READ;
                return set_spool_read(c, m->spool_read, err);
        case DROVER__TO_SERVER__KIND_SPOOL_WRITE:
                c->kind = COMMAND_SPOOL_WRITE;
                return set_spool_write(c, m->spool_write, err);
        case DROVER__TO_SERVER__KIND_CACHE_DELTA:
                c->kind = COMMAND_CACHE_DELTA;
                set_cache_delta(c, m->cache_delta);
                return 0;
        case DROVER__TO_SERVER__KIND_LINKS:
                c->kind = COMMAND_LINKS;
                set_links(c, m->links);
                return 0;
        case DROVER__TO_SERVER__KIND_CHECKPOINT:
                c->kind = COMMAND_CHECKPOINT;
                return add_results(c, &m->checkpoint, 1, err);
        case DROVER__TO_SERVER__KIND_CREDENTIAL_GET:
                c->kind = COMMAND_CREDENTIAL_GET;
                c->credential_get =
                        (struct command_credential_get){m->credential_get->request, m->credential_get->part,
                                                        command_text(c, m->credential_get->name)};
                return 0;
        case DROVER__TO_SERVER__KIND_SCRIPT:
                c->kind = COMMAND_SCRIPT_TEXT;
                c->script = (struct command_script){m->script->serial,
                                                    words(c, m->script->text, COMMAND_SCRIPT_MAX),
                                                    words(c, m->script->error, COMMAND_REASON_MAX)};
                return 0;
        case DROVER__TO_SERVER__KIND_CHIRP: c->kind = COMMAND_CHIRP; return set_chirp(c, m->chirp, err);
        case DROVER__TO_SERVER__KIND_FILE_REPLY:
                c->kind = COMMAND_FILE_REPLY;
                return set_chirp_reply(c, m->file_reply, err);
        case DROVER__TO_SERVER__KIND_STREAMS:
                c->kind = COMMAND_STREAMS;
                set_streams(c, m->streams);
                return 0;
        case DROVER__TO_SERVER__KIND_WHEREABOUTS:
                c->kind = COMMAND_LOCATIONS;
                set_locations(c, m->whereabouts);
                return 0;
        case DROVER__TO_SERVER__KIND_USER_LOG_WRITTEN:
                c->kind = COMMAND_USER_LOG_WRITTEN;
                c->log_written = (struct command_log_written){
                        .serial = m->user_log_written->serial,
                        .error = words(c, m->user_log_written->error, COMMAND_REASON_MAX),
                        .again = m->user_log_written->again,
                        .added = m->user_log_written->added,
                };
                return 0;
        default: return err_set(err, -EPROTO, "a message that is not expected here");
        }
}

struct command *command_from(const Drover__ToServer *m, uint64_t session, struct str agent, struct err *err)
{
        struct command *c = command_new(COMMAND_GONE, session, agent);

        if (command_fill(c, m, err) == 0)
                return c;
        command_free(c);
        return NULL;
}
