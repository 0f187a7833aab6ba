#include "cli/client/catalog_files.h"

#include <errno.h>

#include "base/arena.h"
#include "cli/client/api.h"
#include "cli/client/catalog_program.h"

static struct str text_of(struct view v, struct arena *a)
{
        struct buf text BUF_CLEANUP = {0};

        if (view_type(v) != VIEW_STRING)
                return STR_NONE;
        /* Most have no escapes, and are taken where they lie. */
        if (!memchr(v.text.p, '\\', v.text.n))
                return str_make(v.text.p + 1, v.text.n - 2);
        view_text(v, &text);
        return arena_str(a, buf_view(&text));
}

static void read_replica(struct view v, struct arena *a, struct form_replica *ret)
{
        struct view value;
        struct str key;

        *ret = (struct form_replica){.url = STR_NONE};
        for (size_t at = 0; view_member(v, &at, &key, &value);)
                if (str_eqz(key, "url"))
                        ret->url = text_of(value, a);
                else if (str_eqz(key, "host"))
                        ret->host = text_of(value, a);
                else if (str_eqz(key, "store"))
                        ret->store = text_of(value, a);
}

static void read_metadata(struct view meta, const char *order, struct arena *a, struct form_found *f)
{
        struct view value;
        struct str key;

        for (size_t at = 0; view_member(meta, &at, &key, &value);) {
                if (str_ieqz(key, "events") && view_integer(value, 0) > 0)
                        f->events = (uint64_t)view_integer(value, 0);
                if (order && str_ieqz(key, order))
                        f->order = view_type(value) == VIEW_STRING ? text_of(value, a) : value.text;
        }
}

void catalog_file_read(struct view file, const char *order, struct arena *a, struct form_found *f,
                       struct form_replica *replicas)
{
        struct view value, one;
        struct str key;

        *f = (struct form_found){.replicas = replicas};
        for (size_t at = 0; view_member(file, &at, &key, &value);)
                if (str_eqz(key, "size") && view_integer(value, -1) >= 0) {
                        f->has_size = true;
                        f->bytes = (uint64_t)view_integer(value, 0);
                } else if (str_eqz(key, "metadata")) {
                        read_metadata(value, order, a, f);
                } else if (str_eqz(key, "replicas")) {
                        for (size_t k = 0;
                             f->replica_count < CATALOG_REPLICAS_MAX && view_next(value, &k, &one);)
                                read_replica(one, a, &replicas[f->replica_count++]);
                }
}

int catalog_files(void *arg, struct str name, struct str query, bool events, const char *order,
                  void (*fn)(void *to, const struct form_found *f), void *to, struct err *err)
{
        struct form_replica *replicas;
        struct buf next BUF_CLEANUP = {0};
        struct arena arena = {0};
        struct err none = {""};
        int rc = 0, status = 0;

        if (name.n) { /* where it is no program, the server's settings may have it */
                rc = catalog_program_files(name, query, events, order, fn, to, err);
                if (rc != -ENOENT)
                        return rc;
                none = *err;
        }
        replicas = mem_array(NULL, CATALOG_REPLICAS_MAX, sizeof(*replicas));
        do {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct buf path BUF_CLEANUP = {0};
                struct view list, file, member;
                struct str key;
                size_t at = 0;

                buf_addz(&path, "/v1/catalog/files?limit=10000");
                if (events || order)
                        buf_addz(&path, "&metadata=1");
                api_query(&path, "catalog", name);
                api_query(&path, "query", query);
                api_query(&path, "after", buf_view(&next));
                buf_reset(&next);
                rc = api_call(arg, &(struct api_request){.path = buf_z(&path)}, &answer, err);
                status = answer.status;
                if (rc != 0)
                        break;
                list = view_enter(answer.root, "files");
                while (view_next(list, &at, &file)) {
                        struct form_found f;

                        catalog_file_read(file, order, &arena, &f, replicas);
                        fn(to, &f);
                        arena_reset(&arena);
                }
                for (at = view_leave(answer.root, list, at); view_member(answer.root, &at, &key, &member);)
                        if (str_eqz(key, "next"))
                                view_text(member, &next);
        } while (next.n);
        arena_deinit(&arena);
        free(replicas);
        if (rc != 0 && name.n && (status == 0 || status == 404))
                *err = none; /* neither here nor there, or no server answers */
        return rc == 0 ? 0 : -EIO;
}
