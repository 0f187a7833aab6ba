/* What the server reads back from its store: events and submissions. The first byte chooses. A record that is
 * accepted must come back the same. */
#include <stdint.h>
#include <stdlib.h>

#include "core/model/event.h"
#include "core/model/submission.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void event_again(struct str record)
{
        BUF_CLEANUP struct buf first = {0}, second = {0};
        struct event e = {0}, f = {0};
        struct err err;

        if (event_unpack(&e, record, &err) != 0)
                return;
        event_pack(&first, &e);
        if (event_unpack(&f, buf_view(&first), &err) != 0)
                abort();
        event_pack(&second, &f);
        if (!str_eq(buf_view(&first), buf_view(&second)))
                abort();
        event_deinit(&e);
        event_deinit(&f);
}

static void submission_again(struct str record)
{
        BUF_CLEANUP struct buf first = {0}, second = {0};
        struct submission s = {0}, t = {0};
        struct err err;

        if (submission_unpack(&s, record, &err) != 0)
                return;
        submission_check(&s, &err);
        submission_pack(&first, &s);
        if (submission_unpack(&t, buf_view(&first), &err) != 0)
                abort();
        submission_pack(&second, &t);
        if (!str_eq(buf_view(&first), buf_view(&second)))
                abort();
        submission_deinit(&s);
        submission_deinit(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct str record = str_make((const char *)data + 1, size ? size - 1 : 0);

        if (size > 0 && data[0] == 'e')
                event_again(record);
        else if (size > 0)
                submission_again(record);
        return 0;
}
