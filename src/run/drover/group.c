/* Puts tasks that are alike into one request of the other server.
 *
 * Tasks are alike if their attributes, files and origins are the same except for texts in which jobs of one
 * description differ: arguments, environment, streams. Those become variables, with a row of items for each
 * task, as a submit file's `queue … from` makes them. A task with a text that a row cannot hold (a newline)
 * gets a request of its own.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format/hex.h"
#include "base/format/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "run/drover/credentials.h"
#include "run/drover/describe.h"
#include "run/drover/group.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

#define TASKS_MAX 1000       /* most tasks of a request */
#define ITEMS_MAX (3u << 20) /* most bytes of items, since a submission has at most 8 MiB */
#define JOBS_MAX  1000       /* most bytes of the jobs' names in messages */

/* ---- comparison of tasks */

static bool may_differ(const struct remote_word *w)
{
        static const char *const names[] = {
                "Arguments",      "Environment",       "In", "Out", "Err", "Iwd", "Cmd",
                "TransferOutput", "TransferCheckpoint"};

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (w->text && !strcmp(w->name, names[i]))
                        return true;
        return false;
}

static bool fits_row(const struct remote_word *w)
{
        return !strpbrk(w->value, "\n\x1f") && !strstr(w->value, "$$");
}

/* Writes what tasks that are alike have in common; returns the size that a task's row may take. */
static size_t key_of(const struct remote_task *t, struct buf *key)
{
        size_t row = 0;
        bool fits = true;

        buf_printf(key, "%s\n", t->origin);
        for (size_t i = 0; i < t->word_count; i++) {
                const struct remote_word *w = &t->words[i];
                bool differs = may_differ(w);

                buf_printf(key, "%s=%s\n", w->name, differs ? "" : w->value);
                if (!strcmp(w->name, REMOTE_CREDENTIALS)) /* named credentials belong to one request */
                        buf_printf(key, "%llu\n", (unsigned long long)t->id.request);
                row += differs ? strlen(w->value) + 1 : 0;
                fits &= !differs || fits_row(w);
        }
        for (size_t i = 0; i < t->files.n; i++) {
                const struct remote_file *file = &t->files.v[i];

                buf_printf(key, "%s %d %s\n", file->sha256, (file->mode & 0111) != 0, file->name);
        }
        if (!fits)
                buf_printf(key, "%p", (const void *)t);
        return row;
}

/* ---- the document */

struct alike {
        struct remote_task *const *tasks;
        size_t count;
        bool *differs; /* for each attribute */
};

static void compare_words(struct alike *a)
{
        const struct remote_task *first = a->tasks[0];

        a->differs = mem_zalloc(first->word_count + 1);
        for (size_t i = 0; i < first->word_count; i++)
                for (size_t k = 1; k < a->count && !a->differs[i]; k++)
                        a->differs[i] = strcmp(a->tasks[k]->words[i].value, first->words[i].value) != 0;
}

static void write_attributes(struct json *j, const struct alike *a)
{
        json_key(j, "attributes");
        json_open(j, '{');
        for (size_t i = 0; i < a->tasks[0]->word_count; i++) {
                const struct remote_word *w = &a->tasks[0]->words[i];
                BUF_CLEANUP struct buf b = {0};

                if (a->differs[i])
                        buf_printf(&b, "\"$(hop_%s)\"", w->name);
                else if (w->text)
                        remote_quoted(&b, str_of(w->value));
                else
                        buf_addz(&b, w->value);
                json_kstr(j, w->name, buf_view(&b));
        }
        json_close(j, '}');
}

static void group_write_names(struct json *j, const char *key, const char *before, const struct alike *a)
{
        json_key(j, key);
        json_open(j, '[');
        for (size_t i = 0; i < a->tasks[0]->word_count; i++) {
                BUF_CLEANUP struct buf b = {0};

                if (!a->differs[i])
                        continue;
                buf_printf(&b, "%s%s", before, a->tasks[0]->words[i].name);
                json_str(j, buf_view(&b));
        }
        json_close(j, ']');
}

/* Adds an item. Macros in items are expanded there, so the value is quoted to be taken literally. */
static void add_item(struct buf *out, const char *value)
{
        for (; *value; value++)
                if (*value == '$')
                        buf_addz(out, "$(DOLLAR)");
                else
                        buf_char(out, *value);
}

static void write_rows(struct json *j, const struct alike *a)
{
        BUF_CLEANUP struct buf items = {0};
        size_t columns = 0;

        for (size_t k = 0; k < a->count; k++) {
                columns = 0;
                for (size_t i = 0; i < a->tasks[0]->word_count; i++)
                        if (a->differs[i]) {
                                buf_addz(&items, columns++ ? "\x1f" : "");
                                add_item(&items, a->tasks[k]->words[i].value);
                        }
                buf_char(&items, '\n');
        }
        if (columns)
                json_kstr(j, "items", buf_view(&items));
        else
                json_kint(j, "steps", (int64_t)a->count);
}

/* Writes the jobs as "7.0-9,8.3"; a name that is not a number and a member is written as it is. */
static void write_jobs(struct json *j, struct remote_task *const *tasks, size_t count)
{
        BUF_CLEANUP struct buf all = {.max = 0};
        struct set members = {0};
        struct str request = STR_NONE;

        for (size_t i = 0; i <= count && all.n < JOBS_MAX; i++) {
                struct str name = str_of(i < count ? tasks[i]->job : NULL), first = STR_NONE;
                uint64_t member = 0;
                bool good =
                        str_cut(&name, '.', &first) && str_to_u64(name, &member) == 0 && member < UINT32_MAX;

                if (set_count(&members) && !(good && str_eq(first, request))) {
                        buf_printf(&all, "%s" STR_FMT ".", all.n ? "," : "", STR_ARG(request));
                        set_print(&all, &members);
                        set_deinit(&members);
                        members = (struct set){0};
                }
                if (good)
                        set_add(&members, (uint32_t)member);
                else if (i < count && (i == 0 || strcmp(tasks[i]->job, tasks[i - 1]->job) != 0))
                        buf_printf(&all, "%s%s", all.n ? "," : "", tasks[i]->job);
                request = first;
        }
        set_deinit(&members);
        json_kstr(j, "job", str_head(buf_view(&all), all.n < JOBS_MAX ? all.n : JOBS_MAX));
}

void remote_parts(struct json *j, struct remote_task *const *tasks, size_t count)
{
        struct alike a = {tasks, count, NULL};

        compare_words(&a);
        json_key(j, "parts");
        json_open(j, '[');
        json_open(j, '{');
        write_attributes(j, &a);
        group_write_names(j, "late", "", &a);
        group_write_names(j, "variables", "hop_", &a);
        write_rows(j, &a);
        free(a.differs);
        json_close(j, '}');
        json_close(j, ']');
}

void remote_document(struct buf *out, const char *uuid, struct remote_task *const *tasks, size_t count)
{
        struct json j = {.out = out};

        json_open(&j, '{');
        json_kstrz(&j, "uuid", uuid);
        json_key(&j, "origin");
        json_open(&j, '{');
        write_jobs(&j, tasks, count);
        buf_printf(out, ",%s", tasks[0]->origin);
        json_close(&j, '}');
        remote_parts(&j, tasks, count);
}

/* ---- making requests */

/* Makes the uuid, which is the same for the same attempts at every call. RFC 4122, in the form of version 5
 * with SHA-256 (version 8 of RFC 9562). */
static void name_it(struct remote_task *const *tasks, size_t count, char uuid[UUID_TEXT])
{
        BUF_CLEANUP struct buf b = {0};
        unsigned char h[32];

        for (size_t i = 0; i < count; i++) {
                struct run_id id = tasks[i]->id;

                buf_printf(&b, "%s%s/%llu.%u/%u/%u", i ? "\n" : "", i ? "" : tasks[0]->servers,
                           (unsigned long long)id.request, id.member, id.fence, id.step);
        }
        EVP_Digest(b.p, b.n, h, NULL, EVP_sha256(), NULL);
        h[6] = (unsigned char)((h[6] & 0x0f) | 0x80);
        h[8] = (unsigned char)((h[8] & 0x3f) | 0x80);
        hex_print_uuid(uuid, h);
}

struct gathered {
        struct gathered *next;
        struct remote_task **tasks;
        size_t count, cap, bytes;
};

static void make_request(struct remote *f, struct gathered *g)
{
        char uuid[UUID_TEXT];
        BUF_CLEANUP struct buf document = {0};

        name_it(g->tasks, g->count, uuid);
        struct remote_request *r = remote_request_new(f, uuid, g->count);
        for (size_t i = 0; i < g->count; i++) {
                r->tasks[i] = g->tasks[i];
                r->tasks[i]->in = r;
                r->tasks[i]->member = (uint32_t)i;
                if (!r->credentials) {
                        r->credentials = r->tasks[i]->credentials;
                        r->tasks[i]->credentials = NULL;
                }
                remote_credentials_free(&r->tasks[i]->credentials);
        }
        r->left = g->count;
        remote_document(&document, uuid, g->tasks, g->count);
        r->submission = buf_take(&document);
        remote_request_save(r);
}

void remote_group(struct remote *f)
{
        struct map *open = map_new();
        struct gathered *all = NULL, **last = &all;

        for (struct remote_task *t = f->table.all; t; t = t->next) {
                BUF_CLEANUP struct buf key = {0};

                if (t->state != REMOTE_READY)
                        continue;
                size_t row = key_of(t, &key);
                struct gathered *g = map_get(open, buf_view(&key));
                if (!g || g->count == TASKS_MAX || g->bytes + row > ITEMS_MAX) {
                        g = *last = mem_new(struct gathered);
                        last = &g->next;
                        map_put(open, buf_view(&key), g);
                }
                MEM_GROW(g->tasks, g->cap, g->count + 1);
                g->tasks[g->count++] = t;
                g->bytes += row;
        }
        map_free(open);
        while (all) {
                struct gathered *g = all;

                all = g->next;
                make_request(f, g);
                free(g->tasks);
                free(g);
        }
}
