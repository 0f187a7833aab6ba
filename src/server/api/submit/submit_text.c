#include "server/api/submit/submit_text.h"

#include <errno.h>

#include "base/system/clock.h"
#include "jdl/condor/condor.h"
#include "jdl/form/form_json.h"
#include "jdl/sums/sums.h"

#define WORK_MAX     (32u << 20) /* bytes processed for all macros: some tenths of a second */
#define WARNINGS_MAX 4000

/* Each sets the flag: the error then says what does read files. */
static int refuse_file(void *arg, const char *path, struct buf *ret)
{
        (void)path, (void)ret;
        *(bool *)arg = true;
        return -EACCES;
}

static int refuse_glob(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                       void *to)
{
        (void)pattern, (void)want, (void)each, (void)to;
        *(bool *)arg = true;
        return -EACCES;
}

static int refuse_catalog(void *arg, struct str name, struct str query, bool events, const char *order,
                          void (*fn)(void *to, const struct form_found *f), void *to, struct err *err)
{
        (void)name, (void)query, (void)events, (void)order, (void)fn, (void)to;
        *(bool *)arg = true;
        return err_set(err, -EACCES, "the catalog is not queried");
}

static const char *refuse_variable(void *arg, const char *name)
{
        (void)arg, (void)name;
        return NULL;
}

int submit_text_read(struct str text, const char *uuid, struct buf *ret_json, struct buf *warnings,
                     struct err *err)
{
        bool refused = false;
        const struct form_world world = {.arg = &refused,
                                         .read_file = refuse_file,
                                         .catalog = refuse_catalog,
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
        if (sums_is(text))
                return err_set(
                        err, -EINVAL,
                        "this is XML: descriptions of SUMS and RDL name files, commands and queries of "
                        "their submitter, and are read by drover submit and star-submit only; here a "
                        "submit file or JSON is expected");
        form_init(&form);
        r = condor_parse(&world, "submit file", text, &options, &form, err);
        if (r != 0 && refused) {
                struct err what = *err;

                err_set(err, r,
                        "%.300s: for a submit file that comes by the API the server reads no files, folders, "
                        "commands and catalogs; drover submit does, and sends the result",
                        what.text);
        }
        for (size_t i = 0; r == 0 && i < form.warning_count && warnings->n < WARNINGS_MAX; i++)
                buf_printf(warnings, "%sline %u: %s", warnings->n ? "; " : "", form.warnings[i].line,
                           form.warnings[i].text);
        if (r == 0)
                form_write_json(ret_json, &form, &(struct form_body){.uuid = uuid});
        form_deinit(&form);
        return r;
}
