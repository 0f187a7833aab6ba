#include "cli/client/sums_files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "cli/client/queue_choice.h"
#include "cli/terminal/human.h"
#include "jdl/script/script.h"

#define REPORT_ROWS_MAX 100000u

/* Row of the items for one job. */
struct piece {
        struct str where;
        uint64_t segment, first, count;
};

static bool next_piece(struct str *rows, struct piece *ret)
{
        struct str row, value[4] = {STR_NONE};

        if (rows->n == 0 || !str_cut(rows, '\n', &row))
                return false;
        for (int i = 0; i < 4; i++)
                str_cut(&row, '\x1f', &value[i]);
        *ret = (struct piece){.where = value[0]};
        str_to_u64(value[1], &ret->segment);
        str_to_u64(value[2], &ret->first);
        str_to_u64(value[3], &ret->count);
        return true;
}

static void path_in(const char *folder, const struct submit *s, const char *tail, struct buf *out)
{
        if (folder && *folder)
                buf_printf(out, "%s/", folder);
        buf_addz(out, "sched");
        for (const char *z = s->uuid; *z; z++)
                if (*z != '-')
                        buf_char(out, *z);
        buf_addz(out, tail);
}

/* Writes a new file. Existing files are never overwritten, and links are not followed. */
static int write_new(const char *path, struct str text, unsigned mode)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode), r;

        if (fd < 0)
                return cli_error(CLI_FAILED, "%s could not be written: %s", path, strerror(errno));
        r = fs_write_all(fd, text.p, text.n);
        if (close(fd) != 0 && r == 0)
                r = -errno;
        return r == 0 ? 0 : cli_error(CLI_FAILED, "%s could not be written: %s", path, strerror(-r));
}

static struct str lines_of(const struct submit *s, const struct piece *p)
{
        struct str rest, line, all;

        if (p->segment >= s->form.list_count)
                return STR_NONE;
        rest = buf_view(&s->form.lists[p->segment].text);
        for (uint64_t i = 1; i < p->first && str_cut(&rest, '\n', &line); i++)
                continue;
        all = rest;
        for (uint64_t i = 0; i < p->count && str_cut(&rest, '\n', &line); i++)
                continue;
        return str_head(all, all.n - rest.n);
}

/* Returns a number that is the same for all jobs; 0: there is none. */
static uint64_t plain_number(const struct form_part *p, const char *attribute)
{
        const struct form_attribute *a = form_get(p, str_of(attribute));
        uint64_t n = 0;

        return a && !a->late && str_to_u64(str_of(a->text), &n) == 0 ? n : 0;
}

/* Appends the path of a stream of the job; nothing if it depends on more than the job's number, or a batch
 * system could not read it in a line of a script. */
static bool plain_path(const struct form_part *p, const char *attribute, uint64_t member, struct buf *out)
{
        const struct form_attribute *a = form_get(p, str_of(attribute));
        const struct str macro = STR("$(Process)");
        struct str rest = str_of(a ? a->text : ""), text;
        ptrdiff_t at;

        if (rest.n < 3 || rest.p[0] != '"')
                return false;
        rest = text = str_make(rest.p + 1, rest.n - 2);
        while ((at = str_search(rest, macro)) >= 0) {
                buf_str(out, str_head(rest, (size_t)at));
                buf_printf(out, "%llu", (unsigned long long)member);
                rest = str_skip(rest, (size_t)at + macro.n);
        }
        buf_str(out, rest);
        for (size_t i = 0; i < out->n; i++)
                if (!isalnum((unsigned char)out->p[i]) && !strchr("/._-+=@,", out->p[i]))
                        return false;
        return out->n > 0 && out->p[0] == '/';
}

/* Writes the job's requests as directives for Slurm and Grid Engine: each takes the lines of the other for
 * comments. Names that only a site knows, such as a resource for memory in a Grid Engine, are left out. */
static void write_directives(const struct submit *s, uint64_t member, struct buf *out)
{
        const struct form_part *p = &s->form.parts[0];
        uint64_t cpus = plain_number(p, "RequestCpus"), mib = plain_number(p, "RequestMemory"),
                 seconds = plain_number(p, "AllowedExecuteDuration");
        struct buf output BUF_CLEANUP = {0}, error BUF_CLEANUP = {0};
        bool has_output = plain_path(p, "Out", member, &output),
             has_error = plain_path(p, "Err", member, &error);

        buf_printf(out, "#SBATCH --job-name=sums_%.8s_%llu\n#SBATCH --ntasks=1\n", s->uuid,
                   (unsigned long long)member);
        if (cpus)
                buf_printf(out, "#SBATCH --cpus-per-task=%llu\n", (unsigned long long)cpus);
        if (mib)
                buf_printf(out, "#SBATCH --mem=%lluM\n", (unsigned long long)mib);
        if (seconds)
                buf_printf(out, "#SBATCH --time=%llu\n", (unsigned long long)((seconds + 59) / 60));
        if (has_output)
                buf_printf(out, "#SBATCH --output=%s\n", buf_z(&output));
        if (has_error)
                buf_printf(out, "#SBATCH --error=%s\n", buf_z(&error));
        buf_printf(out, "#$ -N sums_%.8s_%llu\n#$ -S /bin/sh\n#$ -cwd\n", s->uuid,
                   (unsigned long long)member);
        if (cpus > 1)
                buf_printf(out, "#$ -pe smp %llu\n", (unsigned long long)cpus);
        if (seconds)
                buf_printf(out, "#$ -l h_rt=%llu\n", (unsigned long long)seconds);
        if (has_output)
                buf_printf(out, "#$ -o %s\n", buf_z(&output));
        if (has_error)
                buf_printf(out, "#$ -e %s\n", buf_z(&error));
        else
                buf_addz(out, "#$ -j y\n");
}

/* The variables that the agent sets, and the job's script. */
static void write_script(const struct submit *s, uint64_t member, const char *list, struct str files,
                         struct buf *out)
{
        const struct form_part *p = &s->form.parts[0];
        const struct form_attribute *iwd = form_get(p, STR("Iwd"));
        struct buf id BUF_CLEANUP = {0};
        struct str line;
        unsigned n = 0;

        path_in(NULL, s, "", &id);
        buf_addz(out, "#!/bin/sh\n");
        write_directives(s, member, out);
        buf_printf(out,
                   "# Job %llu of request %s, written by a simulated submit. Where it is run by "
                   "hand, its\n"
                   "# folder is the current one.\n"
                   "export JOBID=%s_%llu REQUESTID=%s JOBINDEX=%llu PROCESSID=%llu\n",
                   (unsigned long long)member, buf_z(&id) + 5, buf_z(&id) + 5, (unsigned long long)member,
                   buf_z(&id) + 5, (unsigned long long)member, (unsigned long long)member);
        if (iwd)
                buf_printf(out, "export SUBMITTINGDIRECTORY=%s\n", iwd->text);
        if (list) {
                buf_addz(out, "export FILELIST=");
                script_quote(out, str_of(list));
                buf_char(out, '\n');
                for (struct str rest = files; str_cut(&rest, '\n', &line) && line.n; n++)
                        if (n < 1000) {
                                buf_printf(out, "export INPUTFILE%u=", n);
                                script_quote(out, line);
                                buf_char(out, '\n');
                        }
        }
        buf_printf(out, "export INPUTFILECOUNT=%u\n", n);
        buf_str(out, buf_view(&s->sums.script));
}

static int write_job(const struct submit *s, uint64_t member, const struct piece *p)
{
        struct buf list BUF_CLEANUP = {0}, script BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        struct str files = p ? lines_of(s, p) : STR_NONE;
        char tail[64];
        int code = 0;

        if (p) {
                char *whole = NULL;

                snprintf(tail, sizeof(tail), "_%llu.list", (unsigned long long)member);
                path_in(s->sums.list_folder, s, tail, &list);
                code = write_new(buf_z(&list), files, 0666);
                whole = realpath(buf_z(&list), NULL);
                if (whole) {
                        buf_reset(&list);
                        buf_addz(&list, whole);
                }
                free(whole);
        }
        if (code != 0)
                return code;
        snprintf(tail, sizeof(tail), "_%llu.sh", (unsigned long long)member);
        path_in(s->sums.script_folder, s, tail, &script);
        write_script(s, member, p ? buf_z(&list) : NULL, files, &text);
        return write_new(buf_z(&script), buf_view(&text), 0777);
}

static int write_jobs(const struct submit *s)
{
        const struct form_part *part = &s->form.parts[0];
        struct str rows = buf_view(&part->items);
        uint64_t members = form_members(&s->form), n = 0;
        struct piece p;
        int code = 0;

        if (members > SUMS_SCRIPTS_MAX)
                cli_note("scripts and lists are written for the first %u of %llu jobs", SUMS_SCRIPTS_MAX,
                         (unsigned long long)members);
        if (s->form.list_count == 0)
                for (; n < members && n < SUMS_SCRIPTS_MAX && code == 0; n++)
                        code = write_job(s, n, NULL);
        for (; s->form.list_count && n < SUMS_SCRIPTS_MAX && code == 0 && next_piece(&rows, &p); n++)
                code = write_job(s, n, &p);
        return code;
}

/* The condition of a piece in words: it names hosts by their machine and their agent. */
static void write_where(struct str where, struct buf *out)
{
        const struct str machine = STR("TARGET.Machine == \"");
        size_t hosts = 0;
        ptrdiff_t at;

        for (; (at = str_search(where, machine)) >= 0; hosts++) {
                struct str name;

                where = str_skip(where, (size_t)at + machine.n);
                str_cut(&where, '"', &name);
                buf_addz(out, hosts ? " or " : "the host ");
                human_safe(out, name);
        }
        if (hosts == 0)
                buf_addz(out, str_eqz(where, "true") ? "any place" : "places that see this file system");
}

/* The jobs of a part of the request. Returns how many rows are left of the report's most. */
static unsigned sums_files_write_pieces(const struct form_part *part, uint64_t first, unsigned left,
                                        struct buf *out)
{
        struct str rows = buf_view(&part->items);
        struct piece p;

        for (; left && next_piece(&rows, &p); first++, left--) {
                buf_printf(out, "%8llu %8llu  ", (unsigned long long)first, (unsigned long long)p.count);
                write_where(p.where, out);
                buf_char(out, '\n');
        }
        if (rows.n)
                buf_printf(out, "  and more; %u jobs are listed\n", REPORT_ROWS_MAX);
        return left;
}

static void write_attributes(const struct form_part *part, struct buf *out)
{
        const struct form_attribute *name = form_get(part, STR("DAGNodeName"));

        buf_printf(out, "\nattributes%s%s\n", name ? " of " : "", name ? name->text : "");
        for (size_t a = 0; a < part->attribute_count; a++)
                if (strcmp(part->attributes[a].name, "Arguments") != 0) {
                        buf_printf(out, "  %s = ", part->attributes[a].name);
                        human_safe(out, str_of(part->attributes[a].text));
                        buf_char(out, '\n');
                }
}

static void write_report(const struct submit *s, int64_t id, struct buf *out)
{
        const struct form *f = &s->form;
        struct buf name BUF_CLEANUP = {0};
        unsigned left = REPORT_ROWS_MAX;
        uint64_t first = 0;

        path_in(NULL, s, "", &name);
        buf_printf(out, "request    %s", buf_z(&name) + 5);
        if (id)
                buf_printf(out, ", number %lld at the server", (long long)id);
        else
                buf_addz(out, ", simulated: nothing was submitted");
        buf_printf(out, "\nfile       %s\njobs       %llu\n", s->file, (unsigned long long)form_members(f));
        if (s->sums.name.n)
                buf_printf(out, "name       " STR_FMT "\n", STR_ARG(buf_view(&s->sums.name)));
        if (id)
                queue_choice_presets(s->cli, id, out);
        buf_str(out, buf_view(&s->queues));
        for (size_t i = 0; i < f->warning_count; i++)
                buf_printf(out, "warning    line %u: %s\n", f->warnings[i].line, f->warnings[i].text);
        if (f->notes.n)
                buf_printf(out, "\n" STR_FMT, STR_ARG(buf_view(&f->notes)));
        if (f->list_count)
                buf_printf(out, "\n%8s %8s  %s\n", "JOB", "FILES", "WHERE THEY CAN BE PROCESSED");
        for (size_t i = 0; i < f->part_count; i++) {
                if (form_get(&f->parts[i], STR("DatasetList")))
                        left = sums_files_write_pieces(&f->parts[i], first, left, out);
                first += f->parts[i].rows * f->parts[i].steps;
        }
        for (size_t i = 0; i < f->part_count; i++)
                write_attributes(&f->parts[i], out);
        if (s->sums.command.n)
                buf_printf(out, "\ncommand\n" STR_FMT, STR_ARG(buf_view(&s->sums.command)));
        if (s->sums.script.n)
                buf_printf(out, "\nscript of a job\n" STR_FMT, STR_ARG(buf_view(&s->sums.script)));
}

void sums_files_report(const struct submit *s, struct buf *out)
{
        path_in(s->sums.report_folder, s, ".report", out);
}

void sums_files_session(const struct submit *s, struct buf *out)
{
        path_in(s->sums.report_folder, s, ".session.xml", out);
}

int sums_files_write(const struct submit *s, int64_t id)
{
        struct buf path BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        int code = id == 0 ? write_jobs(s) : 0;

        if (code != 0)
                return code;
        sums_files_report(s, &path);
        write_report(s, id, &text);
        return write_new(buf_z(&path), buf_view(&text), 0666);
}
