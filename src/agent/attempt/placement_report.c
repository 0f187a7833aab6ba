#include "agent/attempt/placement_report.h"

#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/model/attempt.h"
#include "agent/model/expand.h"
#include "base/format/hex.h"
#include "base/mem.h"

#define REPORT_MAX 16384 /* longest report: it has a URL */

/* The copy is registered, if its job's author wants that and the mover has summed it. */
static void take_copy(struct job_result *r, const json_t *report, uint64_t bytes)
{
        const char *url = json_string_value(json_object_get(report, "to")),
                   *sum = json_string_value(json_object_get(report, "sha256"));
        struct output_ref o = {.size = bytes};

        if (!url || !sum || !json_is_true(json_object_get(report, "ok")) ||
            hex_read(str_of(sum), o.sha256, sizeof(o.sha256)) != 0)
                return;
        o.name = mem_dupz(url);
        MEM_GROW(r->sent, r->sent_cap, r->sent_count + 1);
        r->sent[r->sent_count++] = o;
}

static void take(struct job_result *r, const json_t *report, bool registers)
{
        const char *op = json_string_value(json_object_get(report, "op"));
        json_int_t bytes = json_integer_value(json_object_get(report, "bytes"));

        if (!op || bytes <= 0)
                return;
        if (!strcmp(op, "rm")) {
                r->bytes_freed = (uint64_t)bytes;
                return;
        }
        r->bytes_in += (uint64_t)bytes;
        if (strcmp(op, "transfer") != 0)
                return;
        r->bytes_out += (uint64_t)bytes;
        if (registers)
                take_copy(r, report, (uint64_t)bytes);
}

void placement_report_read(struct attempt *at)
{
        char room[REPORT_MAX];
        struct stat st;
        bool kept;
        int index = expand_stream_file(at, at->step, false, &kept, NULL);
        int fd = index < 0 ? -1 : expand_stream_open(at, index);

        if (fd < 0)
                return;
        off_t at_byte = fstat(fd, &st) == 0 && st.st_size > REPORT_MAX ? st.st_size - REPORT_MAX : 0;
        ssize_t n = pread(fd, room, sizeof(room), at_byte);
        close(fd);
        struct str text = str_trim(str_make(room, n > 0 ? (size_t)n : 0));
        struct str line = str_skip(text, (size_t)(str_rfind(text, '\n') + 1));
        json_t *report = json_loadb(line.p, line.n, 0, NULL);
        take(&at->result, report, at->t->m->register_outputs);
        json_decref(report);
}
