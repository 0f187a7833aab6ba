/* Ids are sent to the server in portions that fit into its request line. The server answers 404 if one of
 * them names an unknown request; the ids are then requested one at a time. */
#include "cli/condor/select.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "classad/expr.h"
#include "classad/print.h"
#include "cli/client/ids.h"

#define PORTION   3000 /* bytes of ids in a call */
#define PAGE_ROWS 20000

void select_deinit(struct select *s)
{
        free(s->ids);
        buf_deinit(&s->constraint);
}

bool select_is_id(const char *word)
{
        return word[0] >= '0' && word[0] <= '9';
}

void select_owner(struct buf *out, struct str name)
{
        buf_addz(out, str_find(name, '@') < 0 ? "Owner == " : "User == ");
        print_string(out, name);
}

void select_and(struct buf *constraint, struct str expression)
{
        if (constraint->n)
                buf_addz(constraint, " && ");
        buf_char(constraint, '(');
        buf_str(constraint, expression);
        buf_char(constraint, ')');
}

void select_and_given(struct buf *constraint, const char *expression)
{
        BUF_CLEANUP struct buf text = {0};

        expr_text_from_old(str_of(expression), &text);
        select_and(constraint, buf_view(&text));
}

int select_words(struct select *s, const struct flags *f, const char *flag, struct err *err)
{
        BUF_CLEANUP struct buf owners = {0};
        const struct flag_given *g;
        size_t at = 0;

        for (size_t i = 0; i < f->word_count; i++) {
                struct id id;

                s->named = true;
                if (!select_is_id(f->words[i])) {
                        buf_addz(&owners, owners.n ? " || " : "");
                        select_owner(&owners, str_of(f->words[i]));
                        continue;
                }
                if (id_parse(str_of(f->words[i]), &id, err) != 0)
                        return -EINVAL;
                s->jobs |= !id.whole;
                MEM_GROW(s->ids, s->id_cap, s->id_count + 1);
                s->ids[s->id_count++] = f->words[i];
        }
        if (owners.n)
                select_and(&s->constraint, buf_view(&owners));
        while (flag && (g = flags_next(f, flag, &at)))
                select_and_given(&s->constraint, g->words[0]);
        return 0;
}

struct fetching {
        const struct select_fetch *f;
        int64_t left;
        bool enough;
};

static void build_path(const struct fetching *t, struct str ids, struct str cursor, struct buf *path)
{
        const struct select_fetch *f = t->f;
        char number[24];

        buf_reset(path);
        buf_addz(path, f->address);
        api_query(path, "id", ids);
        api_query(path, "state", f->states);
        api_query(path, "constraint", f->constraint);
        api_query(path, "attributes", f->attributes);
        snprintf(number, sizeof(number), "%lld", (long long)(t->left < PAGE_ROWS ? t->left : PAGE_ROWS));
        api_query(path, "limit", str_of(number));
        api_query(path, f->cursor, cursor);
}

static void take_page(struct fetching *t, struct view root, struct buf *next)
{
        struct view item, array = view_enter(root, t->f->array);
        struct str key;
        size_t at = 0;

        while (!t->enough && view_next(array, &at, &item))
                t->enough = t->f->each(t->f->arg, item) != 0 || --t->left <= 0;
        if (t->enough)
                return;
        at = view_leave(root, array, at);
        while (view_member(root, &at, &key, &item))
                if (str_eqz(key, "next"))
                        view_text(item, next);
}

/* Fetches all pages. Returns 0, an exit code, or -ENOENT: nothing was printed, one of the ids does not
 * exist. */
static int fetch(struct cli *cli, struct fetching *t, struct str ids)
{
        struct buf path BUF_CLEANUP = {0}, cursor BUF_CLEANUP = {0};

        do {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct err err = {""};
                int rc;

                build_path(t, ids, buf_view(&cursor), &path);
                rc = api_path_check(&path);
                if (rc != 0)
                        return rc;
                rc = api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, &err);
                if (rc == API_REFUSED && answer.status == 404)
                        return -ENOENT;
                if (rc != 0)
                        return cli_error(api_exit(rc, &answer), "%s", err.text);
                buf_reset(&cursor);
                take_page(t, answer.root, &cursor);
        } while (cursor.n && !t->enough);
        return 0;
}

static int fetch_one_by_one(struct cli *cli, struct fetching *t, struct str ids)
{
        struct str id;
        int code = 0;

        while (code == 0 && !t->enough && str_cut(&ids, ',', &id)) {
                code = fetch(cli, t, id);
                if (code == -ENOENT)
                        code = 0;
        }
        return code;
}

int select_fetch(struct cli *cli, const struct select *s, const struct select_fetch *f)
{
        struct fetching t = {.f = f, .left = f->limit > 0 ? f->limit : INT64_MAX};
        size_t at = 0;
        int code;

        do {
                struct buf ids BUF_CLEANUP = {0};

                while (at < s->id_count && ids.n < PORTION)
                        buf_printf(&ids, "%s%s", ids.n ? "," : "", s->ids[at++]);
                code = fetch(cli, &t, buf_view(&ids));
                if (code == -ENOENT)
                        code = fetch_one_by_one(cli, &t, buf_view(&ids));
        } while (code == 0 && at < s->id_count && !t.enough);
        return code;
}
