/* The body of a submit. What is accepted must survive being packed and read back. */
#include <stdint.h>
#include <stdlib.h>

#include "server/api/submit/submit_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *doc = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
        BUF_CLEANUP struct buf first = {0}, second = {0};
        struct submission s, again;
        const char **uploads;
        struct err err;

        if (doc && submit_json_read(doc, &s, &uploads, &err) == 0) {
                submission_pack(&first, &s);
                if (submission_check(&s, &err) == 0) {
                        if (submission_unpack(&again, buf_view(&first), &err) != 0)
                                abort();
                        submission_pack(&second, &again);
                        if (!str_eq(buf_view(&first), buf_view(&second)))
                                abort();
                        submission_deinit(&again);
                }
                submission_deinit(&s);
                free(uploads);
        }
        json_decref(doc);
        return 0;
}
