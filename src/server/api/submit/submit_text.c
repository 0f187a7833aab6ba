#include "server/api/submit/submit_text.h"

#include <errno.h>
#include <stdlib.h>

#include "base/format/sha256.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "jdl/condor/condor.h"
#include "jdl/rdl/rdl.h"

/* Bytes processed for all macros: some tenths of a second. Those of RDL are short, and take longer. */
#define WORK_MAX      (32u << 20)
#define XML_WORK_MAX  (2u << 20)
#define DEPTH_MAX     64          /* of brackets within brackets */
#define JSON_MAX      (8u << 20)  /* bytes of the document, as many as a submit in JSON may have */
#define JSON_MAX_ROWS (64u << 20) /* with the rows of a dataset of the catalog */
#define WARNINGS_MAX  4000

/* What a text asks of the outside. */
struct asking {
        const struct submit_text *from;
        bool refused; /* something that is read by drover submit only */
        bool catalog; /* a query, without a catalog to ask */
};

static int refuse_file(void *arg, const char *path, struct buf *ret)
{
        (void)path, (void)ret;
        ((struct asking *)arg)->refused = true;
        return -EACCES;
}

static int refuse_glob(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                       void *to)
{
        (void)pattern, (void)want, (void)each, (void)to;
        ((struct asking *)arg)->refused = true;
        return -EACCES;
}

static const char *refuse_variable(void *arg, const char *name)
{
        (void)arg, (void)name;
        return NULL;
}

static int ask_catalog(void *arg, struct str name, struct str query, bool events, const char *order,
                       void (*fn)(void *to, const struct form_found *f), void *to, struct err *err)
{
        struct asking *a = arg;

        if (a->from->catalog)
                return a->from->catalog(a->from->arg, name, query, events, order, fn, to, err);
        a->catalog = true;
        return err_set(err, -EACCES, "the catalog is not queried");
}

static int ask_time_limit(void *arg, const struct str named[FORM_PRESET_KINDS], struct form_time_limit *ret,
                          struct err *err)
{
        const struct submit_text *from = ((struct asking *)arg)->from;

        return from->time_limit(from->arg, named, ret, err);
}

/* ---- the three languages */

/* Warns of what drover submit writes beside the submit, and refuses what is no submit. */
static int check_sums(const struct sums_told *told, struct form *form, struct err *err)
{
        if (told->simulate)
                return err_set(err, -EINVAL,
                               "simulateSubmission is for drover submit and star-submit, which write the "
                               "files that it asks for; here dry_run=1 submits nothing");
        if (told->report_folder || told->script_folder || told->list_folder)
                form_warn(form, 0, "reports, scripts and lists are written by drover submit only");
        return 0;
}

static int parse_xml(const struct form_world *w, const struct submit_text *from, bool rdl,
                     const struct condor_options *o, struct form *form, struct err *err)
{
        BUF_CLEANUP struct buf id = {0}, name = {0};
        struct sums_job job = {.file = "description", .text = from->text};
        struct sums_told told = {0};
        int r;

        form_request_id(from->uuid, &id);
        job.request_id = buf_z(&id);
        r = rdl ? rdl_parse(w, &job, o, form, &name, err) : sums_parse(w, &job, o, form, &told, err);
        if (r == 0)
                r = check_sums(&told, form, err);
        sums_told_deinit(&told);
        return r;
}

/* Returns whether the text may have brackets so deep within others that the reader of YAML takes long. */
static bool is_deep(struct str text)
{
        int depth = 0;

        for (size_t i = 0; i < text.n && depth <= DEPTH_MAX; i++)
                depth += text.p[i] == '[' || text.p[i] == '{'              ? 1
                         : depth && (text.p[i] == ']' || text.p[i] == '}') ? -1
                                                                           : 0;
        return depth > DEPTH_MAX;
}

static int parse(const struct form_world *w, const struct submit_text *from, struct form *form,
                 struct err *err)
{
        bool sums = sums_is(from->text), rdl = rdl_is(from->text);
        size_t work = sums || rdl ? XML_WORK_MAX : WORK_MAX;
        const struct condor_options options = {.work = &work};

        if (rdl && !sums && is_deep(from->text))
                return err_set(err, -EINVAL, "description: brackets are nested more than %d deep", DEPTH_MAX);
        if (sums || rdl)
                return parse_xml(w, from, rdl, &options, form, err);
        return condor_parse(w, "submit file", from->text, &options, form, err);
}

/* Warns of a part's outputs whose destination is a path. */
static void warn_of_paths(struct form *form, const struct form_part *p)
{
        static const char *const names[] = {"Out", "Err", "TransferOutputRemaps"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                const struct form_attribute *a = form_get(p, str_of(names[i]));
                struct str text = a ? str_of(a->text) : STR_NONE;

                if (!str_starts(text, STR("\"/dev/null")) &&
                    (str_starts(text, STR("\"/")) || str_search(text, STR("=/")) >= 0))
                        form_warn(form, a->line,
                                  "the server keeps the outputs until drover get fetches them: a "
                                  "description that comes by the API writes no files elsewhere");
        }
}

/* ---- the lists of a dataset */

static int take_lists(const struct form *form, struct submit_document *ret, struct err *err)
{
        size_t bytes = 0;
        int r = 0;

        ret->lists = mem_zalloc((form->list_count + 1) * sizeof(*ret->lists));
        for (size_t i = 0; r == 0 && i < form->list_count; i++) {
                struct submit_list *l = &ret->lists[ret->list_count++];
                BUF_CLEANUP struct buf name = {0};

                buf_printf(&name, FORM_LIST_PREFIX "%zu", i);
                l->name = buf_take(&name);
                buf_str(&l->text, buf_view(&form->lists[i].text));
                bytes += l->text.n;
                r = bytes > SUBMIT_LISTS_MAX ? err_set(err, -E2BIG,
                                                       "the names of the dataset's files have more than %u "
                                                       "MiB here; drover submit takes more",
                                                       SUBMIT_LISTS_MAX >> 20)
                                             : sha256_hex(buf_view(&l->text), l->sha256, err);
        }
        return r;
}

static int write_json(const struct submit_text *from, const struct form *form, struct submit_document *ret,
                      struct err *err)
{
        struct form_file *files = mem_zalloc((ret->list_count + 1) * sizeof(*files));

        for (size_t i = 0; i < ret->list_count; i++)
                files[i] = (struct form_file){ret->lists[i].name, ret->lists[i].sha256, ret->lists[i].text.n,
                                              false};
        ret->json.max = from->catalog ? JSON_MAX_ROWS : JSON_MAX;
        form_write_json(
                &ret->json, form,
                &(struct form_body){.uuid = from->uuid, .spooled = files, .spooled_count = ret->list_count});
        free(files);
        return buf_check(&ret->json)
                       ? err_set(err, -E2BIG, "the jobs of the description take more than %zu MiB as JSON",
                                 ret->json.max >> 20)
                       : 0;
}

void submit_document_deinit(struct submit_document *d)
{
        for (size_t i = 0; i < d->list_count; i++) {
                free(d->lists[i].name);
                buf_deinit(&d->lists[i].text);
        }
        free(d->lists);
        buf_deinit(&d->json);
        buf_deinit(&d->warnings);
        *d = (struct submit_document){0};
}

int submit_text_read(const struct submit_text *from, struct submit_document *ret, struct err *err)
{
        struct asking asking = {.from = from};
        const struct form_world world = {.arg = &asking,
                                         .read_file = refuse_file,
                                         .catalog = ask_catalog,
                                         .time_limit = ask_time_limit,
                                         .glob = refuse_glob,
                                         .getenv = refuse_variable,
                                         .run = refuse_file,
                                         .cwd = "/",
                                         .no_folder = true,
                                         .now_s = clock_wall_ms() / 1000,
                                         .random = (uint64_t)clock_mono_ns()};
        struct form form;
        int r;

        if (from->text.n > SUBMIT_TEXT_MAX)
                return err_set(err, -E2BIG, "a submit file may have %u KiB here; more comes as JSON",
                               SUBMIT_TEXT_MAX >> 10);
        form_init(&form);
        r = parse(&world, from, &form, err);
        ret->wants_catalog = r != 0 && asking.catalog && !asking.refused;
        if (r != 0 && asking.refused) {
                struct err what = *err;

                err_set(err, r,
                        "%.300s: for a description that comes by the API the server reads no files, folders "
                        "and commands; drover submit does, and sends the result",
                        what.text);
        }
        for (size_t i = 0; r == 0 && i < form.part_count; i++)
                warn_of_paths(&form, &form.parts[i]);
        for (size_t i = 0; r == 0 && i < form.warning_count && ret->warnings.n < WARNINGS_MAX; i++) {
                const struct form_warning *w = &form.warnings[i];

                buf_addz(&ret->warnings, ret->warnings.n ? "; " : "");
                if (w->line)
                        buf_printf(&ret->warnings, "line %u: ", w->line);
                buf_addz(&ret->warnings, w->text);
        }
        if (r == 0) {
                form_name_datasets(&form, from->uuid, "");
                r = take_lists(&form, ret, err);
        }
        if (r == 0)
                r = write_json(from, &form, ret, err);
        form_deinit(&form);
        return r;
}
