/* What programs read of the output: the number in "submitted to cluster 7." (DAGMan, Galaxy, Cromwell, dask),
 * the first id of -terse's "7.0 - 7.4" (Nextflow). */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/client/ship.h"
#include "cli/client/submit.h"
#include "cli/condor/condor.h"

#define DOTS_MAX 60

struct lines {
        char **items;
        size_t count, cap;
};

static void lines_deinit(struct lines *l)
{
        for (size_t i = 0; i < l->count; i++)
                free(l->items[i]);
        free(l->items);
}
#define LINES_CLEANUP __attribute__((cleanup(lines_deinit)))

static void add_line(struct lines *l, const char *begin, const char *const *words, size_t count)
{
        struct buf text BUF_CLEANUP = {0};

        buf_addz(&text, begin);
        for (size_t i = 0; i < count; i++)
                buf_printf(&text, "%s%s", i ? " " : "", words[i]);
        MEM_GROW(l->items, l->cap, l->count + 1);
        l->items[l->count++] = buf_take(&text);
}

/* The lines that flags stand for. */
static void take_flags(const struct flags *f, struct lines *l)
{
        const struct flag_given *g;
        size_t at = 0;

        while ((g = flags_next(f, "append", &at)))
                add_line(l, "", g->words, 1);
        for (at = 0; (g = flags_next(f, "queue", &at));)
                add_line(l, "queue ", g->words, g->count);
        for (at = 0; (g = flags_next(f, "batch-name", &at));)
                add_line(l, "batch_name = ", g->words, 1);
        if (flags_has(f, "spool"))
                add_line(l, "should_transfer_files = YES", NULL, 0);
}

/* Separates settings from the name of the file. */
static int take_words(const struct flags *f, struct lines *first, const char **ret_file)
{
        const char *file = flags_text(f, "file");

        for (size_t i = 0; i < f->word_count; i++) {
                if (str_find(str_of(f->words[i]), '=') > 0)
                        add_line(first, "", f->words + i, 1);
                else if (!file)
                        file = f->words[i];
                else
                        return cli_error(1, "one submit file at a time: %s or %s", file, f->words[i]);
        }
        *ret_file = file ? file : flags_has(f, "queue") ? "/dev/null" : "-";
        return 0;
}

/* Prints an ad for each queue statement, before its macros are filled in. */
static int dry_run(struct submit *s, const char *path)
{
        bool standard = strcmp(path, "-") == 0;
        FILE *to = standard ? stdout : fopen(path, "we");

        if (!to)
                return cli_error(1, "%s could not be written", path);
        for (size_t i = 0; i < s->form.part_count; i++) {
                const struct form_part *p = &s->form.parts[i];

                for (size_t a = 0; a < p->attribute_count; a++)
                        fprintf(to, "%s=%s\n", p->attributes[a].name, p->attributes[a].text);
                fputc('\n', to);
        }
        if (!standard && fclose(to) != 0)
                return cli_error(1, "%s could not be written", path);
        printf("Dry-Run job(s)\n%llu job(s) dry-run to cluster 1.\n",
               (unsigned long long)form_members(&s->form));
        return 0;
}

static int submit_post(struct submit *s, const struct flags *f)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        long long id, jobs;
        int code = submit_send(s, &answer);

        if (code != 0)
                return code;
        id = view_integer(view_get(answer.root, "id"), 0);
        jobs = view_integer(view_get(answer.root, "jobs"), 0);
        if (flags_has(f, "terse")) {
                printf("%lld.0 - %lld.%lld\n", id, id, jobs - 1);
                return 0;
        }
        printf("Submitting job(s)");
        for (long long i = 0; i < jobs && i < DOTS_MAX; i++)
                putchar('.');
        printf("\n%lld job(s) submitted to cluster %lld.\n", jobs, id);
        return 0;
}

static int submit_one_file(struct cli *cli, const struct flags *f, const char *file,
                           const struct lines *first, const struct lines *lines)
{
        struct err err = {""};
        struct submit s;
        int64_t most;
        int code;

        if (flags_number(f, "maxjobs", 0, &most, &err) != 0)
                return cli_error(1, "%s", err.text);
        submit_init(&s, cli, file);
        s.lines = (const char *const *)lines->items;
        s.line_count = lines->count;
        s.first = (const char *const *)first->items;
        s.first_count = first->count;
        /* Nextflow reads standard error and output as one. */
        s.quiet = flags_has(f, "terse");
        code = submit_read(&s);
        if (code == 0 && ship_find_programs(&s.form, &err) != 0)
                code = cli_error(1, "%s", err.text);
        if (code == 0 && most > 0 && form_members(&s.form) > (uint64_t)most)
                code = cli_error(1, "%llu jobs are more than -maxjobs %lld: nothing was submitted",
                                 (unsigned long long)form_members(&s.form), (long long)most);
        if (code == 0)
                code = flags_text(f, "dry-run") ? dry_run(&s, flags_text(f, "dry-run"))
                       : flags_text(f, "dump")  ? dry_run(&s, flags_text(f, "dump"))
                                                : submit_post(&s, f);
        submit_deinit(&s);
        return code;
}

static int submit_files(struct cli *cli, const struct flags *f)
{
        struct lines first LINES_CLEANUP = {0}, lines LINES_CLEANUP = {0};
        const char *file = NULL;
        int code = take_words(f, &first, &file);

        if (code != 0)
                return code;
        take_flags(f, &lines);
        return submit_one_file(cli, f, file, &first, &lines);
}

static const struct flag_row rows[] = {
        {"append", 1, FLAG_VALUE, FLAG_ACTS, "LINE",
         "Add a line just before each queue statement, or the one queue statement."},
        {"batch-name", 5, FLAG_VALUE, FLAG_ACTS, "NAME", "Name the request."},
        {"file", 1, FLAG_VALUE, FLAG_ACTS, "FILE", "The submit file."},
        {"queue", 1, FLAG_WORDS, FLAG_ACTS, "WORDS...", "The queue statement, for a file that has none."},
        {"terse", 1, FLAG_PLAIN, FLAG_ACTS, NULL,
         "Print only the ids, as in \"7.0 - 7.4\", and no warnings."},
        {"dry-run", 2, FLAG_VALUE, FLAG_ACTS, "FILE",
         "Write what would be submitted to FILE (- is standard output), an ad for each queue statement; "
         "submit nothing."},
        {"dump", 2, FLAG_VALUE, FLAG_ACTS, "FILE", "The same as -dry-run."},
        {"maxjobs", 1, FLAG_VALUE, FLAG_ACTS, "N", "Submit nothing when there are more jobs."},
        {"spool", 1, FLAG_PLAIN, FLAG_ACTS, NULL,
         "Send input files along, as should_transfer_files = YES does."},
        {"single-cluster", 2, FLAG_PLAIN, FLAG_SO, NULL, "All jobs of a submit file are one cluster."},
        {"factory", 2, FLAG_PLAIN, FLAG_SO, NULL, "Jobs are never all made ahead."},
        {"disable", 3, FLAG_PLAIN, FLAG_SO, NULL, "Files are checked when they are sent or staged."},
        {"allow-crlf-script", 3, FLAG_PLAIN, FLAG_SO, NULL, "Line ends of scripts are not looked at."},
        {"verbose", 1, FLAG_PLAIN, FLAG_WARNED, NULL, "condor_q -long shows the ads."},
        {"unused", 1, FLAG_PLAIN, FLAG_WARNED, NULL, "Settings that are never used are always warned of."},
        {"interactive", 1, FLAG_PLAIN, FLAG_REFUSED, NULL, "no job has a terminal."},
        {"remote", 1, FLAG_VALUE, FLAG_HERE, "HOST", "Only this machine."},
        {"password", 1, FLAG_VALUE, FLAG_REFUSED, "WORD", "it is not needed."},
        {"capabilities", 3, FLAG_PLAIN, FLAG_REFUSED, NULL, "condor_version tells what this is."},
        {0},
};
const struct condor_tool condor_submit = {
        .name = "condor_submit",
        .usage = "[FLAGS] [NAME=VALUE...] [FILE | -] [-queue WORDS...]",
        .line = "Submits the jobs that a file describes, as one cluster. Without FILE and -queue it reads "
                "standard input.",
        .rows = rows,
        .words_max = 10000,
        .run = submit_files,
};
