#include "server/notices/text.h"
#include "server/loop/expressions.h"

#include <inttypes.h>
#include <time.h>

#include "base/format/json.h"
#include "classad/eval.h"
#include "classad/print.h"

#define TEXT_MAX  1000 /* bytes shown of a command or a reason */
#define VALUE_MAX 2000 /* bytes shown of an attribute */
#define NAMES_MAX 50
#define PRINT_MAX (64u << 10) /* bytes of attributes that are printed for one job */

const char *const notice_names[NOTICE_WHATS] = {"completed", "failed", "held", "removed", "started", "node"};

struct look {
        struct eval eval;
        const struct ad *ad;
};

static symbol name(const struct look *l, const char *attribute)
{
        return symbols_intern(ad_symbols(l->ad), str_of(attribute));
}

static struct str text(struct look *l, const char *attribute)
{
        struct str v;

        return eval_string(&l->eval, l->ad, NULL, name(l, attribute), &v) ? str_head(v, TEXT_MAX) : STR_NONE;
}

static bool number(struct look *l, const char *attribute, int64_t *ret)
{
        *ret = 0;
        return eval_integer(&l->eval, l->ad, NULL, name(l, attribute), ret);
}

static struct look look_at(const struct notice_job *j)
{
        struct look l = {.ad = j->ad};

        expressions_read_init(&l.eval, j->at_ms / 1000);
        return l;
}

/* ---- text for mails */

static void add_ending(struct look *l, struct buf *out, enum notice_what what)
{
        int64_t code = 0;

        switch (what) {
        case NOTICE_COMPLETED:
        case NOTICE_FAILED:
                buf_addz(out, what == NOTICE_FAILED ? "failed" : "completed");
                if (number(l, "ExitSignal", &code))
                        buf_printf(out, ": it was ended by signal %" PRId64, code);
                else if (number(l, "ExitCode", &code))
                        buf_printf(out, " with exit code %" PRId64, code);
                break;
        case NOTICE_HELD: buf_addz(out, "is held"); break;
        case NOTICE_REMOVED: buf_addz(out, "was removed"); break;
        case NOTICE_STARTED: buf_addz(out, "has started"); break;
        case NOTICE_NODE:
        case NOTICE_WHATS: break;
        }
}

void notice_subject(struct buf *out, const struct notice_job *j)
{
        struct look l = look_at(j);

        buf_printf(out, "Job %" PRIu64 ".%" PRIu32 " ", j->request, j->member);
        add_ending(&l, out, j->what);
        eval_deinit(&l.eval);
}

/* Writes a label and a value as one line, also if the value has line ends. */
static void add_line(struct buf *out, const char *label, struct str value)
{
        value = str_trim(value);
        if (value.n == 0)
                return;
        buf_printf(out, "    %-10s ", label);
        for (size_t i = 0; i < value.n; i++)
                buf_char(out, (unsigned char)value.p[i] < ' ' || value.p[i] == 0x7f ? ' ' : value.p[i]);
        buf_char(out, '\n');
}

static void add_time(struct buf *out, const char *label, int64_t at_s)
{
        char line[64];
        time_t at = (time_t)at_s;
        struct tm tm;

        if (at_s <= 0)
                return;
        localtime_r(&at, &tm);
        strftime(line, sizeof(line), "%Y-%m-%d %H:%M:%S %z", &tm);
        add_line(out, label, str_of(line));
}

static void add_seconds(struct buf *out, int64_t s)
{
        buf_printf(out, "%" PRId64 "+%02d:%02d:%02d", s / 86400, (int)(s / 3600 % 24), (int)(s / 60 % 60),
                   (int)(s % 60));
}

static void add_command(struct look *l, struct buf *out)
{
        BUF_CLEANUP struct buf b = {0};
        struct str args = text(l, "Arguments");

        if (args.n == 0)
                args = text(l, "Args");
        buf_str(&b, text(l, "Cmd"));
        buf_char(&b, ' ');
        buf_str(&b, args);
        add_line(out, "command", buf_view(&b));
}

static void add_run(struct look *l, struct buf *out)
{
        BUF_CLEANUP struct buf b = {0};
        int64_t wall, user, system, memory, starts, in, sent;

        if (!number(l, "NumJobStarts", &starts) || starts == 0)
                return;
        if (number(l, "RemoteWallClockTime", &wall) && wall > 0) {
                add_seconds(&b, wall);
                buf_printf(&b, " in all its attempts (%" PRId64 ")", starts);
                add_line(out, "ran", buf_view(&b));
        }
        buf_reset(&b);
        if (number(l, "RemoteUserCpu", &user) && number(l, "RemoteSysCpu", &system)) {
                buf_addz(&b, "user ");
                add_seconds(&b, user);
                buf_addz(&b, ", system ");
                add_seconds(&b, system);
                add_line(out, "processor", buf_view(&b));
        }
        buf_reset(&b);
        if (number(l, "MemoryUsage", &memory) && memory > 0) {
                buf_printf(&b, "%" PRId64 " MiB at most", memory);
                add_line(out, "memory", buf_view(&b));
        }
        buf_reset(&b);
        number(l, "BytesRecvd", &in);
        number(l, "BytesSent", &sent);
        if (in > 0 || sent > 0) {
                buf_printf(&b, "%" PRId64 " in, %" PRId64 " out", in, sent);
                add_line(out, "bytes", buf_view(&b));
        }
}

/* Calls fn for each attribute in EmailAttributes that the job has, with its printed value. */
static void each_asked(struct look *l, void (*fn)(void *arg, struct str name, struct str value), void *arg)
{
        struct str rest = text(l, "EmailAttributes"), part, word;
        unsigned left = NAMES_MAX;
        size_t printed = 0;

        while (str_cut(&rest, ',', &part))
                while (str_word(&part, &word) && left > 0 && printed < PRINT_MAX) {
                        BUF_CLEANUP struct buf b = {0};
                        symbol s = symbols_find(ad_symbols(l->ad), word);
                        const struct expr *e = s ? ad_find(l->ad, s) : NULL;

                        left--;
                        if (!e)
                                continue;
                        expr_print(&b, e, ad_symbols(l->ad));
                        printed += b.n;
                        fn(arg, symbols_name(ad_symbols(l->ad), s), str_head(buf_view(&b), VALUE_MAX));
                }
}

static void add_asked(void *arg, struct str attribute, struct str value)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, STR_FMT " = ", STR_ARG(attribute));
        buf_str(&b, value);
        add_line(arg, "", buf_view(&b));
}

void notice_words(struct buf *out, const struct notice_job *j)
{
        struct look l = look_at(j);
        int64_t submitted, started;

        buf_printf(out, "Job %" PRIu64 ".%" PRIu32 " ", j->request, j->member);
        add_ending(&l, out, j->what);
        buf_addz(out, ".\n");
        if (j->reason.n)
                add_line(out, "because", str_head(j->reason, TEXT_MAX));
        add_command(&l, out);
        add_line(out, "batch", text(&l, "JobBatchName"));
        add_line(out, "folder", text(&l, "Iwd"));
        number(&l, "QDate", &submitted);
        number(&l, "JobStartDate", &started);
        add_time(out, "submitted", submitted);
        add_time(out, "started", started);
        add_time(out, j->what == NOTICE_STARTED ? "now" : notice_names[j->what], j->at_ms / 1000);
        add_line(out, "place", text(&l, "LastRemoteHost"));
        add_run(&l, out);
        each_asked(&l, add_asked, out);
        buf_char(out, '\n');
        eval_deinit(&l.eval);
}

/* ---- JSON */

static void put_asked(void *arg, struct str attribute, struct str value)
{
        json_keys(arg, attribute);
        json_str(arg, value);
}

static void put_text(struct json *j, const char *key, struct str value)
{
        if (value.n)
                json_kstr(j, key, value);
}

void notice_json(struct buf *out, const struct notice_job *job)
{
        struct look l = look_at(job);
        struct json j = {.out = out};
        BUF_CLEANUP struct buf id = {0};
        int64_t v;

        buf_printf(&id, "%" PRIu64 ".%" PRIu32, job->request, job->member);
        json_open(&j, '{');
        json_kstr(&j, "id", buf_view(&id));
        json_kstrz(&j, "what", notice_names[job->what]);
        json_kint(&j, "at_ms", job->at_ms);
        if (job->what == NOTICE_COMPLETED || job->what == NOTICE_FAILED) {
                if (number(&l, "ExitSignal", &v))
                        json_kint(&j, "signal", v);
                else if (number(&l, "ExitCode", &v))
                        json_kint(&j, "exit_code", v);
        }
        put_text(&j, "reason", str_head(job->reason, TEXT_MAX));
        put_text(&j, "command", text(&l, "Cmd"));
        put_text(&j, "batch", text(&l, "JobBatchName"));
        put_text(&j, "place", text(&l, "LastRemoteHost"));
        json_key(&j, "attributes");
        json_open(&j, '{');
        each_asked(&l, put_asked, &j);
        json_close(&j, '}');
        json_close(&j, '}');
        eval_deinit(&l.eval);
}

/* ---- nodes */

void notice_node_subject(struct buf *out, const struct notice_node *n)
{
        buf_printf(out, "Node " STR_FMT " is " STR_FMT, STR_ARG(n->name), STR_ARG(n->state));
}

void notice_node_words(struct buf *out, const struct notice_node *n)
{
        notice_node_subject(out, n);
        buf_addz(out, ".\n");
        add_line(out, "because", str_head(n->reason, TEXT_MAX));
        add_line(out, "by", n->by);
        add_time(out, "since", n->at_ms / 1000);
        buf_char(out, '\n');
}

void notice_node_json(struct buf *out, const struct notice_node *n)
{
        struct json j = {.out = out};

        json_open(&j, '{');
        json_kstr(&j, "node", n->name);
        json_kstr(&j, "state", n->state);
        json_kstr(&j, "by", n->by);
        json_kstr(&j, "reason", str_head(n->reason, TEXT_MAX));
        json_kint(&j, "at_ms", n->at_ms);
        json_close(&j, '}');
}

void notice_counts(struct buf *out, const uint64_t counts[NOTICE_WHATS])
{
        uint64_t all = 0;
        const char *before = ": ";

        for (int i = 0; i < NOTICE_WHATS; i++)
                all += counts[i];
        if (counts[NOTICE_NODE]) {
                buf_printf(out, "%" PRIu64 " changes of nodes", counts[NOTICE_NODE]);
                return;
        }
        buf_printf(out, "%" PRIu64 " jobs", all);
        for (int i = 0; i < NOTICE_WHATS; i++)
                if (counts[i]) {
                        buf_printf(out, "%s%" PRIu64 " %s", before, counts[i], notice_names[i]);
                        before = ", ";
                }
}
