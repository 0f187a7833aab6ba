/* The outputs are in a list by age, youngest last, so that old ones are found without a search. */
#include "server/files/outputs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "server/loop/turn.h"
#include "spool/spool.h"

#define VERSION 2 /* version 1 had no time */

struct output {
        struct output *older, *younger;
        int64_t at_ms;
        char hash[SPOOL_HASH_TEXT];
};
struct outputs {
        struct map *by_hash;
        struct output *oldest, *youngest;
};

static void unlink_output(struct outputs *o, struct output *k)
{
        *(k->older ? &k->older->younger : &o->oldest) = k->younger;
        *(k->younger ? &k->younger->older : &o->youngest) = k->older;
}

/* Links the output as the youngest, unless the clock has gone back. */
static void link_output(struct outputs *o, struct output *k)
{
        struct output *after = o->youngest;

        while (after && after->at_ms > k->at_ms)
                after = after->older;
        k->older = after;
        k->younger = after ? after->younger : o->oldest;
        *(k->older ? &k->older->younger : &o->oldest) = k;
        *(k->younger ? &k->younger->older : &o->youngest) = k;
}

static void write_output(struct server *s, const struct output *k)
{
        BUF_CLEANUP struct buf name = {0}, value = {0};

        buf_printf(&name, "kept/%s", k->hash);
        pack_u64(&value, VERSION);
        pack_i64(&value, k->at_ms);
        store_batch_blob_put(turn_batch(s->turn), buf_view(&name), buf_view(&value));
}

void outputs_keep(struct server *s, struct outputs *o, const char *hash)
{
        struct output *k = map_get(o->by_hash, str_of(hash));

        if (k) {
                unlink_output(o, k);
        } else {
                k = mem_new(struct output);
                snprintf(k->hash, sizeof(k->hash), "%s", hash);
                map_put(o->by_hash, str_of(hash), k);
        }
        k->at_ms = clock_wall_ms();
        link_output(o, k);
        write_output(s, k);
}

bool outputs_has(const struct outputs *o, struct str hash)
{
        return map_get(o->by_hash, hash) != NULL;
}

bool outputs_next(const struct outputs *o, size_t *at, struct str *ret_hash)
{
        return map_next(o->by_hash, at, ret_hash, NULL);
}

size_t outputs_prune(struct server *s, struct outputs *o, int64_t before_ms, size_t most)
{
        size_t n = 0;

        for (; n < most && o->oldest && o->oldest->at_ms < before_ms; n++) {
                BUF_CLEANUP struct buf name = {0};
                struct output *k = o->oldest;

                buf_printf(&name, "kept/%s", k->hash);
                store_batch_blob_delete(turn_batch(s->turn), buf_view(&name));
                unlink_output(o, k);
                map_take(o->by_hash, str_of(k->hash));
                free(k);
        }
        return n;
}

/* ---- opening */

struct loading {
        struct server *server;
        struct outputs *outputs;
        struct output **all;
        size_t count, cap;
};

static int compare_outputs(const void *a, const void *b)
{
        const struct output *x = *(struct output *const *)a, *y = *(struct output *const *)b;

        return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

static int on_output(void *arg, struct str name)
{
        struct loading *l = arg;
        BUF_CLEANUP struct buf value = {0};
        struct str hash = str_skip(name, sizeof("kept/") - 1);
        struct output *k = mem_new(struct output);

        snprintf(k->hash, sizeof(k->hash), STR_FMT, STR_ARG(str_head(hash, SPOOL_HASH_TEXT - 1)));
        if (store_blob_get(l->server->store, name, &value, NULL) == 0) {
                struct unpack u = unpack_from(buf_view(&value));

                if (unpack_u64(&u) == VERSION)
                        k->at_ms = unpack_i64(&u);
        }
        if (k->at_ms == 0) { /* the output's age counts from now */
                k->at_ms = clock_wall_ms();
                write_output(l->server, k);
        }
        map_put(l->outputs->by_hash, str_of(k->hash), k);
        MEM_GROW(l->all, l->cap, l->count + 1);
        l->all[l->count++] = k;
        return 0;
}

int outputs_open(struct server *s, struct outputs **ret, struct err *err)
{
        struct outputs *o = mem_new(struct outputs);
        struct loading l = {.server = s, .outputs = o};
        int r;

        o->by_hash = map_new();
        *ret = o;
        r = store_blob_list(s->store, STR("kept/"), on_output, &l, err);
        if (l.count)
                qsort(l.all, l.count, sizeof(*l.all), compare_outputs);
        for (size_t i = 0; i < l.count; i++)
                link_output(o, l.all[i]);
        free(l.all);
        return r;
}

void outputs_free(struct outputs *o)
{
        if (!o)
                return;
        while (o->oldest) {
                struct output *k = o->oldest;

                o->oldest = k->younger;
                free(k);
        }
        map_free(o->by_hash);
        free(o);
}
