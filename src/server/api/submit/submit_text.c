#include "server/api/submit/submit_text.h"

#include <errno.h>

#include "base/system/clock.h"
#include "jdl/condor/condor.h"
#include "jdl/form/form_json.h"

#define WORK_MAX     (32u << 20) /* bytes processed for all macros: some tenths of a second */
#define WARNINGS_MAX 4000

static int refuse_file(void *arg, const char *path, struct buf *ret)
{
        (void)arg, (void)path, (void)ret;
        return -EACCES;
}

static int refuse_glob(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                       void *to)
{
        (void)arg, (void)pattern, (void)want, (void)each, (void)to;
        return -EACCES;
}

static const char *refuse_variable(void *arg, const char *name)
{
        (void)arg, (void)name;
        return NULL;
}

int submit_text_read(struct str text, const char *uuid, struct buf *ret_json, struct buf *warnings,
                     struct err *err)
{
        const struct form_world world = {.read_file = refuse_file,
                                         .glob = refuse_glob,
                                         .getenv = refuse_variable,
                                         .run = refuse_file,
                                         .cwd = "/",
                                         .now_s = clock_wall_ms() / 1000,
                                         .random = (uint64_t)clock_mono_ns()};
        size_t work = WORK_MAX;
        const struct condor_options options = {.work = &work};
        struct form form;
        int r;

        if (text.n > SUBMIT_TEXT_MAX)
                return err_set(err, -E2BIG, "a submit file may have %u KiB here; more comes as JSON",
                               SUBMIT_TEXT_MAX >> 10);
        form_init(&form);
        r = condor_parse(&world, "submit file", text, &options, &form, err);
        for (size_t i = 0; r == 0 && i < form.warning_count && warnings->n < WARNINGS_MAX; i++)
                buf_printf(warnings, "%sline %u: %s", warnings->n ? "; " : "", form.warnings[i].line,
                           form.warnings[i].text);
        if (r == 0)
                form_write_json(ret_json, &form, &(struct form_body){.uuid = uuid});
        form_deinit(&form);
        return r;
}
