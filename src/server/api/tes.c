/* /ga4gh/tes/v1: the Task Execution Service of the GA4GH, 1.1.0. A task is a request of one job with the
 * attribute TES_ATTRIBUTE. jdl/tes defines what a task means; this file has the calls. Creating a task is
 * a submit; a task is shown from the queue or from history, whichever has the job.
 *
 * A listing has first the tasks in the queue, oldest first, and then those in history, latest first. Its
 * page tokens say where the next page begins: q7 in the queue, h123 in history. A task that ends between
 * two pages may be in both, but is never missing, because it is durable in history before history is read. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/format/hex.h"
#include "base/system/clock.h"
#include "core/query.h"
#include "jdl/form/form_json.h"
#include "jdl/tes/tes.h"
#include "server/api/jobs/jobs.h"
#include "server/api/routes.h"
#include "server/api/submit/submit.h"
#include "server/files/holdings.h"
#include "server/files/objects.h"
#include "server/files/tails.h"
#include "spool/spool.h"

#define PAGE_DEFAULT 256
#define PAGE_MAX     2047
#define PAGE_FULL    128              /* tasks in a page with their output, which is 128 KiB for each */
#define PAGE_BYTES   (4u << 20)       /* size of its tasks' texts at which a page ends */
#define ARENA_BYTES  (4 * PAGE_BYTES) /* and of all texts that were looked at for it */
/* history rows read for a page; the page may then be short, and has a next one */
#define LOOKED_MAX 20000
#define PAGE_NS    500000000 /* processor time of the reader's thread at which a page ends likewise */
#define SLICE_NS   4000000
#define TAGS_MAX   64
#define NAMES      STR(TES_ATTRIBUTE ",RemoveReason")

static void tes_reply(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

/* ---- service info */

void api_tes_service(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};
        const char *key;

        json_open(&j, '{');
        BUF_CLEANUP struct buf text = {0};
        buf_printf(&text, "org.drover.%s", s->uuid);
        json_kstr(&j, "id", buf_view(&text));
        json_kstrz(&j, "name", "Drover");
        json_kstrz(&j, "description", "A scheduler of schedulers; its tasks are jobs");
        json_kstrz(&j, "version", DROVER_VERSION);
        json_key(&j, "type");
        json_open(&j, '{');
        json_kstrz(&j, "group", "org.ga4gh");
        json_kstrz(&j, "artifact", "tes");
        json_kstrz(&j, "version", "1.1.0");
        json_close(&j, '}');
        json_key(&j, "organization");
        json_open(&j, '{');
        json_kstrz(&j, "name", s->config.domain);
        buf_reset(&text);
        buf_printf(&text, "https://%s/", s->config.domain);
        json_kstr(&j, "url", buf_view(&text));
        json_close(&j, '}');
        json_key(&j, "storage");
        json_open(&j, '[');
        json_close(&j, ']');
        json_key(&j, "tesResources_backend_parameters");
        json_open(&j, '[');
        for (size_t i = 0; (key = tes_backend_key(i)); i++)
                json_strz(&j, key);
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

/* ---- creation */

struct create {
        json_t *doc;
        struct tes_task task;
        struct form_file *files; /* the contents of the task's files */
        struct spool_finish *made;
        char (*uploads)[UUID_TEXT];
};

static void create_free(void *arg)
{
        struct create *x = arg;

        json_decref(x->doc);
        tes_task_deinit(&x->task);
        free(x->files);
        free(x->made);
        free(x->uploads);
        free(x);
}

static void created(struct call *c, uint64_t id)
{
        struct json j = {.out = &c->out};
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64, id);
        json_open(&j, '{');
        json_kstrz(&j, "id", text);
        json_close(&j, '}');
        call_reply(c);
}

/* I/O thread: submits the job. */
static void submit(struct server *s, struct call *c)
{
        struct create *x = c->state;
        const struct form_body body = {.spooled = x->files, .spooled_count = x->task.content_count};
        BUF_CLEANUP struct buf text = {0};
        json_t *doc;

        (void)s;
        form_write_json(&text, &x->task.form, &body);
        doc = json_loadb(text.p, text.n, 0, NULL);
        create_free(x);
        c->state = NULL;
        if (doc)
                submit_document(c, doc, created);
        else
                call_fail(c, 400, "bad_request", "the task has text in it that is not UTF-8");
}

/* Core thread: makes the caller the owner of the contents. */
static void own(struct server *s, struct call *c)
{
        struct create *x = c->state;

        if (turn_full(s->turn)) {
                call_fail(c, 503, "disk_full",
                          "the server's disk is full: no new work is accepted until there is space");
                return;
        }
        for (size_t i = 0; i < x->task.content_count; i++)
                objects_uploaded(s, str_of(c->who), str_of(x->uploads[i]), x->made[i].hash, x->made[i].size);
        call_io(c, submit);
}

static int upload(struct server *s, struct call *c, const char *id, struct str text, struct err *err)
{
        struct spool *spool = objects_spool(s);
        uint64_t size = 0;
        int r = holdings_check(objects_holdings(s), str_of(c->who), text.n, err);

        if (r == 0)
                r = spool_upload_begin(spool, id, str_of(c->who), &size, err);
        if (r == 0 && text.n)
                r = spool_upload_write(spool, id, 0, text, &size, err);
        return r;
}

/* Reader thread: stores the contents as files in the spool. */
static void spool_contents(struct server *s, struct call *c)
{
        struct create *x = c->state;
        size_t n = x->task.content_count, begun = 0;
        struct err err = {""};
        int r = 0;

        x->files = mem_array(NULL, n, sizeof(*x->files));
        x->made = mem_array(NULL, n, sizeof(*x->made));
        x->uploads = mem_array(NULL, n, sizeof(*x->uploads));
        for (; begun < n && r == 0; begun++) {
                uuid_new(x->uploads[begun]);
                x->made[begun] = (struct spool_finish){.id = x->uploads[begun]};
                r = upload(s, c, x->uploads[begun], x->task.contents[begun].text, &err);
        }
        if (r == 0)
                spool_finish(objects_spool(s), x->made, n);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = x->made[i].result;
                err = x->made[i].err;
                x->files[i] = (struct form_file){
                        .name = x->task.contents[i].name, .sha256 = x->made[i].hash, .size = x->made[i].size};
        }
        if (r == 0) {
                call_core(c, own);
                return;
        }
        for (size_t i = 0; i < begun; i++)
                spool_upload_drop(objects_spool(s), x->uploads[i]);
        if (r == SPOOL_FULL)
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
        else if (r > 0)
                call_fail(c, 507, "over_limit", "/inputs: the contents cannot be kept: %s", err.text);
        else
                call_fail_err(c, 500, "spool", &err);
}

void api_tes_create(struct server *s, struct call *c)
{
        json_t *doc = call_json(c);
        struct create *x;
        struct err err = {""};
        int r;

        if (!doc)
                return;
        x = call_state(c, sizeof(*x), create_free);
        x->doc = doc;
        r = tes_read(doc, clock_wall_ms() / 1000, &x->task, &err);
        if (r != 0)
                call_fail_err(c, r == -E2BIG ? 413 : 400, r == -E2BIG ? "too_large" : "bad_task", &err);
        else if (x->task.content_count)
                call_reader(c, spool_contents);
        else
                submit(s, c);
}

/* ---- views */

struct shown {
        struct row row;
        bool is_tail;
        struct tail_read tail;
};
struct show {
        enum tes_view view;
        bool one; /* one task, not a listing */
        uint64_t id;
        /* for a listing */
        struct str name_prefix, keys[TAGS_MAX], values[TAGS_MAX];
        size_t tag_count;
        bool has_state;
        enum tes_state state;
        uint64_t limit;
        bool in_history;
        /* where the next page continues: the request in the queue, the row in history */
        uint64_t after, before;
        int64_t end_ns; /* thread time at which the page ends */
        bool more;
        size_t looked, bytes;
        struct past *past;
        struct call *call;

        struct shown *tasks;
        size_t count, chosen; /* chosen: of the queue, those that were compared with the filter already */
};

static void show_free(void *arg)
{
        struct show *x = arg;

        for (size_t i = 0; i < x->count; i++)
                tail_read_deinit(&x->tasks[i].tail);
        free(x->tasks);
        free(x);
}

/* Reads a row's ad. *ret_kept belongs to the caller, and is NULL if the job is not a task; *ret_removed,
 * the reason of the removal, is in the arena. */
static void read_ad(const struct row *r, struct arena *a, json_t **ret_kept, struct str *ret_removed)
{
        json_t *ad = json_loadb(r->ad.p ? r->ad.p : "", r->ad.n, 0, NULL);
        struct str text = call_json_text(ad, TES_ATTRIBUTE);

        *ret_kept = text.n ? json_loadb(text.p, text.n, 0, NULL) : NULL;
        *ret_removed = arena_str(a, call_json_text(ad, "RemoveReason"));
        json_decref(ad);
}

static enum tes_state state_of(const struct row *r, const json_t *kept, struct str removed)
{
        switch (r->state) {
        case JOB_IDLE:
        case JOB_RESERVED:
        case JOB_AUTHORISED: return TES_QUEUED;
        case JOB_MATCHED:
        case JOB_STAGING: return TES_INITIALIZING;
        case JOB_RUNNING: return TES_RUNNING;
        case JOB_SUSPENDED: return TES_PAUSED;
        case JOB_VACATING: return r->removing ? TES_CANCELING : TES_RUNNING;
        case JOB_HELD: return r->hold_code == CORE_HOLD_USER ? TES_PAUSED : TES_SYSTEM_ERROR;
        case JOB_COMPLETED:
                return r->exit_code == 0 && !r->signaled ? TES_COMPLETE
                       : tes_ignores_last(kept)          ? TES_COMPLETE
                                                         : TES_EXECUTOR_ERROR;
        case JOB_REMOVED: return str_starts(removed, STR(TES_HELD)) ? TES_SYSTEM_ERROR : TES_CANCELED;
        default: return TES_UNKNOWN;
        }
}

static int32_t exit_code_of(bool signaled, int32_t code)
{
        return signaled ? 128 + code : code;
}

/* Returns the part of a stream's tail between the offsets `from` and `to`. */
static struct str printed(const struct tail_read *t, int stream, uint64_t from, uint64_t to)
{
        struct str all = buf_view(&t->bytes[stream]);
        uint64_t begin = t->size[stream] - all.n;

        if (to > t->size[stream])
                to = t->size[stream];
        if (from < begin)
                from = begin;
        return from < to ? str_head(str_skip(all, (size_t)(from - begin)), (size_t)(to - from)) : STR_NONE;
}

/* Writes the logs of the executors that have run; for a job with one step, the job's own. Returns their
 * number. */
static size_t write_logs(const struct shown *t, struct tes_executor_log logs[COMMAND_STEPS_MAX])
{
        struct str steps = buf_view(&t->tail.steps);
        struct command_step one;
        uint64_t before[2] = {0};
        size_t n = 0;

        for (; n < COMMAND_STEPS_MAX && tails_next_step(&steps, &one); n++) {
                logs[n] = (struct tes_executor_log){.started_ms = one.started_ms,
                                                    .ended_ms = one.ended_ms,
                                                    .exit_code = exit_code_of(one.signaled, one.exit_code)};
                for (int k = 0; k < 2; k++) {
                        logs[n].out[k] = printed(&t->tail, k, before[k], one.printed[k]);
                        before[k] = one.printed[k];
                }
        }
        if (n || !t->row.ended)
                return n;
        logs[0] =
                (struct tes_executor_log){.started_ms = t->row.started_ms,
                                          .ended_ms = t->row.ended_ms,
                                          .exit_code = exit_code_of(t->row.signaled, t->row.exit_code),
                                          .out = {buf_view(&t->tail.bytes[0]), buf_view(&t->tail.bytes[1])}};
        return 1;
}

static void write_task(struct call *c, struct json *j, const struct shown *t, enum tes_view view)
{
        struct tes_executor_log logs[COMMAND_STEPS_MAX];
        json_t *kept;
        struct str removed;

        read_ad(&t->row, &c->arena, &kept, &removed);
        struct tes_status s = {.id = t->row.request,
                               .state = state_of(&t->row, kept, removed),
                               .created_ms = t->row.submitted_ms,
                               .started_ms = t->row.started_ms,
                               .ended_ms = t->row.past ? t->row.ended_ms : 0,
                               .host = t->row.agent,
                               .reason = removed.n ? removed : t->row.hold_reason,
                               .logs = logs,
                               .log_count = view == TES_MINIMAL ? 0 : write_logs(t, logs)};
        tes_write(j, kept, view, &s);
        json_decref(kept);
}

static void not_found(struct call *c)
{
        call_fail(c, 404, "not_found", "there is no task " STR_FMT, STR_ARG(c->param[0]));
}

/* Reader thread: writes a page, which takes a while. */
static void write_tasks(struct server *s, struct call *c)
{
        struct show *x = c->state;
        struct json j = {.out = &c->out};
        BUF_CLEANUP struct buf next = {0};

        (void)s;
        if (x->one) {
                write_task(c, &j, &x->tasks[0], x->view);
                call_io(c, tes_reply);
                return;
        }
        json_open(&j, '{');
        json_key(&j, "tasks");
        json_open(&j, '[');
        for (size_t i = 0; i < x->count; i++)
                write_task(c, &j, &x->tasks[i], x->view);
        json_close(&j, ']');
        if (x->more && x->in_history && x->before)
                buf_printf(&next, "h%" PRIu64, x->before);
        else if (x->more)
                buf_printf(&next, "q%" PRIu64, x->after);
        if (next.n)
                json_kstr(&j, "next_page_token", buf_view(&next));
        json_close(&j, '}');
        call_io(c, tes_reply);
}

/* ---- output of tasks */

/* Reader thread. */
static void read_tails(struct server *s, struct call *c)
{
        struct show *x = c->state;

        for (size_t i = 0; i < x->count; i++) {
                struct shown *t = &x->tasks[i];
                BUF_CLEANUP struct buf name = {0};

                if (!t->is_tail)
                        continue;
                buf_str(&name, buf_view(&t->tail.agent));
                buf_reset(&t->tail.agent);
                tails_read(s, buf_view(&name), &t->tail);
        }
        write_tasks(s, c);
}

/* Core thread: finds the tails' names, which take the place of the agent's for now. */
static void find_tails(struct server *s, struct call *c)
{
        struct show *x = c->state;
        uint32_t fence;

        for (size_t i = 0; i < x->count; i++) {
                struct shown *t = &x->tasks[i];

                t->is_tail =
                        t->row.past && tails_find(s, t->row.request, t->row.member, &t->tail.agent, &fence);
        }
        call_reader(c, read_tails);
}

/* Reader thread: all rows are read. */
static void show_rows(struct server *s, struct call *c)
{
        struct show *x = c->state;

        if (x->view == TES_MINIMAL)
                write_tasks(s, c);
        else
                call_core(c, find_tails);
}

/* ---- one task */

static void read_one(struct server *s, struct call *c)
{
        struct show *x = c->state;
        struct row *r = &x->tasks[0].row;
        json_t *kept = NULL;
        struct str removed;

        r->request = x->id;
        r->member = 0;
        if (jobs_fill_past(s, &c->arena, r, false, NAMES))
                read_ad(r, &c->arena, &kept, &removed);
        if (!kept || !call_may(c, r->owner)) {
                not_found(c);
        } else {
                r->past = true;
                x->count = 1;
                show_rows(s, c);
        }
        json_decref(kept);
}

static void ask_one(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, read_one);
}

static bool is_task(struct server *s, uint64_t request)
{
        const struct ad *ad = core_request_ad(s->core, request, 0);

        return ad && ad_find(ad, symbols_intern(core_symbols(s->core), STR(TES_ATTRIBUTE)));
}

/* Fills the row of a task in the queue. Returns false if it is not there or not a task. */
static bool fill_live(struct server *s, struct call *c, struct row_maker *m, uint64_t id, struct row *r)
{
        if (!is_task(s, id) || !row_make(m, id, 0, r) || r->past)
                return false;
        r->ad = row_print_ad(core_request_ad(s->core, id, 0), NAMES, &c->arena);
        return true;
}

/* Core thread. A job that has ended is in history when this turn's commit is durable. */
static void task_look_up(struct server *s, struct call *c)
{
        struct show *x = c->state;
        struct core_request r;
        struct row_maker m;

        if (core_request_get(s->core, x->id, &r) == 0 && !call_may(c, r.owner)) {
                not_found(c);
                return;
        }
        row_maker_init(&m, s, &c->arena);
        x->count = fill_live(s, c, &m, x->id, &x->tasks[0].row);
        row_maker_deinit(&m);
        if (x->count) {
                call_reader(c, write_tasks);
        } else {
                c->when = TURN_DURABLE;
                call_io(c, ask_one);
        }
}

static struct show *show_begin(struct call *c)
{
        struct str view = call_query(c, "view");
        struct show *x = call_state(c, sizeof(*x), show_free);

        if (view.n && tes_view_read(view, &x->view) != 0) {
                call_fail(c, 400, "bad_parameter", "'view' must be MINIMAL, BASIC or FULL");
                return NULL;
        }
        return x;
}

void api_tes_task(struct server *s, struct call *c)
{
        struct show *x = show_begin(c);

        (void)s;
        if (!x)
                return;
        x->one = true;
        x->tasks = mem_zalloc(sizeof(*x->tasks));
        if (str_to_u64(c->param[0], &x->id) != 0 || x->id == 0 || x->id > INT64_MAX)
                not_found(c);
        else
                call_core(c, task_look_up);
}

/* ---- listing */

/* Reader thread: returns whether a row belongs in the listing. */
static bool is_wanted(struct call *c, const struct row *r)
{
        const struct show *x = c->state;
        json_t *kept;
        struct str removed;
        bool wanted;

        if (!r->past && !x->has_state && !x->name_prefix.n && !x->tag_count)
                return true;
        read_ad(r, &c->arena, &kept, &removed);
        wanted = kept && (!x->has_state || state_of(r, kept, removed) == x->state) &&
                 tes_matches(kept, x->name_prefix, x->keys, x->values, x->tag_count);
        json_decref(kept);
        return wanted;
}

/* The texts of tasks that are not wanted stay in memory until the call ends, too. */
static bool page_is_full(const struct call *c)
{
        const struct show *x = c->state;

        return x->count == x->limit || x->bytes > PAGE_BYTES || c->arena.used > ARENA_BYTES;
}

static int on_row(void *arg, uint64_t row, const struct past_job *h)
{
        struct show *x = arg;
        struct row *r = &x->tasks[x->count].row;

        if (page_is_full(x->call) || x->looked == LOOKED_MAX ||
            (x->looked % 16 == 15 && clock_thread_ns() > x->end_ns)) {
                x->more = true;
                return 1;
        }
        x->looked++;
        x->before = row;
        if (h->member == 0 && past_row(x->past, h, NULL, &x->call->arena, false, NAMES, r)) {
                r->past = true;
                if (is_wanted(x->call, r)) {
                        x->count++;
                        x->bytes += r->ad.n;
                }
        }
        return 0;
}

static void read_history(struct server *s, struct call *c)
{
        struct show *x = c->state;
        const struct store_query q = {.owner = str_of(c->who), .before = x->before};
        struct err err = {""};
        int r;

        x->in_history = true;
        x->past = s->past;
        x->call = c;
        x->end_ns = clock_thread_ns() + PAGE_NS;
        r = store_history_query(s->store, &q, on_row, x, &err);
        if (r < 0)
                call_fail_err(c, 500, "store", &err);
        else
                show_rows(s, c);
}

static void ask_history(struct server *s, struct call *c)
{
        const struct show *x = c->state;

        (void)s;
        call_reader(c, x->more ? write_tasks : read_history); /* if `more`, no task of the page has ended */
}

static void list_queue(struct server *s, struct call *c);

static void list_on(struct server *s, struct call *c)
{
        (void)s;
        call_yield_to_client(c, list_queue);
}

/* Reader thread: keeps the wanted ones of the tasks that the last slice found. A user's text may take long to
 * parse. */
static void choose_wanted(struct server *s, struct call *c)
{
        struct show *x = c->state;
        size_t found = x->count;

        (void)s;
        x->count = x->chosen;
        for (size_t i = x->chosen; i < found; i++) {
                struct row r = x->tasks[i].row;

                if (is_wanted(c, &r)) {
                        x->bytes += r.ad.n;
                        x->tasks[x->count++].row = r;
                }
        }
        x->chosen = x->count;
        call_io(c, list_on);
}

/* Core thread: lists tasks in the queue, one slice. */
static void list_queue(struct server *s, struct call *c)
{
        struct show *x = c->state;
        int64_t end_ns = clock_mono_ns() + SLICE_NS;
        uint64_t id;
        struct row_maker m;
        size_t bytes = 0;

        row_maker_init(&m, s, &c->arena);
        for (unsigned looked = 1; (id = core_request_next(s->core, x->after)) && !page_is_full(c) &&
                                  x->bytes + bytes <= PAGE_BYTES;
             looked++) {
                struct core_request r;
                bool found;

                if (looked % 16 == 0 && clock_mono_ns() > end_ns)
                        break;
                x->after = id;
                found = core_request_get(s->core, id, &r) == 0 && str_eqz(r.owner, c->who) &&
                        fill_live(s, c, &m, id, &x->tasks[x->count].row);
                if (!found)
                        continue;
                bytes += x->tasks[x->count++].row.ad.n;
                if (clock_mono_ns() > end_ns) /* its text may be long */
                        break;
        }
        row_maker_deinit(&m);
        if (x->count > x->chosen) {
                call_reader(c, choose_wanted);
                return;
        }
        x->more = id && page_is_full(c);
        if (id && !x->more) {
                call_yield_to_client(c, list_queue);
                return;
        }
        c->when = TURN_DURABLE;
        call_io(c, ask_history);
}

static bool read_token(struct call *c, struct show *x)
{
        struct str token = call_query(c, "page_token");
        uint64_t n;

        if (token.n == 0)
                return true;
        x->in_history = token.p[0] == 'h';
        if ((token.p[0] != 'h' && token.p[0] != 'q') || str_to_u64(str_skip(token, 1), &n) != 0 || n == 0 ||
            n > INT64_MAX) {
                call_fail(c, 400, "bad_parameter", "'page_token' is none that this server has given");
                return false;
        }
        *(x->in_history ? &x->before : &x->after) = n;
        return true;
}

/* Checks that the n-th key has the n-th value; no value means any. */
static bool read_tags(struct call *c, struct show *x)
{
        struct str key;

        for (size_t i = 0; http_query_nth(c->http, "tag_key", i, &key); i++) {
                if (i == TAGS_MAX) {
                        call_fail(c, 400, "bad_parameter", "there may be %d of 'tag_key'", TAGS_MAX);
                        return false;
                }
                x->keys[i] = arena_str(&c->arena, key);
                if (http_query_nth(c->http, "tag_value", i, &key))
                        x->values[i] = arena_str(&c->arena, key);
                x->tag_count = i + 1;
        }
        return true;
}

void api_tes_list(struct server *s, struct call *c)
{
        struct show *x = show_begin(c);
        struct str state;

        (void)s;
        if (!x)
                return;
        x->limit = PAGE_DEFAULT;
        if (!call_number(c, "page_size", PAGE_MAX, &x->limit) || !read_token(c, x) || !read_tags(c, x))
                return;
        if (x->limit == 0)
                x->limit = PAGE_DEFAULT;
        if (x->view == TES_FULL && x->limit > PAGE_FULL)
                x->limit = PAGE_FULL;
        x->name_prefix = call_query(c, "name_prefix");
        state = call_query(c, "state");
        x->has_state = state.n > 0;
        if (state.n && tes_state_read(state, &x->state) != 0) {
                call_fail(c, 400, "bad_parameter", "'state' must be a state of tasks, such as RUNNING");
                return;
        }
        x->tasks = mem_zalloc((x->limit + 1) * sizeof(*x->tasks));
        if (x->in_history)
                call_reader(c, read_history);
        else
                call_yield_to_client(c, list_queue);
}

/* ---- cancelling */

/* Reader thread: a task that has ended counts as cancelled; checks that it is a task. */
static void cancel_past(struct server *s, struct call *c)
{
        struct show *x = c->state;
        struct row r = {.request = x->id};
        json_t *kept = NULL;
        struct str removed;

        if (jobs_fill_past(s, &c->arena, &r, false, NAMES))
                read_ad(&r, &c->arena, &kept, &removed);
        if (kept && call_may(c, r.owner)) {
                buf_addz(&c->out, "{}");
                call_io(c, tes_reply);
        } else {
                not_found(c);
        }
        json_decref(kept);
}

static void ask_cancel_past(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, cancel_past);
}

static void cancel(struct server *s, struct call *c)
{
        struct show *x = c->state;
        BUF_CLEANUP struct buf reason = {0};
        struct core_request r;
        struct core_job job;
        struct err err = {""};
        uint64_t affected;

        c->when = TURN_DURABLE;
        if (core_request_get(s->core, x->id, &r) == 0 && (!call_may(c, r.owner) || !is_task(s, x->id))) {
                not_found(c);
                return;
        }
        if (core_job_get(s->core, x->id, 0, &job) != 0 || job.state == JOB_COMPLETED ||
            job.state == JOB_REMOVED) {
                call_io(c, ask_cancel_past);
                return;
        }
        buf_printf(&reason, "canceled by user %s", c->who);
        const struct core_command cmd = {.action = CORE_ACT_REMOVE,
                                         .request = x->id,
                                         .reason = buf_view(&reason),
                                         .owner = c->role == ROLE_USER ? str_of(c->who) : STR_NONE};
        if (core_act(s->core, &cmd, &affected, &err) != 0) {
                call_fail_err(c, 409, "conflict", &err);
                return;
        }
        buf_addz(&c->out, "{}");
        call_io(c, tes_reply);
}

void api_tes_cancel(struct server *s, struct call *c)
{
        struct show *x = call_state(c, sizeof(*x), show_free);
        struct str id = c->param[0];

        (void)s;
        if (!str_ends(id, STR(":cancel")))
                call_fail(c, 405, "method_not_allowed", "a task is canceled by POST of its id and :cancel");
        else if (str_to_u64(str_head(id, id.n - strlen(":cancel")), &x->id) != 0 || x->id == 0 ||
                 x->id > INT64_MAX)
                not_found(c);
        else
                call_core(c, cancel);
}
