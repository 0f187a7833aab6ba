/* $JOBID and the other variables of jobs become macros of the submit language in URLs. In the command they
 * are variables of the environment; the agent sets those of a dataset. */
#include "jdl/sums/request.h"

#include <ctype.h>
#include <errno.h>

#include "base/arena.h"
#include "base/mem.h"
#include "jdl/script/script.h"

#define FILES_DEFAULT 100u /* nFiles if it is not given */
#define SCRIPT_NAME   ".sums.csh"

struct job {
        const struct form_world *w;
        const struct sums_request *from;
        const struct condor_options *options;
        struct form *form;
        struct err *err;
        struct arena arena;
        struct buf lines; /* lines of the submit language */
        struct condor_dataset dataset;
        struct condor_source *sources;
        bool has_input;
        bool by_events; /* limits count events instead of files */
};

static int fail_element(struct job *j, const struct xml *x, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static int fail_element(struct job *j, const struct xml *x, const char *fmt, ...)
{
        struct err what = {{0}};
        va_list ap;

        va_start(ap, fmt);
        err_vset(&what, 0, fmt, ap);
        va_end(ap);
        return err_set(j->err, -EINVAL, "%s:%u: <%s> %s", x->file, x->line, x->name, what.text);
}

static bool is_true(const char *value)
{
        return value && (str_eqz(str_trim(str_of(value)), "true") || str_eqz(str_trim(str_of(value)), "1"));
}

bool sums_true(const struct xml *x, const char *name)
{
        return is_true(xml_get(x, name));
}

uint64_t sums_count(const struct xml *x, const char *name)
{
        const char *value = xml_get(x, name);
        uint64_t n = 0;

        return value && str_to_u64(str_trim(str_of(value)), &n) == 0 ? n : 0;
}

static double amount_of(const struct xml *x, const char *name)
{
        const char *value = xml_get(x, name);
        double n = 0;

        return value && str_to_double(str_trim(str_of(value)), &n) == 0 ? n : 0;
}

/* ---- variables */

bool sums_is_one_line(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
                        return false;
        return true;
}

/* Appends the macro for a variable of a job; returns false if there is none. */
static bool job_variable(struct job *j, struct str name, struct buf *out)
{
        if (str_eqz(name, "JOBID"))
                buf_printf(out, "%s_$(Process)", j->from->id);
        else if (str_eqz(name, "REQUESTID"))
                buf_addz(out, j->from->id);
        else if (str_eqz(name, "JOBINDEX") || str_eqz(name, "PROCESSID"))
                buf_addz(out, !j->from->composite ? "$(Process)" : j->has_input ? "$(Row)" : "$(Step)");
        else if (str_eqz(name, "INPUTFILECOUNT"))
                buf_addz(out, j->has_input ? "$(DatasetCount)" : "0");
        else if (str_eqz(name, "FILEBASENAME") && j->has_input)
                buf_addz(out, "$(DatasetBase)");
        else
                return false;
        j->dataset.base_name |= str_eqz(name, "FILEBASENAME");
        return true;
}

/* Replaces $NAME and ${NAME} in a text. Variables of jobs become macros, where these are allowed;
 * variables of the submit's environment are replaced by their current values. The result is text of the
 * submit language if `jobs`. */
static int put_variables(struct job *j, const struct xml *x, struct str text, bool jobs, struct buf *out)
{
        while (text.n) {
                ptrdiff_t dollar = str_find(text, '$');
                struct str name = STR_NONE, before = str_head(text, dollar < 0 ? text.n : (size_t)dollar);
                const char *value;
                char z[128];

                if (jobs)
                        script_value(out, before);
                else
                        buf_str(out, before);
                if (dollar < 0)
                        return 0;
                text = str_skip(text, (size_t)dollar + 1);
                if (text.n && text.p[0] == '{') {
                        ptrdiff_t end = str_find(text, '}');

                        name = str_make(text.p + 1, end > 0 ? (size_t)end - 1 : 0);
                        text = str_skip(text, name.n + 2);
                } else {
                        while (name.n < text.n &&
                               (isalnum((unsigned char)text.p[name.n]) || text.p[name.n] == '_'))
                                name = str_head(text, name.n + 1);
                        text = str_skip(text, name.n);
                }
                if (str_starts(text, STR("(")))
                        return fail_element(
                                j, x,
                                "has $(, a macro of HTCondor; SUMS's variables are written as $JOBID "
                                "and $JOBINDEX");
                if (name.n == 0 || name.n >= sizeof(z))
                        return fail_element(j, x, "has a $ without a variable's name after it");
                if (jobs && job_variable(j, name, out))
                        continue;
                memcpy(z, name.p, name.n);
                z[name.n] = 0;
                value = j->w->getenv(j->w->arg, z);
                if (str_eqz(name, "SUBMITTINGDIRECTORY"))
                        value = j->w->cwd;
                if (str_eqz(name, "SUBMITTINGNODE"))
                        value = j->options->submit_host;
                if (!value)
                        return fail_element(
                                j, x, "has $" STR_FMT ", which is not known when it is submitted%s",
                                STR_ARG(name),
                                jobs ? "; $JOBID, $JOBINDEX, $PROCESSID, $REQUESTID, $FILEBASENAME, "
                                       "$INPUTFILECOUNT and the environment of the submit are"
                                     : "; the environment of the submit is");
                if (jobs)
                        script_value(out, str_of(value));
                else
                        buf_addz(out, value);
        }
        return 0;
}

/* ---- URLs */

/* Appends the path of a file: URL of this file system, relative to the submit folder. */
static int put_path(struct job *j, const struct xml *x, const char *attribute, struct str url, bool jobs,
                    struct buf *out)
{
        struct str path = str_trim(str_skip(url, 5));

        if (!str_istarts(url, STR("file:")) || path.n == 0)
                return fail_element(j, x, "%s\"" STR_FMT "\" is not right: a file is written as file:/PATH",
                                    attribute, STR_ARG(str_head(url, 100)));
        if (str_starts(path, STR("//")) && !str_starts(path, STR("///")) &&
            !str_starts(path, STR("//localhost/")))
                return fail_element(j, x,
                                    "%s\"" STR_FMT
                                    "\" is on one machine: here a file that is seen everywhere is "
                                    "expected, as file:/PATH",
                                    attribute, STR_ARG(str_head(url, 100)));
        if (str_starts(path, STR("//localhost/")))
                path = str_skip(path, 11);
        while (str_starts(path, STR("//")))
                path = str_skip(path, 1);
        if (!sums_is_one_line(path))
                return fail_element(j, x, "%s has a control character in a file's name", attribute);
        while (str_starts(path, STR("./")))
                path = str_skip(path, 2);
        if (path.p[0] != '/' && path.p[0] != '$' && !j->w->no_folder)
                buf_printf(out, "%s/", j->w->cwd);
        return put_variables(j, x, path, jobs, out);
}

static int stream(struct job *j, const char *element, const char *keyword)
{
        const struct xml *x = xml_child(j->from->task, element);
        const char *url = x ? xml_get(x, "URL") : NULL;
        BUF_CLEANUP struct buf path = {0};
        int rc;

        if (x && is_true(xml_get(x, "discard"))) {
                buf_printf(&j->lines, "%s = /dev/null\n", keyword);
                return 0;
        }
        if (!url)
                return x ? fail_element(j, x,
                                        "has no URL: it is written as <%s URL=\"file:/PATH/$JOBID.out\"/>",
                                        element)
                         : 0;
        rc = put_path(j, x, "URL=", str_trim(str_of(url)), true, &path);
        if (rc == 0)
                buf_printf(&j->lines, "%s = %s\n", keyword, buf_z(&path));
        return rc;
}

static int streams(struct job *j)
{
        int rc = 0;

        if (!xml_child(j->from->task, "stdout") && !sums_true(j->from->task, "mail") && !j->from->composite)
                return fail_element(j, j->from->task,
                                    "has no <stdout>; write <stdout URL=\"file:/PATH/$JOBID.out\"/>, or "
                                    "mail=\"true\" to do without");
        if (sums_true(j->from->task, "mail"))
                form_warn(j->form, j->from->task->line,
                          "mail: what jobs print is not mailed; drover output shows it");
        rc = stream(j, "stdin", "input");
        if (rc == 0)
                rc = stream(j, "stdout", "output");
        return rc ? rc : stream(j, "stderr", "error");
}

/* ---- inputs that are sent */

struct files {
        struct job *j;
        size_t count;
};

static void add_file(void *to, struct str path)
{
        struct files *f = to;

        while (path.n > 1 && path.p[path.n - 1] == '/')
                path.n--;
        buf_addz(&f->j->lines, f->count++ ? ", " : "transfer_input_files = ");
        script_value(&f->j->lines, path);
}

static int sandbox(struct job *j)
{
        const struct xml *box = xml_child(j->from->task, "SandBox");
        const char *installer = xml_get(box, "installer");
        struct files files = {.j = j};

        if (installer && !str_ieqz(str_of(installer), "ZIP") && !str_ieqz(str_of(installer), "none"))
                return fail_element(j, box, "installer=\"%.50s\" is not known: ZIP and none are", installer);
        for (const struct xml *p = xml_child(box, "Package"); p; p = xml_next(p, "Package"))
                for (const struct xml *x = xml_child(p, "File"); x; x = xml_next(x, "File")) {
                        BUF_CLEANUP struct buf path = {0};
                        size_t before = files.count;
                        int rc = put_path(j, x, "", xml_text(x), false, &path);

                        if (rc != 0)
                                return rc;
                        if (str_find(buf_view(&path), ',') >= 0)
                                return fail_element(j, x, "has a comma in its name, which can't be shipped");
                        if (!strpbrk(buf_z(&path), "*?[")) {
                                add_file(&files, buf_view(&path));
                                continue;
                        }
                        rc = j->w->glob(j->w->arg, buf_z(&path), 'a', add_file, &files);
                        if (rc != 0 || files.count == before)
                                return fail_element(j, x, "\"%.200s\" matches no file", buf_z(&path));
                }
        if (files.count)
                buf_char(&j->lines, '\n');
        return 0;
}

/* ---- outputs */

static void on_folder(void *to, struct str path)
{
        (void)path;
        *(bool *)to = true;
}

/* Appends where an output goes: a file's path, a folder's path with a trailing slash, or a URL. */
static int put_destination(struct job *j, const struct xml *x, struct buf *out)
{
        struct str url = str_trim(str_of(xml_get(x, "toURL")));
        bool folder = false;
        int rc;

        if (str_search(url, STR("://")) > 0 && !str_istarts(url, STR("file:")))
                return put_variables(j, x, url, true, out);
        rc = put_path(j, x, "toURL=", url, true, out);
        if (rc == 0 && out->n && out->p[out->n - 1] != '/' && !memchr(out->p, '$', out->n)) {
                j->w->glob(j->w->arg, buf_z(out), 'd', on_folder, &folder);
                if (folder)
                        buf_char(out, '/');
        }
        return rc;
}

static int outputs(struct job *j)
{
        BUF_CLEANUP struct buf names = {0}, remaps = {0};

        for (const struct xml *x = xml_child(j->from->task, "output"); x; x = xml_next(x, "output")) {
                struct str from = str_trim(str_of(xml_get(x, "fromScratch")));
                BUF_CLEANUP struct buf name = {0}, to = {0};
                int rc;

                if (str_starts(from, STR("$SCRATCH/")))
                        from = str_skip(from, 9);
                while (str_starts(from, STR("./")))
                        from = str_skip(from, 2);
                if (from.n == 0 || from.p[0] == '/' || str_starts(from, STR("../")) ||
                    !sums_is_one_line(from))
                        return fail_element(j, x,
                                            "fromScratch=\"" STR_FMT
                                            "\" is not right: a name or a pattern within "
                                            "$SCRATCH is expected, as *.root",
                                            STR_ARG(str_head(from, 100)));
                rc = put_variables(j, x, from, true, &name);
                if (rc == 0)
                        rc = put_destination(j, x, &to);
                if (rc != 0)
                        return rc;
                if (to.n && to.p[to.n - 1] == '/' && !strpbrk(buf_z(&name), "*?["))
                        buf_str(&to,
                                str_skip(buf_view(&name), (size_t)(str_rfind(buf_view(&name), '/') + 1)));
                if (strpbrk(buf_z(&name), ",;=\"") || strpbrk(buf_z(&to), ";\""))
                        return fail_element(j, x,
                                            "has one of , ; = \" in a name, which outputs can't have here");
                if (j->from->on_output)
                        j->from->on_output(j->from->arg, x, buf_view(&name), buf_view(&to));
                buf_printf(&names, "%s%s", names.n ? ", " : "", buf_z(&name));
                buf_printf(&remaps, "%s%s=%s", remaps.n ? ";" : "", buf_z(&name), buf_z(&to));
        }
        /* No other files are transferred back. */
        buf_printf(&j->lines, "transfer_output_files = %s\n", names.n ? buf_z(&names) : "\"\"");
        if (remaps.n)
                buf_printf(&j->lines, "transfer_output_remaps = \"%s\"\n", buf_z(&remaps));
        return 0;
}

/* ---- input files of the dataset */

/* catalog:HOST?QUERY names STAR's catalog; this server's catalog is used in its place. */
static const char *catalog_url(struct job *j, const struct xml *x, struct str url)
{
        struct str query = str_skip(url, 8), host;
        ptrdiff_t mark = str_find(query, '?');
        BUF_CLEANUP struct buf text = {0};

        host = str_trim(str_head(query, mark > 0 ? (size_t)mark : 0));
        for (size_t i = 0; i < host.n; i++)
                if (!isalnum((unsigned char)host.p[i]) && !strchr(".-_", host.p[i]))
                        host.n = 0;
        if (str_find(host, '.') > 0) {
                form_warn(j->form, x->line, "the catalog " STR_FMT " is this server's own here",
                          STR_ARG(host));
                url = str_skip(query, (size_t)mark);
                buf_addz(&text, "catalog:");
        }
        buf_str(&text, url);
        return arena_dup(&j->arena, buf_z(&text), text.n);
}

static int input(struct job *j, const struct xml *x, struct condor_source *ret)
{
        BUF_CLEANUP struct buf url = {0};
        const char *n = xml_get(x, "nFiles"), *store = xml_get(x, "preferStorage");
        struct str text = str_trim(str_of(xml_get(x, "URL")));
        bool by_events = j->by_events || is_true(xml_get(x, "limitByEvents"));
        uint64_t most = n ? sums_count(x, "nFiles") : FILES_DEFAULT;
        int rc = 0;

        if (!str_istarts(text, STR("catalog:")) && !str_istarts(text, STR("filelist:")) &&
            !str_istarts(text, STR("command:")) && !str_istarts(text, STR("file:")))
                return fail_element(j, x,
                                    "URL=\"" STR_FMT
                                    "\" is not right: file:/PATH, file://HOST/PATH, filelist:PATH, "
                                    "catalog:HOST?QUERY or command:COMMAND is expected",
                                    STR_ARG(str_head(text, 100)));
        if (!sums_is_one_line(text))
                return fail_element(j, x, "URL has a control character in it");
        if (str_istarts(text, STR("command:"))) /* a shell runs the command and expands variables */
                buf_str(&url, text);
        else
                rc = put_variables(j, x, text, false, &url);
        if (rc != 0)
                return rc;
        if (by_events && !n)
                most = 0;
        text = buf_view(&url);
        *ret = (struct condor_source){
                .url = str_istarts(text, STR("catalog:")) ? catalog_url(j, x, text)
                                                          : arena_dup(&j->arena, text.p, text.n),
                .files_max = by_events ? 0 : most,
                .events_max = by_events ? most : 0,
                .every_copy = xml_get(x, "singleCopy") && !is_true(xml_get(x, "singleCopy")),
                .store = store && *store ? store : NULL,
                .line = x->line,
        };
        if (!n && !by_events && !str_istarts(text, STR("file:")))
                form_warn(j->form, x->line,
                          "nFiles is not given, and at most %u files are taken; nFiles=\"all\" takes all",
                          FILES_DEFAULT);
        return 0;
}

static int inputs(struct job *j)
{
        static const char *const syntaxes[] = {"paths", "rootd", "xrootd"};
        const struct sums_request *from = j->from;
        const char *syntax = xml_get(from->dataset, "fileListSyntax"),
                   *order = xml_get(from->dataset, "inputOrder");

        j->sources = mem_zalloc((from->input_count + 1) * sizeof(*j->sources));
        j->dataset.sources = j->sources;
        for (size_t i = 0; i < from->input_count; i++) {
                const struct sums_input *in = &from->inputs[i];
                struct condor_source *to = &j->sources[j->dataset.source_count++];
                int rc = in->element ? input(j, in->element, to) : 0;

                if (rc != 0)
                        return rc;
                if (!in->element)
                        *to = (struct condor_source){
                                .url = in->name, .lines = in->lines, .tag = in->tag, .line = in->line};
                if (order && (!in->element ||
                              !str_istarts(str_trim(str_of(xml_get(in->element, "URL"))), STR("catalog:"))))
                        return fail_element(
                                j, from->dataset,
                                "inputOrder=\"%.100s\" needs inputs of the catalog only, and line %u "
                                "has another one",
                                order, in->element ? in->element->line : in->line);
        }
        for (unsigned i = 0; syntax && i < 3; i++)
                if (str_eqz(str_trim(str_of(syntax)), syntaxes[i]))
                        j->dataset.syntax = (enum condor_list_syntax)i;
        j->dataset.order = order && *order ? order : NULL;
        j->dataset.arg = from->arg;
        j->dataset.on_file = from->on_file;
        return 0;
}

/* ---- limits */

/* Returns a number that is an attribute of <job>, or an element within <ResourceUsage>. */
static uint64_t usage(const struct job *j, const char *attribute, const char *within, const char *element)
{
        const struct xml *x =
                xml_child(xml_child(xml_child(j->from->limits, "ResourceUsage"), within), element);
        uint64_t n = sums_count(j->from->limits, attribute);

        if (n == 0 && x && str_to_u64(xml_text(x), &n) != 0)
                n = 0;
        return n;
}

static int limits(struct job *j)
{
        uint64_t least = sums_count(j->from->limits, "minFilesPerProcess"),
                 most = sums_count(j->from->limits, "maxFilesPerProcess"),
                 events = sums_count(j->from->limits, "maxEvents"),
                 min_memory = usage(j, "minMemory", "Memory", "MinMemory"),
                 max_memory = usage(j, "maxMemory", "Memory", "MaxMemory"),
                 min_disk = usage(j, "minStorageSpace", "StorageSpace", "MinStorage"),
                 max_disk = usage(j, "maxStorageSpace", "StorageSpace", "MaxStorage"),
                 min_time = usage(j, "minWallTime", "Times", "MinWallTime"),
                 max_time = usage(j, "maxWallTime", "Times", "MaxWallTime");
        double rate = amount_of(j->from->limits, "filesPerHour"),
               event_rate = amount_of(j->from->limits, "eventsPerHour");
        const struct xml *priority = xml_child(xml_child(j->from->limits, "ResourceUsage"), "Priority");
        bool soft = is_true(xml_get(j->from->limits, "softLimits"));

        if (least && most && least > most)
                return fail_element(j, j->from->limits, "minFilesPerProcess is more than maxFilesPerProcess");
        if (min_memory && max_memory && min_memory > max_memory)
                return fail_element(j, j->from->limits, "minMemory is more than maxMemory");
        if (min_disk && max_disk && min_disk > max_disk)
                return fail_element(j, j->from->limits, "minStorageSpace is more than maxStorageSpace");
        if (min_time && max_time && min_time > max_time)
                return fail_element(j, j->from->limits, "minWallTime is more than maxWallTime");
        if (max_time > 10000000 || min_time > 10000000)
                return fail_element(j, j->from->limits, "has a wall time of more than 10000000 minutes");
        if (j->by_events) { /* the limit counts events instead of files */
                events = most ? most : events;
                event_rate = rate > 0 ? rate : event_rate;
                rate = 0;
                if (least)
                        form_warn(j->form, j->from->limits->line,
                                  "minFilesPerProcess is not acted on when events are counted");
                most = least = 0;
        }
        if (event_rate > 0 && max_time) {
                uint64_t fits = (uint64_t)(event_rate * (double)max_time / 60);

                if (fits == 0)
                        return fail_element(
                                j, j->from->limits,
                                "maxWallTime=\"%llu\" does not suffice for one event, at %.15g an hour",
                                (unsigned long long)max_time, event_rate);
                events = events && events < fits ? events : fits;
        }
        if (j->has_input) {
                if (least)
                        buf_printf(&j->lines, "min_files_per_job = %llu\n", (unsigned long long)least);
                if (most)
                        buf_printf(&j->lines, "files_per_job = %llu\n", (unsigned long long)most);
                if (events)
                        buf_printf(&j->lines, "events_per_job = %llu\n", (unsigned long long)events);
                if (rate > 0)
                        buf_printf(&j->lines, "files_per_hour = %.15g\n", rate);
                if (xml_get(j->from->limits, "minEvents"))
                        form_warn(j->form, j->from->limits->line, "minEvents is not acted on; maxEvents is");
        }
        if (min_memory || max_memory)
                buf_printf(&j->lines, "request_memory = %llu\n",
                           (unsigned long long)(max_memory ? max_memory : min_memory));
        if (min_disk || max_disk)
                buf_printf(&j->lines, "request_disk = %lluM\n",
                           (unsigned long long)(max_disk ? max_disk : min_disk));
        j->dataset.time_s = max_time * 60;
        j->dataset.events_per_hour = event_rate;
        if (max_time && !soft)
                buf_printf(&j->lines, "allowed_execute_duration = %llu\n", (unsigned long long)max_time * 60);
        if ((!j->has_input || rate == 0) && (soft ? max_time : min_time))
                buf_printf(&j->lines, "+ExpectedRunTime = %llu\n",
                           (unsigned long long)(soft && max_time ? max_time : min_time) * 60);
        if (priority)
                buf_printf(&j->lines, "priority = " STR_FMT "\n", STR_ARG(xml_text(priority)));
        return 0;
}

/* ---- the command */

static void environment(struct job *j)
{
        const char *user = j->w->getenv(j->w->arg, "USER");
        MEM_CLEANUP char *name = str_dupz(j->from->name);
        ARGS_CLEANUP struct args all = {0};
        BUF_CLEANUP struct buf text = {0}, one = {0};
        const char *const names[] = {"SUMS_USER",  "SUMS_AUTHENTICATED_USER",
                                     "SUMS_name",  "SUBMITATTEMPT",
                                     "LOGGING",    "EVENTS_START",
                                     "EVENTS_STOP"};
        const char *const values[] = {user ? user : "", user ? user : "", name, "1", "STD", "-1", "-1"};

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                buf_reset(&one);
                buf_printf(&one, "%s=", names[i]);
                script_value(&one, str_of(values[i]));
                args_add(&all, buf_view(&one));
        }
        if (!j->has_input) { /* with a dataset the agent sets them */
                static const char *const fixed[] = {"INPUTFILECOUNT=0", "PROCESSID=$(Process)",
                                                    "JOBINDEX=$(Process)"};

                for (size_t i = 0; i < 3; i++)
                        args_add(&all, str_of(fixed[i]));
                buf_reset(&one);
                buf_printf(&one, "REQUESTID=%s", j->from->id);
                args_add(&all, buf_view(&one));
                buf_reset(&one);
                buf_printf(&one, "JOBID=%s_$(Process)", j->from->id);
                args_add(&all, buf_view(&one));
                buf_reset(&one);
                buf_addz(&one, "SUBMITTINGDIRECTORY=");
                script_value(&one, str_of(j->w->cwd ? j->w->cwd : ""));
                args_add(&all, buf_view(&one));
                buf_reset(&one);
                buf_printf(&one, "SUBMITTINGNODE=%s", j->options->submit_host ? j->options->submit_host : "");
                args_add(&all, buf_view(&one));
        }
        for (size_t i = 0; j->from->variables && i < j->from->variables->n; i++) {
                buf_reset(&one);
                script_value(&one, str_of(j->from->variables->v[i]));
                args_add(&all, buf_view(&one));
        }
        args_join_v2(&text, &all);
        /* A quote within the quoted value is doubled. */
        buf_addz(&j->lines, "environment = \"");
        for (size_t i = 0; i < text.n; i++) {
                if (text.p[i] == '"')
                        buf_char(&j->lines, '"');
                buf_char(&j->lines, text.p[i]);
        }
        buf_addz(&j->lines, "\"\n");
}

/* Returns whether the shell reads a script; otherwise it is a command to put before one. */
static bool is_interpreter(struct str shell)
{
        static const char *const names[] = {"csh", "tcsh", "sh",   "bash",   "dash",
                                            "ksh", "zsh",  "perl", "python", "python3"};
        struct str rest = shell, word;

        str_word(&rest, &word);
        word = str_skip(word, (size_t)(str_rfind(word, '/') + 1));
        if (str_search(shell, STR(" -c")) >= 0)
                return false;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (str_eqz(word, names[i]))
                        return true;
        return false;
}

/* Copies the files of the job's list, and makes the list and the variables those of the copies. Files that
 * the agent has fetched are in the job's folder already. */
static const char copy_inputs[] =
        "sums_copy() {\n"
        "        case $1 in\n"
        "        root://*|xroot://*) xrdcp --silent \"$1\" \"$2\" </dev/null ;;\n"
        "        *) cp -- \"$1\" \"$2\" ;;\n"
        "        esac\n"
        "}\n"
        "mkdir INPUTFILES || exit 125\n"
        "sums_n=0\n"
        "while IFS= read -r sums_file; do\n"
        "        case $sums_file in\n"
        "        /*|*://*)\n"
        "                sums_local=$SCRATCH/INPUTFILES/${sums_file##*/}\n"
        "                if [ -e \"$sums_local\" ]; then\n"
        "                        mkdir \"INPUTFILES/$sums_n\" || exit 125\n"
        "                        sums_local=$SCRATCH/INPUTFILES/$sums_n/${sums_file##*/}\n"
        "                fi\n"
        "                sums_copy \"$sums_file\" \"$sums_local\" ||\n"
        "                        { echo \"the input $sums_file cannot be copied\" >&2; exit 125; }\n"
        "                ;;\n"
        "        *) sums_local=$SCRATCH/$sums_file ;;\n"
        "        esac\n"
        "        printf '%s\\n' \"$sums_local\"\n"
        "        [ \"$sums_n\" -lt 1000 ] && export \"INPUTFILE$sums_n=$sums_local\"\n"
        "        sums_n=$((sums_n + 1))\n"
        "done <\"$FILELIST\" >input.local.list || exit 125\n"
        "export FILELIST=\"$SCRATCH/input.local.list\"\n";

void sums_script(struct str command, struct str shell, enum sums_inputs inputs, struct buf *out)
{
        size_t quotes = 0;

        buf_addz(out, "export SCRATCH=\"$PWD\"\n"
                      "export SUBMIT_TIME=\"$(date -u '+%Y-%m-%d %H:%M:%S')\"\n");
        if (inputs == SUMS_INPUTS_COPIED)
                buf_addz(out, copy_inputs);
        if (inputs)
                buf_addz(out, "sums_name=${INPUTFILE0##*/}\n"
                              "export FILEBASENAME=\"${sums_name%%.*}\"\n");
        buf_addz(out, "printf '%s\\n' ");
        script_quote(out, command);
        buf_addz(out, " >" SCRIPT_NAME " || exit 125\n");
        if (shell.n == 0) {
                buf_addz(out,
                         "command -v csh >/dev/null || { echo 'the command is for csh, which is not on this "
                         "machine; name another shell' >&2; exit 127; }\n"
                         "exec csh " SCRIPT_NAME "\n");
                return;
        }
        for (size_t i = 0; i < shell.n; i++)
                quotes += shell.p[i] == '\'';
        buf_printf(out, "exec " STR_FMT "%s " SCRIPT_NAME "%s\n", STR_ARG(shell),
                   is_interpreter(shell) ? "" : " csh", quotes % 2 ? "'" : "");
}

/* ---- all of it */

int sums_variables(const struct form_world *w, const struct condor_options *o, const struct xml *x,
                   struct str text, struct buf *out, struct err *err)
{
        struct job j = {.w = w, .options = o, .err = err};

        return put_variables(&j, x, text, false, out);
}

static int make(struct job *j)
{
        const struct sums_request *from = j->from;
        struct condor_options options = *j->options;
        int rc;

        j->has_input = from->input_count > 0;
        j->by_events = sums_true(from->limits, "limitByEvents");
        if (from->name.n) {
                buf_addz(&j->lines, "batch_name = ");
                script_value(&j->lines, from->name);
                buf_char(&j->lines, '\n');
        }
        rc = inputs(j);
        if (rc == 0)
                rc = streams(j);
        if (rc == 0)
                rc = sandbox(j);
        if (rc == 0)
                rc = outputs(j);
        if (rc == 0)
                rc = limits(j);
        if (rc != 0)
                return rc;
        environment(j);
        buf_str(&j->lines, from->lines);
        buf_printf(&j->lines, "+SumsRequestId = \"%s\"\n", from->id);
        if (from->processes)
                buf_printf(&j->lines, "queue %llu\n", (unsigned long long)from->processes);
        options.dataset = &j->dataset;
        return script_job(j->w, from->file, buf_view(&j->lines), from->script, NULL, &options, j->form,
                          j->err);
}

int sums_make(const struct form_world *w, const struct sums_request *from, const struct condor_options *o,
              struct form *form, struct err *err)
{
        struct job j = {.w = w, .from = from, .options = o, .form = form, .err = err};
        int rc = make(&j);

        free(j.sources);
        buf_deinit(&j.lines);
        arena_deinit(&j.arena);
        return rc;
}
