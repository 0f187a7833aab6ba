#include "server/daemon/learned.h"

#include "base/system/clock.h"
#include "base/system/log.h"
#include "core/learned.h"
#include "server/loop/turn.h"

#define EVERY_MS  600000
#define BYTES_MAX (16u << 20)
#define NAME      STR("server/learned")

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
}

void learned_keep(struct server *s)
{
        BUF_CLEANUP struct buf data = {.max = BYTES_MAX};
        uint64_t count = core_learned_count(s->core);

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
