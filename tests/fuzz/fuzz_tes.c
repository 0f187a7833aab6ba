/* A task of the Task Execution Service: read, and shown as the service shows it. */
#include <stdint.h>

#include "jdl/tes/tes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct tes_executor_log log = {1, 2, 3, {STR("a\xff"), STR("")}};
        const struct tes_status status = {.id = 7,
                                          .state = TES_COMPLETE,
                                          .created_ms = 1,
                                          .started_ms = 2,
                                          .reason = STR("r"),
                                          .logs = &log,
                                          .log_count = 1};
        const struct str key = STR("k"), value = STR("v");
        json_t *task = size > 65536 ? NULL : json_loadb((const char *)data, size, 0, NULL), *kept;
        struct tes_task t;
        BUF_CLEANUP struct buf out = {0};
        struct json j = {.out = &out};

        if (!task)
                return 0;
        if (tes_read(task, 1000, &t, NULL) == 0) {
                kept = json_pack("{s:O, s:[s]}", "task", t.task, "warnings", "w");
                tes_write(&j, kept, TES_FULL, &status);
                tes_write(&j, kept, TES_BASIC, &status);
                tes_matches(kept, STR("n"), &key, &value, 1);
                tes_ignores_last(kept);
                json_decref(kept);
        }
        tes_task_deinit(&t);
        tes_write(&j, task, TES_FULL, &status); /* not of the form that is kept */
        json_decref(task);
        return 0;
}
