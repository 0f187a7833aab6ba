#include "cli/slurm/select.h"

#include <errno.h>

#include "classad/print.h"
#include "cli/client/api.h"
#include "cli/slurm/hosts.h"
#include "cli/slurm/ids.h"

#define PAGE_ROWS 20000
#define IDS_BYTES 3000 /* maximum bytes of ids in one request */

void select_deinit(struct select *s)
{
        buf_deinit(&s->ids);
        buf_deinit(&s->constraint);
}

void select_and(struct select *s, const char *fmt, ...)
{
        va_list ap;

        buf_addz(&s->constraint, s->constraint.n ? " && (" : "(");
        va_start(ap, fmt);
        buf_vprintf(&s->constraint, fmt, ap);
        va_end(ap);
        buf_char(&s->constraint, ')');
}

int select_ids(struct select *s, struct str list, struct err *err)
{
        BUF_CLEANUP struct buf tasks = {0};
        size_t depth = 0, start = 0;

        /* a comma in brackets does not separate ids */
        for (size_t i = 0; i <= list.n; i++) {
                struct str one;
                struct job_id id;

                if (i < list.n && list.p[i] == '[')
                        depth++;
                else if (i < list.n && list.p[i] == ']' && depth)
                        depth--;
                if (i < list.n && (list.p[i] != ',' || depth))
                        continue;
                one = str_trim(str_make(list.p + start, i - start));
                start = i + 1;
                if (one.n == 0)
                        continue;
                if (job_id_parse(one, &id, err) != 0)
                        return -EINVAL;
                if (s->ids.n)
                        buf_char(&s->ids, ',');
                if (id.tasks.count) {
                        BUF_CLEANUP struct buf wanted = {0};

                        job_id_select(&id, &s->ids, &wanted);
                        buf_printf(&tasks, "%s(ClusterId == %llu && %s)", tasks.n ? " || " : "",
                                   (unsigned long long)id.request, buf_z(&wanted));
                } else {
                        job_id_select(&id, &s->ids, NULL);
                        buf_printf(&tasks, "%s(ClusterId == %llu%s", tasks.n ? " || " : "",
                                   (unsigned long long)id.request, id.by_member ? " && " : ")");
                        if (id.by_member)
                                buf_printf(&tasks, "ProcId == %u)", id.member);
                }
                s->id_count++;
                job_id_deinit(&id);
        }
        if (str_search(buf_view(&tasks), STR("SlurmTask")) >= 0)
                select_and(s, "%s", buf_z(&tasks));
        return 0;
}

int select_users(struct select *s, struct str list)
{
        BUF_CLEANUP struct buf all = {0};
        struct str one;

        while (str_cut(&list, ',', &one)) {
                buf_printf(&all, "%s%s == ", all.n ? " || " : "", str_find(one, '@') < 0 ? "Owner" : "User");
                print_string(&all, str_trim(one));
        }
        if (all.n)
                select_and(s, "%s", buf_z(&all));
        return 0;
}

int select_me(struct cli *cli, struct select *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf you = {0};
        int code = api_get(cli, "/v1/server", &answer);

        if (code != 0)
                return code;
        view_text(view_get(answer.root, "you"), &you);
        return select_users(s, buf_view(&you));
}

int select_states(struct select *s, struct str list, struct err *err)
{
        struct str one;

        s->any_state = false;
        while (str_cut(&list, ',', &one)) {
                enum record_state state = record_state_of(str_trim(one));

                if (str_ieqz(str_trim(one), "all"))
                        s->any_state = true;
                else if (state < RECORD_STATES)
                        s->states[state] = true;
                else if (!str_ieqz(one, "BF") && !str_ieqz(one, "BOOT_FAIL") && !str_ieqz(one, "PR") &&
                         !str_ieqz(one, "PREEMPTED") && !str_ieqz(one, "RQ") && !str_ieqz(one, "REQUEUED") &&
                         !str_ieqz(one, "RS") && !str_ieqz(one, "RESIZING") && !str_ieqz(one, "RV") &&
                         !str_ieqz(one, "REVOKED") && !str_ieqz(one, "ST") && !str_ieqz(one, "STOPPED") &&
                         !str_ieqz(one, "SE") && !str_ieqz(one, "SPECIAL_EXIT") && !str_ieqz(one, "RF") &&
                         !str_ieqz(one, "RH") && !str_ieqz(one, "SI") && !str_ieqz(one, "SO"))
                        return err_set(err, -EINVAL, "Invalid job state specified: " STR_FMT, STR_ARG(one));
        }
        return 0;
}

bool select_in_list(const char *list, struct str word)
{
        struct str rest = str_of(list), one;

        while (rest.p && str_cut(&rest, ',', &one))
                if (str_eq(str_trim(one), word))
                        return true;
        return false;
}

static bool list_has(const char *list, const struct record *r,
                     void (*write)(const struct record *, struct buf *))
{
        BUF_CLEANUP struct buf text = {0};

        if (!list)
                return true;
        write(r, &text);
        return select_in_list(list, buf_view(&text));
}

static void write_account(const struct record *r, struct buf *out)
{
        record_text(r, "AcctGroup", "", out);
}

static void write_qos(const struct record *r, struct buf *out)
{
        record_text(r, "QOS", "", out);
}

bool select_takes(const struct select *s, const struct record *r)
{
        return (s->any_state || s->states[r->state]) && list_has(s->names, r, record_name) &&
               list_has(s->partitions, r, record_partition) && list_has(s->accounts, r, write_account) &&
               list_has(s->nodes, r, record_node) && list_has(s->qos, r, write_qos);
}

struct fetching {
        struct cli *cli;
        const struct select *s;
        const char *address, *cursor, *more;
        void (*each)(void *arg, const struct record *r);
        void *arg;
};

static void take_page(const struct fetching *f, struct view root, struct buf *next)
{
        struct view item, array = view_enter(root, "jobs");
        struct str key;
        size_t at = 0;

        while (view_next(array, &at, &item)) {
                struct record r;

                record_read(item, f->cli->now_ms / 1000, &r);
                f->each(f->arg, &r);
        }
        at = view_leave(root, array, at);
        while (view_member(root, &at, &key, &item))
                if (str_eqz(key, "next"))
                        view_text(item, next);
}

/* Fetches all pages for these ids. */
static int select_request(const struct fetching *f, struct str ids)
{
        BUF_CLEANUP struct buf path = {0}, cursor = {0};

        do {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct err err = {""};
                int rc;

                buf_reset(&path);
                buf_addz(&path, f->address);
                api_query(&path, "id", ids);
                api_query(&path, "constraint", buf_view(&f->s->constraint));
                api_query(&path, "attributes", STR(RECORD_ATTRIBUTES));
                buf_printf(&path, "&limit=%d%s", PAGE_ROWS, f->more);
                api_query(&path, f->cursor, buf_view(&cursor));
                rc = api_path_check(&path);
                if (rc != 0)
                        return rc;
                rc = api_call(f->cli, &(struct api_request){.path = buf_z(&path)}, &answer, &err);
                if (rc == API_REFUSED && answer.status == 404)
                        return SELECT_NO_SUCH_ID;
                if (rc != 0)
                        return cli_error(1, "error: %s", err.text);
                buf_reset(&cursor);
                take_page(f, answer.root, &cursor);
        } while (cursor.n);
        return 0;
}

int select_fetch(struct cli *cli, const struct select *s, const char *address, const char *cursor,
                 const char *more, void (*each)(void *arg, const struct record *r), void *arg)
{
        struct fetching f = {cli, s, address, cursor, more, each, arg};
        struct str rest = buf_view(&s->ids), id;
        int code = 0;

        if (s->id_count == 0)
                return select_request(&f, STR_NONE);
        if (s->id_count == 1 || rest.n <= IDS_BYTES) {
                code = select_request(&f, rest);
                if (code != SELECT_NO_SUCH_ID || s->id_count == 1)
                        return code;
        }
        for (code = 0; code == 0 && str_cut(&rest, ',', &id);) {
                code = select_request(&f, id);
                if (code == SELECT_NO_SUCH_ID)
                        code = 0;
        }
        return code;
}
