/* The table of jobs is guarded by one lock, which no call of the API is made under. Connections are kept
 * between calls and used by one thread at a time. */
#include "cli/drmaa/session.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/client/submit.h"
#include "cli/drmaa/drmaa.h"
#include "cli/drmaa/template.h"

#define SPARE_MAX 8    /* connections kept */
#define SLICE_MS  1000 /* of a long poll: how long drmaa_exit may take */
#define CONTROL_MS                                                                                           \
        5000 /* for a job to be suspended or resumed, before drmaa_control returns all the same              \
              */
#define PAGE_ROWS     "1000"
#define IDS_BYTES_MAX 6000 /* maximum bytes of ids in a call; the server takes a head of 16 kB */
#define HELD_BY_USER  1    /* HTCondor's HoldReasonCode */
#define HELD_AT_START 15

enum phase { OPEN, ENDED, REAPED };

struct job {
        uint8_t phase;
        int stat;
};

/* Jobs of one request: all of a submit, or one that was submitted elsewhere and is waited for here. */
struct known {
        uint64_t request;
        uint32_t first, count;
        bool foreign;
        uint32_t open, ended;
        struct job *jobs;
};

static struct {
        pthread_mutex_t lock;
        pthread_cond_t left; /* a call has ended */
        enum { CLOSED, OPENED, CLOSING } state;
        unsigned calls; /* number of calls in progress */
        char *contact, *dir, *server;
        struct known *known; /* sorted by request and first member */
        size_t n, cap;
        struct cli *spare[SPARE_MAX];
        size_t spare_count;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

/* ---- ids */

bool job_id_read(const char *text, struct job_id *ret)
{
        struct str rest = str_of(text), request;
        uint64_t member;

        if (!str_cut(&rest, '.', &request) || str_to_u64(request, &ret->request) != 0 || ret->request == 0 ||
            str_to_u64(rest, &member) != 0 || member > UINT32_MAX)
                return false;
        ret->member = (uint32_t)member;
        return true;
}

void job_id_text(struct job_id id, char ret[JOB_ID_TEXT])
{
        snprintf(ret, JOB_ID_TEXT, "%" PRIu64 ".%" PRIu32, id.request, id.member);
}

/* ---- calls under way */

static int no_session(struct err *err)
{
        return err_set(err, DRMAA_ERRNO_NO_ACTIVE_SESSION, "there is no session: call drmaa_init first");
}

/* Every call that needs the session stands between enter and leave. */
static int enter(struct err *err)
{
        bool open;

        pthread_mutex_lock(&session.lock);
        open = session.state == OPENED;
        session.calls += open;
        pthread_mutex_unlock(&session.lock);
        return open ? 0 : no_session(err);
}

static void leave(void)
{
        pthread_mutex_lock(&session.lock);
        if (--session.calls == 0)
                pthread_cond_broadcast(&session.left);
        pthread_mutex_unlock(&session.lock);
}

static bool is_closing(void)
{
        bool closing;

        pthread_mutex_lock(&session.lock);
        closing = session.state != OPENED;
        pthread_mutex_unlock(&session.lock);
        return closing;
}

static struct cli *take_connection(void)
{
        struct cli *cli = NULL;

        pthread_mutex_lock(&session.lock);
        if (session.spare_count)
                cli = session.spare[--session.spare_count];
        pthread_mutex_unlock(&session.lock);
        if (!cli) {
                cli = mem_zalloc(sizeof(*cli));
                cli->dir = session.dir;
                cli->server = session.server;
        }
        return cli;
}

static void free_connection(struct cli *cli)
{
        api_close(cli);
        free(cli);
}

static void give_connection(struct cli *cli)
{
        pthread_mutex_lock(&session.lock);
        if (session.spare_count < SPARE_MAX) {
                session.spare[session.spare_count++] = cli;
                cli = NULL;
        }
        pthread_mutex_unlock(&session.lock);
        if (cli)
                free_connection(cli);
}

static int errno_of(int rc, const struct api_answer *a)
{
        if (rc == API_NO_SERVER || rc == API_LOST)
                return DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE;
        if (rc != API_REFUSED)
                return DRMAA_ERRNO_INTERNAL_ERROR;
        switch (a->status) {
        case 401:
        case 403: return DRMAA_ERRNO_AUTH_FAILURE;
        case 404: return DRMAA_ERRNO_INVALID_JOB;
        case 429:
        case 503: return DRMAA_ERRNO_TRY_LATER;
        default: return DRMAA_ERRNO_DENIED_BY_DRM;
        }
}

static int call(const char *method, struct buf *path, struct str body, int timeout_ms, struct api_answer *ret,
                struct err *err)
{
        struct cli *cli = take_connection();
        struct api_request r = {
                .method = method, .path = buf_z(path), .body = body, .timeout_ms = timeout_ms};
        int rc = api_call(cli, &r, ret, err);

        if (rc == 0 || rc == API_REFUSED) {
                give_connection(cli);
        } else {
                free_connection(cli);
        }
        return rc ? errno_of(rc, ret) : 0;
}

static int get_answer(struct buf *path, int timeout_ms, struct api_answer *ret, struct err *err)
{
        return call("GET", path, STR_NONE, timeout_ms, ret, err);
}

/* ---- the table of jobs; all with the lock held */

static struct known *find_known(struct job_id id)
{
        size_t low = 0, high = session.n;

        while (low < high) {
                size_t middle = (low + high) / 2;
                struct known *k = &session.known[middle];

                if (k->request < id.request ||
                    (k->request == id.request && k->first + (k->count - 1) < id.member))
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == session.n || session.known[low].request != id.request ||
            session.known[low].first > id.member)
                return NULL;
        return &session.known[low];
}

static void add_known(uint64_t request, uint32_t first, uint32_t count, bool foreign)
{
        size_t at = session.n;

        if (session.n == session.cap) {
                session.cap = session.cap ? 2 * session.cap : 16;
                session.known = mem_array(session.known, session.cap, sizeof(*session.known));
        }
        while (at > 0 && (session.known[at - 1].request > request ||
                          (session.known[at - 1].request == request && session.known[at - 1].first > first)))
                at--;
        memmove(&session.known[at + 1], &session.known[at], (session.n - at) * sizeof(*session.known));
        session.known[at] = (struct known){.request = request,
                                           .first = first,
                                           .count = count,
                                           .foreign = foreign,
                                           .open = count,
                                           .jobs = mem_zalloc(count * sizeof(struct job))};
        session.n++;
}

static void set_phase(struct known *k, struct job *j, enum phase phase)
{
        k->open -= j->phase == OPEN;
        k->ended -= j->phase == ENDED;
        j->phase = phase;
        k->open += phase == OPEN;
        k->ended += phase == ENDED;
}

static struct job *job_of(struct job_id id, struct known **ret_known)
{
        *ret_known = find_known(id);
        return *ret_known ? &(*ret_known)->jobs[id.member - (*ret_known)->first] : NULL;
}

/* Gives an ended job of the session; returns false if there is none. *ret_open: some jobs have not ended. */
static bool find_ended(struct job_id *ret, bool *ret_open)
{
        *ret_open = false;
        for (size_t i = 0; i < session.n; i++) {
                struct known *k = &session.known[i];

                if (k->foreign)
                        continue;
                *ret_open |= k->open > 0;
                for (uint32_t m = 0; k->ended && m < k->count; m++)
                        if (k->jobs[m].phase == ENDED) {
                                *ret = (struct job_id){k->request, k->first + m};
                                return true;
                        }
        }
        return false;
}

/* Appends what is open, as the API takes ids; not more than a call holds. */
static void open_ids(struct buf *out)
{
        for (size_t i = 0; i < session.n && out->n < IDS_BYTES_MAX; i++)
                if (session.known[i].open && !session.known[i].foreign)
                        buf_printf(out, "%s%" PRIu64, out->n ? "," : "", session.known[i].request);
}

/* ---- what the server says of jobs */

/* Gives an ended job's *stat; a job that the system holds counts as ended, since nothing behind this
 * interface would release it. */
static bool read_end(struct view row, bool *ret_held, int *ret)
{
        struct view state = view_get(row, "state");
        int64_t code = view_integer(view_get(row, "hold_code"), 0);

        *ret_held = view_is(state, "held") && code != HELD_BY_USER && code != HELD_AT_START;
        if (view_is(state, "removed") || *ret_held) {
                *ret = STAT_ABORTED;
                return true;
        }
        if (!view_is(state, "completed"))
                return false;
        *ret = (int)(view_integer(view_get(row, "exit_signal"), 0) & STAT_SIGNAL_MASK);
        if (*ret == 0)
                *ret = (int)(view_integer(view_get(row, "exit_code"), 0) & 0xff) << STAT_CODE_SHIFT;
        return true;
}

/* Acts on jobs. of: ClassAd expression that chooses among them; NULL: all. reason: JSON; empty: none. */
static int act_on_jobs(const char *action, struct str ids, const char *of, struct str reason, struct err *err)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
        struct str rest = ids, id;

        buf_addz(&path, "/v1/actions");
        buf_printf(&body, "{\"action\":\"%s\",\"ids\":[", action);
        for (const char *comma = ""; str_cut(&rest, ',', &id); comma = ",")
                buf_printf(&body, "%s\"" STR_FMT "\"", comma, STR_ARG(id));
        buf_char(&body, ']');
        if (of)
                buf_printf(&body, ",\"constraint\":\"%s\"", of);
        if (reason.n)
                buf_printf(&body, ",\"reason\":" STR_FMT, STR_ARG(reason));
        buf_char(&body, '}');
        return call("POST", &path, buf_view(&body), 0, &answer, err);
}

static void take_row(struct view row)
{
        struct buf text BUF_CLEANUP = {0};
        bool is_held, taken = false;
        struct known *k;
        struct job_id id;
        struct job *j;
        int stat;

        view_text(view_get(row, "id"), &text);
        if (!job_id_read(buf_z(&text), &id) || !read_end(row, &is_held, &stat))
                return;
        pthread_mutex_lock(&session.lock);
        j = job_of(id, &k);
        if (j && j->phase == OPEN) {
                j->stat = stat;
                set_phase(k, j, ENDED);
                taken = true;
        }
        pthread_mutex_unlock(&session.lock);
        if (taken && is_held)
                act_on_jobs("remove", buf_view(&text), NULL, view_get(row, "hold_reason").text, NULL);
}

static uint64_t count_known(void)
{
        uint64_t count = 0;

        pthread_mutex_lock(&session.lock);
        for (size_t i = 0; i < session.n; i++)
                count += session.known[i].count;
        pthread_mutex_unlock(&session.lock);
        return count;
}

/* Learns which of these jobs have ended. A server whose pages have no rows, or more of them than there are
 * jobs, would go on for ever. */
static int refresh(struct str ids, struct err *err)
{
        struct buf cursor BUF_CLEANUP = {0};
        uint64_t rows = 0, all = count_known();
        int rc;

        do {
                uint64_t before = rows;
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct buf path BUF_CLEANUP = {0};
                struct view jobs, row;

                buf_addz(&path, "/v1/jobs");
                api_query(&path, "id", ids);
                api_query(&path, "state", STR("completed,removed,held"));
                api_query(&path, "limit", STR(PAGE_ROWS));
                api_query(&path, "after", buf_view(&cursor));
                rc = get_answer(&path, 0, &answer, err);
                if (rc != 0)
                        return rc;
                jobs = view_get(answer.root, "jobs");
                for (size_t at = 0; view_next(jobs, &at, &row); rows++)
                        take_row(row);
                buf_reset(&cursor);
                view_text(view_get(answer.root, "next"), &cursor);
                if (cursor.n && (rows == before || rows > all))
                        return err_set(err, DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE,
                                       "the server's list of jobs does not end");
                if (cursor.n && is_closing())
                        return no_session(err);
        } while (cursor.n);
        return 0;
}

/* Waiting that goes on: the server is told which counts were seen last, as long as the same jobs are asked
 * about. */
struct waiting {
        int64_t end_ms;
        bool over; /* the time was over before the jobs were looked at last */
        struct buf ids, seen;
};

static void waiting_deinit(struct waiting *w)
{
        buf_deinit(&w->ids);
        buf_deinit(&w->seen);
}

/* Waits until something has changed about these jobs, or for a slice of the time, and learns what. */
static int wait_on(struct waiting *w, struct str ids, struct err *err)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        int64_t left = w->end_ms - clock_boot_ms();
        char timeout[24];
        int rc;

        if (w->over)
                return err_set(err, DRMAA_ERRNO_EXIT_TIMEOUT, "the time is over, and jobs have not ended");
        if (is_closing())
                return no_session(err);
        if (!str_eq(ids, buf_view(&w->ids))) {
                buf_reset(&w->seen);
                buf_reset(&w->ids);
                buf_str(&w->ids, ids);
        }
        w->over = w->seen.n && left <= 0;
        snprintf(timeout, sizeof(timeout), "%" PRId64, left < 0 ? 0 : left > SLICE_MS ? SLICE_MS : left);
        buf_addz(&path, "/v1/wait");
        api_query(&path, "ids", ids);
        api_query(&path, "timeout_ms", w->seen.n ? str_of(timeout) : STR("0"));
        api_query(&path, "seen", buf_view(&w->seen));
        rc = get_answer(&path, 0, &answer, err);
        if (rc != 0)
                return rc;
        buf_reset(&w->seen);
        view_text(view_get(answer.root, "seen"), &w->seen);
        return refresh(ids, err);
}

static int64_t end_of(int64_t timeout_s)
{
        return timeout_s < 0 || timeout_s > INT32_MAX ? INT64_MAX / 2 : clock_boot_ms() + timeout_s * 1000;
}

static int no_job(struct job_id id, struct err *err)
{
        char text[JOB_ID_TEXT];

        job_id_text(id, text);
        return err_set(err, DRMAA_ERRNO_INVALID_JOB, "there is no job %s that has not been waited for", text);
}

/* Adds a job that the server knows, and the session does not, to the session. */
static int adopt(struct job_id id, struct err *err)
{
        struct known *k;
        int state, rc;

        pthread_mutex_lock(&session.lock);
        k = find_known(id);
        pthread_mutex_unlock(&session.lock);
        if (k)
                return 0;
        rc = session_state(id, &state, err);
        if (rc != 0)
                return rc;
        pthread_mutex_lock(&session.lock);
        if (!find_known(id))
                add_known(id.request, id.member, 1, true);
        pthread_mutex_unlock(&session.lock);
        return 0;
}

/* ---- the calls */

static int ask_server(struct err *err)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};

        buf_addz(&path, "/v1/server");
        return get_answer(&path, 0, &answer, err);
}

int session_open(const char *contact, struct err *err)
{
        bool remote = str_starts(str_of(contact), STR("https://"));
        int rc;

        if (*contact && !remote && *contact != '/')
                return err_set(err, DRMAA_ERRNO_INVALID_CONTACT_STRING,
                               "\"%.200s\" is neither the folder of an instance nor https://HOST:PORT",
                               contact);
        pthread_mutex_lock(&session.lock);
        if (session.state != CLOSED) {
                pthread_mutex_unlock(&session.lock);
                return err_set(err, DRMAA_ERRNO_ALREADY_ACTIVE_SESSION, "there is a session already");
        }
        session.state = CLOSING; /* nobody else's until the server has answered */
        session.contact = mem_dupz(contact);
        session.dir = *contact && !remote ? mem_dupz(contact) : NULL;
        session.server = remote ? mem_dupz(contact) : NULL;
        pthread_mutex_unlock(&session.lock);
        rc = ask_server(err);
        pthread_mutex_lock(&session.lock);
        session.state = OPENED;
        pthread_mutex_unlock(&session.lock);
        if (rc != 0) {
                session_close(NULL);
                return rc == DRMAA_ERRNO_AUTH_FAILURE || rc == DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE
                               ? rc
                               : DRMAA_ERRNO_DRMS_INIT_FAILED;
        }
        return 0;
}

int session_close(struct err *err)
{
        pthread_mutex_lock(&session.lock);
        if (session.state != OPENED) {
                pthread_mutex_unlock(&session.lock);
                return no_session(err);
        }
        session.state = CLOSING;
        while (session.calls)
                pthread_cond_wait(&session.left, &session.lock);
        while (session.spare_count)
                free_connection(session.spare[--session.spare_count]);
        for (size_t i = 0; i < session.n; i++)
                free(session.known[i].jobs);
        free(session.known);
        free(session.contact);
        free(session.dir);
        free(session.server);
        session.known = NULL;
        session.contact = session.dir = session.server = NULL;
        session.n = session.cap = 0;
        session.state = CLOSED;
        pthread_mutex_unlock(&session.lock);
        return 0;
}

void session_contact(char *ret, size_t n)
{
        pthread_mutex_lock(&session.lock);
        snprintf(ret, n, "%s", session.contact ? session.contact : "");
        pthread_mutex_unlock(&session.lock);
}

static int send_submit(const struct job_template *t, const struct bulk *bulk, struct cli *cli,
                       struct buf *said, uint64_t *ret, struct err *err)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf text BUF_CLEANUP = {0};
        struct submit s;
        int code, rc = job_template_write(t, bulk, clock_wall_ms() / 1000, &text, err);

        if (rc != 0)
                return rc;
        submit_init(&s, cli, "drmaa");
        s.text = buf_view(&text);
        s.quiet = true;
        code = submit_read(&s);
        if (code == 0 && s.form.part_count != 1)
                code = cli_error(CLI_FAILED, "no \"queue\" may stand in the native specification");
        if (code == 0)
                code = submit_send(&s, &answer);
        submit_deinit(&s);
        if (code != 0) {
                while (said->n && said->p[said->n - 1] == '\n')
                        buf_truncate(said, said->n - 1);
                rc = answer.status ? errno_of(API_REFUSED, &answer) : ask_server(NULL);
                if (rc == 0 || rc == DRMAA_ERRNO_INVALID_JOB)
                        rc = DRMAA_ERRNO_DENIED_BY_DRM;
                return err_set(err, rc, "%s", buf_z(said));
        }
        *ret = (uint64_t)view_integer(view_get(answer.root, "id"), 0);
        return 0;
}

int session_submit(const struct job_template *t, const struct bulk *bulk, uint64_t *ret, struct err *err)
{
        struct buf said BUF_CLEANUP = {0};
        struct cli *cli;
        int rc = enter(err);

        if (rc != 0)
                return rc;
        cli = take_connection();
        cli_say_into(&said);
        rc = send_submit(t, bulk, cli, &said, ret, err);
        cli_say_into(NULL);
        give_connection(cli);
        if (rc == 0) {
                pthread_mutex_lock(&session.lock);
                add_known(*ret, 0, bulk->count, false);
                pthread_mutex_unlock(&session.lock);
        }
        leave();
        return rc;
}

/* Takes a job that has ended out of the table, or says which ids to wait for. DRMAA_NO_ERRNO: go on waiting.
 */
static int reap(const struct job_id *id, struct job_id *ret, int *ret_stat, struct buf *ids, struct err *err)
{
        struct known *k;
        struct job *j;
        bool open = true;
        char text[JOB_ID_TEXT];
        int rc = DRMAA_NO_ERRNO;

        pthread_mutex_lock(&session.lock);
        buf_reset(ids);
        if (id)
                *ret = *id;
        else if (!find_ended(ret, &open) && open)
                open_ids(ids);
        else if (!find_ended(ret, &open))
                rc = err_set(err, DRMAA_ERRNO_INVALID_JOB,
                             "the session has no job that has not been waited for");
        if (rc == DRMAA_NO_ERRNO && ids->n == 0) {
                j = job_of(*ret, &k);
                if (!j || j->phase == REAPED) {
                        rc = no_job(*ret, err);
                } else if (j->phase == ENDED) {
                        *ret_stat = j->stat;
                        set_phase(k, j, REAPED);
                        rc = 0;
                } else {
                        job_id_text(*ret, text);
                        buf_addz(ids, text);
                }
        }
        pthread_mutex_unlock(&session.lock);
        return rc;
}

int session_wait(const struct job_id *id, int64_t timeout_s, struct job_id *ret, int *ret_stat,
                 struct err *err)
{
        struct waiting w __attribute__((cleanup(waiting_deinit))) = {.end_ms = end_of(timeout_s)};
        struct buf ids BUF_CLEANUP = {0};
        int rc = enter(err);

        if (rc != 0)
                return rc;
        if (id)
                rc = adopt(*id, err);
        while (rc == 0) {
                rc = reap(id, ret, ret_stat, &ids, err);
                if (rc != DRMAA_NO_ERRNO)
                        break;
                rc = wait_on(&w, buf_view(&ids), err);
        }
        leave();
        return rc;
}

/* Appends the ids of those jobs that are open, in the API's form; at most as many as fit in a call. */
static void unended(const struct job_id *ids, size_t count, struct buf *out)
{
        char text[JOB_ID_TEXT];

        buf_reset(out);
        pthread_mutex_lock(&session.lock);
        if (!ids)
                open_ids(out);
        for (size_t i = 0; ids && i < count && out->n < IDS_BYTES_MAX; i++) {
                struct known *k;
                struct job *j = job_of(ids[i], &k);

                if (j && j->phase == OPEN) {
                        job_id_text(ids[i], text);
                        buf_printf(out, "%s%s", out->n ? "," : "", text);
                }
        }
        pthread_mutex_unlock(&session.lock);
}

static void dispose_of(const struct job_id *ids, size_t count)
{
        pthread_mutex_lock(&session.lock);
        for (size_t i = 0; ids && i < count; i++) {
                struct known *k;
                struct job *j = job_of(ids[i], &k);

                if (j && j->phase == ENDED)
                        set_phase(k, j, REAPED);
        }
        for (size_t i = 0; !ids && i < session.n; i++)
                for (uint32_t m = 0; session.known[i].ended && m < session.known[i].count; m++)
                        if (session.known[i].jobs[m].phase == ENDED)
                                set_phase(&session.known[i], &session.known[i].jobs[m], REAPED);
        pthread_mutex_unlock(&session.lock);
}

int session_synchronize(const struct job_id *ids, size_t count, int64_t timeout_s, bool dispose,
                        struct err *err)
{
        struct waiting w __attribute__((cleanup(waiting_deinit))) = {.end_ms = end_of(timeout_s)};
        struct buf open BUF_CLEANUP = {0};
        int rc = enter(err);

        if (rc != 0)
                return rc;
        for (size_t i = 0; ids && i < count && rc == 0; i++) {
                rc = adopt(ids[i], err);
                if (rc == DRMAA_ERRNO_INVALID_JOB)
                        rc = 0; /* what is not there has ended */
        }
        while (rc == 0) {
                unended(ids, count, &open);
                if (open.n == 0)
                        break;
                rc = wait_on(&w, buf_view(&open), err);
        }
        if (rc == 0 && dispose)
                dispose_of(ids, count);
        leave();
        return rc;
}

/* ---- one job's state */

static int state_of(struct view row)
{
        struct view state = view_get(row, "state");
        int64_t code = view_integer(view_get(row, "hold_code"), 0);
        bool held;
        int stat;

        if (read_end(row, &held, &stat))
                return stat == 0 ? DRMAA_PS_DONE : DRMAA_PS_FAILED;
        if (view_is(state, "held"))
                return code == HELD_BY_USER || code == HELD_AT_START ? DRMAA_PS_USER_ON_HOLD
                                                                     : DRMAA_PS_SYSTEM_ON_HOLD;
        if (view_is(state, "suspended"))
                return DRMAA_PS_USER_SUSPENDED;
        return view_is(state, "running") || view_is(state, "vacating") ? DRMAA_PS_RUNNING
                                                                       : DRMAA_PS_QUEUED_ACTIVE;
}

static int look_at_job(struct job_id id, struct api_answer *ret, struct view *ret_job, struct err *err)
{
        struct buf path BUF_CLEANUP = {0};
        char text[JOB_ID_TEXT];
        int rc;

        job_id_text(id, text);
        buf_printf(&path, "/v1/jobs/%s", text);
        rc = get_answer(&path, 0, ret, err);
        *ret_job = view_get(ret->root, "job");
        if (!view_there(*ret_job))
                *ret_job = ret->root;
        return rc;
}

int session_state(struct job_id id, int *ret, struct err *err)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view job;
        int rc = enter(err);

        if (rc != 0)
                return rc;
        rc = look_at_job(id, &answer, &job, err);
        if (rc == 0)
                *ret = state_of(job);
        leave();
        return rc;
}

int session_usage(struct job_id id, struct job_usage *ret, struct err *err)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf cpu BUF_CLEANUP = {0};
        struct view job;
        int rc = enter(err);

        if (rc != 0)
                return rc;
        *ret = (struct job_usage){.cpu_s = -1};
        rc = look_at_job(id, &answer, &job, err);
        if (rc == 0) {
                ret->submitted_ms = view_integer(view_get(job, "submitted_ms"), 0);
                ret->started_ms = view_integer(view_get(job, "started_ms"), 0);
                ret->ended_ms = view_integer(view_get(job, "ended_ms"), 0);
                view_text(view_get(view_get(job, "ad"), "RemoteUserCpu"), &cpu);
                if (cpu.n && str_to_double(buf_view(&cpu), &ret->cpu_s) != 0)
                        ret->cpu_s = -1;
        }
        leave();
        return rc;
}

/* ---- control */

static const struct {
        const char *action;
        int refused;    /* when the job's state does not allow it */
        const char *of; /* the jobs of a session that it is done to; NULL: all */
} controls[] = {
        [DRMAA_CONTROL_SUSPEND] = {"suspend", DRMAA_ERRNO_SUSPEND_INCONSISTENT_STATE, "JobStatus == 2"},
        [DRMAA_CONTROL_RESUME] = {"resume", DRMAA_ERRNO_RESUME_INCONSISTENT_STATE, "JobStatus == 7"},
        [DRMAA_CONTROL_HOLD] = {"hold", DRMAA_ERRNO_HOLD_INCONSISTENT_STATE, "JobStatus == 1"},
        [DRMAA_CONTROL_RELEASE] = {"release", DRMAA_ERRNO_RELEASE_INCONSISTENT_STATE, "JobStatus == 5"},
        [DRMAA_CONTROL_TERMINATE] = {"remove", DRMAA_ERRNO_INVALID_JOB, NULL},
};

static bool allowed(int action, int state)
{
        switch (action) {
        case DRMAA_CONTROL_SUSPEND: return state == DRMAA_PS_RUNNING;
        case DRMAA_CONTROL_RESUME: return state == DRMAA_PS_USER_SUSPENDED;
        case DRMAA_CONTROL_HOLD: return state == DRMAA_PS_QUEUED_ACTIVE;
        case DRMAA_CONTROL_RELEASE: return state == DRMAA_PS_USER_ON_HOLD || state == DRMAA_PS_SYSTEM_ON_HOLD;
        default: return true;
        }
}

static int control_all(int action, struct err *err)
{
        struct buf ids BUF_CLEANUP = {0};
        size_t i = 0;
        int rc = 0;

        pthread_mutex_lock(&session.lock);
        while (rc == 0 && i < session.n) {
                for (buf_reset(&ids); i < session.n && ids.n < IDS_BYTES_MAX; i++)
                        if (session.known[i].open && !session.known[i].foreign)
                                buf_printf(&ids, "%s%" PRIu64, ids.n ? "," : "", session.known[i].request);
                pthread_mutex_unlock(&session.lock);
                if (ids.n)
                        rc = act_on_jobs(controls[action].action, buf_view(&ids), controls[action].of,
                                         STR_NONE, err);
                pthread_mutex_lock(&session.lock);
        }
        pthread_mutex_unlock(&session.lock);
        return rc;
}

/* Callers look at a job's state as soon as it was suspended or resumed, and its place is told a little later.
 */
static void await_control(struct job_id id, int action)
{
        int64_t end_ms = clock_boot_ms() + CONTROL_MS;
        int state;

        if (action != DRMAA_CONTROL_SUSPEND && action != DRMAA_CONTROL_RESUME)
                return;
        for (int pause_ms = 5; session_state(id, &state, NULL) == 0 && clock_boot_ms() < end_ms;
             pause_ms += pause_ms / 2) {
                if (state != (action == DRMAA_CONTROL_SUSPEND ? DRMAA_PS_RUNNING : DRMAA_PS_USER_SUSPENDED))
                        return;
                poll(NULL, 0, pause_ms);
        }
}

int session_control(const struct job_id *id, int action, struct err *err)
{
        char text[JOB_ID_TEXT];
        int state, rc;

        if (action < 0 || (size_t)action >= sizeof(controls) / sizeof(controls[0]))
                return err_set(err, DRMAA_ERRNO_INVALID_ARGUMENT, "%d is no action of drmaa_control", action);
        rc = enter(err);
        if (rc != 0)
                return rc;
        if (!id) {
                rc = control_all(action, err);
        } else {
                job_id_text(*id, text);
                rc = session_state(*id, &state, err);
                if (rc == 0 && !allowed(action, state))
                        rc = err_set(err, controls[action].refused,
                                     "job %s cannot be asked to %s in its state", text,
                                     controls[action].action);
                if (rc == 0)
                        rc = act_on_jobs(controls[action].action, str_of(text), NULL, STR_NONE, err);
                if (rc == 0)
                        await_control(*id, action);
        }
        leave();
        return rc;
}
