#include "server/daemon/learned.h"

#include "base/system/clock.h"
#include "base/system/log.h"
#include "core/learned.h"
#include "server/history/keywords.h"
#include "server/loop/turn.h"

#define EVERY_MS  600000
#define BYTES_MAX (16u << 20)
#define NAME      STR("server/learned")
#define KEYWORDS  STR("server/keywords")

static void restore_keywords(struct server *s)
{
        BUF_CLEANUP struct buf data = {.max = BYTES_MAX};
        struct err err = {""};
        int r = store_blob_get(s->store, KEYWORDS, &data, &err);

        s->keywords = keywords_new();
        if (r == 0)
                r = keywords_unpack(s->keywords, buf_view(&data), &err);
        if (r != 0 && r != STORE_NOT_FOUND)
                log_warn("msg=\"keywords of requests are counted anew\" why=\"%s\"",
                         LOG_TEXT(str_of(err.text)));
        s->keywords_kept = keywords_changes(s->keywords);
}

static void keep_keywords(struct server *s)
{
        BUF_CLEANUP struct buf data = {.max = BYTES_MAX};

        if (keywords_changes(s->keywords) == s->keywords_kept || turn_full(s->turn))
                return;
        keywords_pack(s->keywords, &data);
        if (data.overflow)
                return;
        store_batch_blob_put(turn_inform(s->turn), KEYWORDS, buf_view(&data));
        s->keywords_kept = keywords_changes(s->keywords);
}

void learned_restore(struct server *s)
{
        BUF_CLEANUP struct buf data = {.max = BYTES_MAX};
        struct err err = {""};
        int r = store_blob_get(s->store, NAME, &data, &err);

        if (r == 0)
                r = core_learned_unpack(s->core, buf_view(&data), &err);
        if (r != 0 && r != STORE_NOT_FOUND)
                log_warn("msg=\"how long jobs run is learned again\" why=\"%s\"", LOG_TEXT(str_of(err.text)));
        s->learned_count = core_learned_count(s->core);
        s->learned_due_ms = clock_boot_ms() + EVERY_MS;
        restore_keywords(s);
}

void learned_keep(struct server *s)
{
        BUF_CLEANUP struct buf data = {.max = BYTES_MAX};
        uint64_t count = core_learned_count(s->core);

        keep_keywords(s);
        if (count == s->learned_count || turn_full(s->turn))
                return;
        core_learned_pack(s->core, &data);
        if (data.overflow)
                return;
        store_batch_blob_put(turn_inform(s->turn), NAME, buf_view(&data));
        s->learned_count = count;
}

void learned_tick(struct server *s)
{
        if (clock_boot_ms() < s->learned_due_ms)
                return;
        s->learned_due_ms = clock_boot_ms() + EVERY_MS;
        learned_keep(s);
}
