/* What a program for provisioners prints. The first byte is the call, the second one whether the program says
 * that it failed; what stands behind a NUL is its standard error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "provision/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct str s)
{
        if (s.n > PROVISIONER_TEXT_MAX)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct reading r = {0};
        struct str out, errors = STR_NONE;
        const char *end;

        if (size < 2)
                return 0;
        out = str_make((const char *)data + 2, size - 2);
        end = out.n ? memchr(out.p, 0, out.n) : NULL;
        if (end) {
                errors = str_skip(out, (size_t)(end - out.p) + 1);
                out.n = (size_t)(end - out.p);
        }
        answer_read(&r, (enum verb)(data[0] % 4), data[1] % 2 ? 256 : 0, out, errors);
        if (r.a.instance_count > PROVISIONER_INSTANCES_MAX || r.a.offer_count > PROVISIONER_INSTANCES_MAX)
                abort();
        check_text(r.a.why);
        check_text(r.a.id);
        for (size_t i = 0; i < r.a.instance_count; i++) {
                check_text(r.a.instances[i].id);
                check_text(r.a.instances[i].tag);
        }
        for (size_t i = 0; i < r.a.offer_count; i++) {
                check_text(r.a.offers[i].shape);
                check_text(r.a.offers[i].closed);
                if (r.a.offers[i].price_micro < -1 || r.a.offers[i].most < -1)
                        abort();
        }
        reading_deinit(&r);
        return 0;
}
