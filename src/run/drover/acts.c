/* Sends actions, signals and the arrival of results to the other server. One call of each kind is in
 * progress at a time; what is added meanwhile is sent together after its answer. */
#include <stdlib.h>

#include "base/format/json_read.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "base/system/log.h"
#include "run/drover/acts.h"
#include "run/drover/answers.h"
#include "run/drover/link.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

#define ACT_MAX    500
#define SIGNAL_MAX 64
/* A job that has begun, or is about to, must be neither held nor given back: it would be stopped. */
#define ONLY_IDLE "\"constraint\":\"DroverState == \\\"idle\\\"\","

struct remote_acts {
        struct buf acts[REMOTE_ACTS]; /* quoted ids, separated by commas */
        enum remote_act acting;
        struct buf acting_ids;
        struct http_call *act;
        struct buf signals;   /* "number id", a line each, in order */
        struct buf signalled; /* signals of the call in progress */
        struct http_call *signalling;
        struct buf taken; /* "request member", a line each: results that have arrived */
        uint64_t taking;
        struct set taking_members;
        struct http_call *take;
};

/* ---- actions */

void remote_act_on(struct remote *f, uint64_t request, uint32_t member, enum remote_act what)
{
        struct buf *b = &f->acts->acts[what];

        buf_printf(b, "%s\"%llu.%u\"", b->n ? "," : "", (unsigned long long)request, member);
        timer_start(f->later, 0);
}

void remote_act(struct remote_task *t, enum remote_act what)
{
        remote_act_on(t->remote, remote_number(t), t->member, what);
}

static void on_acted(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;

        (void)body;
        f->acts->act = NULL;
        if (status <= 0 || remote_later(status)) { /* repeated, with what was added since */
                struct buf *b = &f->acts->acts[f->acts->acting];

                if (b->n)
                        buf_char(&f->acts->acting_ids, ',');
                buf_str(&f->acts->acting_ids, buf_view(b));
                buf_reset(b);
                buf_str(b, buf_view(&f->acts->acting_ids));
        }
        buf_reset(&f->acts->acting_ids);
        if (status <= 0)
                remote_unreachable(f, err->text);
        else if (!remote_later(status)) /* otherwise retried with the next tick */
                remote_acts_send(f);
}

/* Moves at most ACT_MAX ids. */
static void take_ids(struct buf *from, struct buf *to)
{
        struct str rest = buf_view(from), one;

        for (unsigned n = 0; n < ACT_MAX && rest.n && str_cut(&rest, ',', &one); n++)
                buf_printf(to, "%s" STR_FMT, to->n ? "," : "", STR_ARG(one));
        buf_consume(from, from->n - rest.n);
}

static void send_acts(struct remote *f)
{
        static const char *const names[] = {"remove", "suspend", "resume", "hold", "release", "remove"};

        for (int i = 0; i < REMOTE_ACTS && !f->acts->act; i++) {
                BUF_CLEANUP struct buf body = {0}, path = {0};

                if (!f->acts->acts[i].n)
                        continue;
                f->acts->acting = (enum remote_act)i;
                take_ids(&f->acts->acts[i], &f->acts->acting_ids);
                buf_printf(&body, "{\"action\":\"%s\",\"reason\":\"" REMOTE_REASON "\",%s\"ids\":[%s]}",
                           names[i], i == REMOTE_HOLD || i == REMOTE_GIVE_BACK ? ONLY_IDLE : "",
                           buf_z(&f->acts->acting_ids));
                buf_addz(&path, "/v1/actions");
                f->acts->act = remote_ask(f, "POST", &path, buf_view(&body), on_acted);
        }
}

/* ---- signals are sent in order, and once. Signals for a job that does not run there at the moment wait in
 * its task until it runs. A call without an answer may have been received: it is not repeated, and a message
 * is logged. */

void remote_signal(struct remote_task *t, int signal)
{
        buf_printf(&t->remote->acts->signals, "%d \"%llu.%u\"\n", signal,
                   (unsigned long long)remote_number(t), t->member);
        timer_start(t->remote->later, 0);
}

void remote_signals_due(struct remote_task *t)
{
        for (int n = 1; t->signals && n <= SIGNAL_MAX; n++)
                if (t->signals & (UINT64_C(1) << (n - 1)))
                        remote_signal(t, n);
        t->signals = 0;
}

/* Keeps a signal for the jobs in a list like "7.0-3", which did not run. */
static void keep_signal(struct remote *f, struct str id, unsigned number)
{
        struct str request;
        struct set members = {0};
        uint64_t n = 0;

        if (!str_cut(&id, '.', &request) || str_to_u64(request, &n) != 0)
                return;
        const struct remote_request *r = idmap_get(f->table.requests, n);
        if (r && set_parse(&members, id, r->count) == 0) {
                SET_FOREACH (&members, m) {
                        struct remote_task *t = r->tasks[m];

                        if (!t || t->state != REMOTE_IN)
                                continue;
                        t->signals |= UINT64_C(1) << (number - 1);
                        t->dirty = true; /* it may have begun since */
                }
        }
        set_deinit(&members);
}

static unsigned number_of(struct str line)
{
        struct str number = line;
        uint64_t n = 0;

        str_cut(&line, ' ', &number);
        return str_to_u64(number, &n) == 0 && n >= 1 && n <= SIGNAL_MAX ? (unsigned)n : 1;
}

static void on_signalled(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;
        struct buf sent = f->acts->signalled;
        json_t *doc = status == 200 ? remote_json(body) : NULL, *one;
        size_t i;

        f->acts->signalled = (struct buf){0};
        f->acts->signalling = NULL;
        if (status == HTTP_NOT_SENT || remote_later(status)) {
                buf_str(&sent, buf_view(&f->acts->signals));
                buf_deinit(&f->acts->signals);
                f->acts->signals = sent;
                sent = (struct buf){0};
        } else if (!status) {
                log_warn("msg=\"the other server may not have heard a signal\" queue=%s jobs=\"%s\"",
                         f->queue, LOG_TEXT(str_trim(buf_view(&sent))));
        }
        json_array_foreach (json_object_get(doc, "not_running"), i, one)
                if (json_is_string(one))
                        keep_signal(f, str_of(json_string_value(one)), number_of(buf_view(&sent)));
        json_decref(doc);
        buf_deinit(&sent);
        if (status <= 0)
                remote_unreachable(f, err->text);
        else if (!remote_later(status))
                remote_acts_send(f);
        timer_start(f->later, 0);
}

/* Sends the first pending signals that have the same number. */
static void send_signals(struct remote *f)
{
        struct str rest = buf_view(&f->acts->signals), line, first = STR_NONE;
        BUF_CLEANUP struct buf body = {0}, path = {0}, ids = {0};

        if (f->acts->signalling || !rest.n)
                return;
        for (unsigned n = 0; n < ACT_MAX && rest.n; n++) {
                struct str next = rest, number, id;

                str_cut(&next, '\n', &line);
                id = line;
                str_cut(&id, ' ', &number);
                if (n && !str_eq(number, first))
                        break;
                first = number;
                buf_printf(&ids, "%s" STR_FMT, n ? "," : "", STR_ARG(id));
                rest = next;
        }
        buf_printf(&body, "{\"action\":\"signal\",\"value\":" STR_FMT ",\"ids\":[%s]}", STR_ARG(first),
                   buf_z(&ids));
        buf_str(&f->acts->signalled, str_head(buf_view(&f->acts->signals), f->acts->signals.n - rest.n));
        buf_consume(&f->acts->signals, f->acts->signals.n - rest.n);
        buf_addz(&path, "/v1/actions");
        const struct http_call_spec spec = {
                .method = "POST", .path = buf_z(&path), .body = buf_view(&body), .once = true};
        f->acts->signalling = http_client_call(f->client, &spec, on_signalled, f);
}

/* ---- results that have arrived */

void remote_taken(struct remote *f, uint64_t request, uint32_t member)
{
        buf_printf(&f->acts->taken, "%llu %u\n", (unsigned long long)request, member);
        timer_start(f->later, 0);
}

static void on_taken(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;
        struct set members = f->acts->taking_members;

        (void)body;
        f->acts->take = NULL;
        f->acts->taking_members = (struct set){0};
        if (status <= 0 || remote_later(status))
                SET_FOREACH (&members, m)
                        remote_taken(f, f->acts->taking, (uint32_t)m);
        if (status <= 0)
                remote_unreachable(f, err->text);
        else if (!remote_later(status))
                remote_acts_send(f);
        set_deinit(&members);
}

/* Takes the lines of the first line's request out of the list. */
static void next_taken(struct remote *f)
{
        BUF_CLEANUP struct buf lines = f->acts->taken;
        struct str rest = buf_view(&lines), line;

        f->acts->taken = (struct buf){0};
        f->acts->taking = 0;
        while (rest.n && str_cut(&rest, '\n', &line)) {
                struct str member = line, number;
                uint64_t request = 0, m = 0;

                str_cut(&member, ' ', &number);
                if (str_to_u64(number, &request) != 0 || str_to_u64(member, &m) != 0)
                        continue;
                if (!f->acts->taking)
                        f->acts->taking = request;
                if (f->acts->taking == request)
                        set_add(&f->acts->taking_members, (uint32_t)m);
                else
                        buf_printf(&f->acts->taken, STR_FMT "\n", STR_ARG(line));
        }
}

static void send_taken(struct remote *f)
{
        BUF_CLEANUP struct buf path = {0}, body = {0};

        if (f->acts->take || !f->acts->taken.n)
                return;
        next_taken(f);
        buf_printf(&path, "/v1/requests/%llu/taken", (unsigned long long)f->acts->taking);
        buf_addz(&body, "{\"members\":\"");
        set_print(&body, &f->acts->taking_members);
        buf_addz(&body, "\"}");
        f->acts->take = remote_ask(f, "POST", &path, buf_view(&body), on_taken);
}

void remote_acts_send(struct remote *f)
{
        if (!f->link.up)
                return;
        send_acts(f);
        send_signals(f);
        send_taken(f);
}

struct remote_acts *remote_acts_new(void)
{
        return mem_new(struct remote_acts);
}

void remote_acts_free(struct remote_acts *a)
{
        for (int i = 0; a && i < REMOTE_ACTS; i++)
                buf_deinit(&a->acts[i]);
        if (a) {
                buf_deinit(&a->acting_ids);
                buf_deinit(&a->signals);
                buf_deinit(&a->signalled);
                buf_deinit(&a->taken);
                set_deinit(&a->taking_members);
        }
        free(a);
}
