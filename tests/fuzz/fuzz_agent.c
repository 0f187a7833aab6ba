/* What an agent says after its greeting: unpacked, checked, and made plain data for the core thread. What is
 * let through keeps to the bounds that command.h and name.h promise, whatever the bytes were. */
#include <stdint.h>
#include <stdlib.h>

#include "base/format/name.h"
#include "server/agents/command.h"
#include "wire/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_one)
{
        if (!true_one)
                abort();
}

static void check_results(const struct command *c)
{
        for (size_t i = 0; i < c->results.count; i++) {
                const struct core_result *r = &c->results.items[i];

                must(r->reason.n <= COMMAND_REASON_MAX);
                must(r->outcome <= CORE_OUTCOME_LOST);
                must(!r->signaled || (r->exit_code > 0 && r->exit_code <= CORE_SIGNAL_MAX));
                must(r->started_ms >= 0 && r->ended_ms >= 0 && r->cpu_user_ms >= 0 && r->cpu_system_ms >= 0);
        }
}

static void check_attempts(const struct command *c)
{
        uint64_t members = 0;

        for (size_t i = 0; i < c->attempt_count; i++)
                members += set_count(c->attempts[i].members);
        must(members <= COMMAND_MEMBERS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct arena arena = {0};
        struct err err = {""};
        const Drover__ToServer *m = (const void *)unpack_message(&arena, &drover__to_server__descriptor,
                                                                 str_make((const char *)data, size));
        struct command *c = m && m->kind_case != DROVER__TO_SERVER__KIND__NOT_SET
                                    ? command_from(m, 1, STR("liar"), &err)
                                    : NULL;

        arena_deinit(&arena); /* the command must not refer to it */
        if (c) {
                if (c->kind == COMMAND_OFFER) {
                        must(name_is_queue(c->offer.queue));
                        must(c->offer.owner_count <= COMMAND_OWNERS_MAX);
                        for (size_t i = 0; i < c->offer.owner_count; i++)
                                must(name_is_line(c->offer.owners[i], COMMAND_REASON_MAX));
                }
                must(c->kind != COMMAND_REFUSE || c->refuse.reason.n <= COMMAND_REASON_MAX);
                must(c->kind != COMMAND_USER_LOG_WRITTEN || c->log_written.error.n <= COMMAND_REASON_MAX);
                must(c->kind != COMMAND_SCRIPT_TEXT ||
                     (c->script.text.n <= COMMAND_SCRIPT_MAX && c->script.error.n <= COMMAND_REASON_MAX));
                if (c->kind == COMMAND_RESULT || c->kind == COMMAND_CHECKPOINT)
                        check_results(c);
                check_attempts(c);
        }
        command_free(c);
        return 0;
}
