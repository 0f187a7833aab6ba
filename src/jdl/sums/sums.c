#include "jdl/sums/sums.h"

#include <errno.h>

#include "base/format/xml.h"
#include "jdl/sums/request.h"
#include "jdl/sums/schema.h"

struct job {
        const struct form_world *w;
        const struct sums_job *from;
        const struct condor_options *options;
        const struct xml *x;
        struct form *form;
        struct sums_told *told;
        struct err *err;
};

bool sums_is(struct str text)
{
        if (str_starts(text, STR("\xef\xbb\xbf")))
                text = str_skip(text, 3);
        return str_starts(str_trim(text), STR("<"));
}

static int folder(struct job *j, const char *element, char **ret)
{
        const struct xml *generator = xml_child(j->x, "Generator"), *x = xml_child(generator, element);
        BUF_CLEANUP struct buf path = {0}, whole = {0};
        int rc;

        if (!x)
                x = xml_child(generator, "Location");
        if (!x)
                return 0;
        rc = sums_variables(j->w, j->options, x, xml_text(x), &path, j->err);
        if (rc != 0)
                return rc;
        if (str_istarts(buf_view(&path), STR("file:"))) {
                buf_str(&whole, str_skip(buf_view(&path), 5));
                buf_reset(&path);
                buf_str(&path, buf_view(&whole));
        }
        *ret = buf_take(&path);
        return 0;
}

static int generator(struct job *j)
{
        int rc = folder(j, "ReportLocation", &j->told->report_folder);

        if (rc == 0)
                rc = folder(j, "ScriptLocation", &j->told->script_folder);
        return rc ? rc : folder(j, "ListLocation", &j->told->list_folder);
}

static int general(struct job *j)
{
        const char *name = xml_get(j->x, "name"), *split = xml_get(j->x, "splitBy");

        j->told->simulate = sums_true(j->x, "simulateSubmission");
        if (name && !sums_is_one_line(str_of(name)))
                return schema_fail(j->x, j->err, " has a control character in its name");
        buf_str(&j->told->name, str_trim(str_of(name)));
        if (xml_child(j->x, "input") && sums_count(j->x, "nProcesses"))
                return schema_fail(j->x, j->err,
                                   " has nProcesses, which is for jobs without files, and <input>; write "
                                   "maxFilesPerProcess to say how the files are cut");
        if (sums_count(j->x, "nProcesses") > FORM_MEMBERS_MAX)
                return schema_fail(j->x, j->err, " has more than %u nProcesses", FORM_MEMBERS_MAX);
        if (split)
                return schema_fail(
                        j->x, j->err,
                        " has splitBy=\"%.100s\", and files are cut by their number, size or events only; "
                        "write inputOrder=\"%.100s\" to have alike ones together, or a description for each "
                        "value",
                        split, split);
        for (const struct xml *i = j->x->first; i; i = i->next)
                if (xml_is(i, "Action") || xml_is(i, "storageService"))
                        form_warn(j->form, i->line, "<%s> is not acted on", i->name);
        return 0;
}

static int read_job(struct job *j)
{
        struct str command = xml_text(xml_child(j->x, "command"));
        struct sums_request request = {.file = j->from->file,
                                       .id = j->from->request_id,
                                       .task = j->x,
                                       .limits = j->x,
                                       .dataset = j->x,
                                       .processes = sums_count(j->x, "nProcesses")};
        enum sums_inputs from = SUMS_INPUTS_NONE;
        BUF_CLEANUP struct buf words = {0}, line = {0};
        struct sums_input *inputs = NULL;
        size_t cap = 0;
        int rc = general(j);

        if (rc == 0)
                rc = generator(j);
        if (rc != 0)
                return rc;
        for (const struct xml *x = xml_child(j->x, "input"); x; x = xml_next(x, "input")) {
                MEM_GROW(inputs, cap, request.input_count + 1);
                inputs[request.input_count++] = (struct sums_input){.element = x};
        }
        buf_str(&j->told->command, command);
        buf_char(&j->told->command, '\n');
        if (request.input_count > 0)
                from = sums_true(j->x, "copyInputLocally") ? SUMS_INPUTS_COPIED : SUMS_INPUTS_THERE;
        sums_script(command, xml_text(xml_child(j->x, "shell")), from, &j->told->script);
        sums_keywords(j->x, &words);
        buf_printf(&line, "+SumsKeywords = \"%s\"\n", buf_z(&words));
        request.lines = buf_view(&line);
        request.inputs = inputs;
        request.name = buf_view(&j->told->name);
        request.script = buf_view(&j->told->script);
        rc = sums_make(j->w, &request, j->options, j->form, j->err);
        free(inputs);
        return rc;
}

int sums_parse(const struct form_world *w, const struct sums_job *job, const struct condor_options *o,
               struct form *ret, struct sums_told *told, struct err *err)
{
        struct job j = {.w = w, .from = job, .options = o, .form = ret, .told = told, .err = err};
        BUF_CLEANUP struct buf text = {0};
        struct xml *root = NULL;
        int rc;

        if (job->text.n > SUMS_TEXT_MAX)
                return err_set(err, -E2BIG, "%s has more than %u MiB", job->file, SUMS_TEXT_MAX >> 20);
        rc = entities_put_in(job->file, job->text, job->entities, job->entity_count, &text, err);
        if (rc == 0)
                rc = xml_parse(job->file, buf_view(&text), &root, err);
        if (rc == 0)
                rc = schema_check(&sums_schema, root, err);
        j.x = root;
        if (rc == 0)
                rc = read_job(&j);
        xml_free(root);
        return rc;
}

void sums_told_deinit(struct sums_told *t)
{
        buf_deinit(&t->name);
        buf_deinit(&t->script);
        buf_deinit(&t->command);
        free(t->report_folder);
        free(t->script_folder);
        free(t->list_folder);
}
