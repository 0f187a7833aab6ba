/* Programs read this of the output: the number in "submitted to cluster 7." (Pegasus and others). There is no
 * DAGMan: the graph is a request, and the server goes through it. What DAGMan writes beside the DAG file, a
 * rescue file above all, is written by `drover dag watch`, which is started in the background. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/program.h"
#include "cli/client/submit.h"
#include "cli/condor/condor.h"

#define LINE    "-----------------------------------------------------------------------\n"
#define ADD_MAX 60u

/* Starts a process that outlives this one and the terminal, and that writes the graph's files. If it is
 * ended, the same command by hand does what it would have done. */
static void start_watch(const char *id, const char *file)
{
        BUF_CLEANUP struct buf program = {0}, log = {0};
        int in = open("/dev/null", O_RDONLY | O_CLOEXEC), out;
        struct err err = {""};
        pid_t pid;

        buf_printf(&log, "%s.dagman.out", file);
        out = open(buf_z(&log), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (out < 0)
                err_set(&err, -errno, "%s: %s", buf_z(&log), strerror(errno));
        if (in < 0 || out < 0 || program_find("drover", &program, &err) != 0) {
                cli_note("its rescue file is not written by itself (%s): drover dag watch %s %s", err.text,
                         id, file);
        } else {
                printf("Log of what follows it : %s\n" LINE, buf_z(&log));
                fflush(stdout);
                pid = fork();
                if (pid == 0) {
                        setsid();
                        signal(SIGHUP, SIG_IGN);
                        if (dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(out, 2) == 2)
                                execl(buf_z(&program), "drover", "dag", "watch", "--", id, file,
                                      (char *)NULL);
                        _exit(127);
                }
                if (pid < 0)
                        cli_note("cannot start drover dag watch: %s", strerror(errno));
        }
        if (in >= 0)
                close(in);
        if (out >= 0)
                close(out);
}

/* follow: start a process that writes its files. */
static int submit_dag_send(struct submit *s, bool follow)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        int code = submit_send(s, &answer);
        char id[24];

        if (code != 0)
                return code;
        snprintf(id, sizeof(id), "%lld", (long long)view_integer(view_get(answer.root, "id"), 0));
        printf("Submitting job(s).\n1 job(s) submitted to cluster %s.\n" LINE, id);
        if (follow)
                start_watch(id, s->file);
        return 0;
}

/* Several DAG files are one, of which each is a splice with its number as its name. With -usedagdir each is
 * read in its own folder. */
static void join_files(const struct flags *f, bool own_folders, struct buf *text, struct buf *name)
{
        buf_printf(name, "%s_multi", f->words[0]); /* DAGMan's name for it: of its rescue files */
        for (size_t i = 0; i < f->word_count; i++) {
                const char *slash = strrchr(f->words[i], '/');

                if (own_folders && slash)
                        buf_printf(text, "SPLICE %zu %s DIR %.*s\n", i, slash + 1, (int)(slash - f->words[i]),
                                   f->words[i]);
                else
                        buf_printf(text, "SPLICE %zu %s\n", i, f->words[i]);
        }
}

/* Changes to the folder of the DAG file (-usedagdir). *ret: the file's name there, borrowed from `file`. */
static int enter_folder(const char *file, const char **ret)
{
        const char *slash = strrchr(file, '/');
        BUF_CLEANUP struct buf folder = {0};

        *ret = slash ? slash + 1 : file;
        if (!slash)
                return 0;
        buf_add(&folder, file, (size_t)(slash - file));
        return chdir(folder.n ? buf_z(&folder) : "/") == 0
                       ? 0
                       : cli_error(1, "%s: %s", buf_z(&folder), strerror(errno));
}

static int submit_dag(struct cli *cli, const struct flags *f)
{
        BUF_CLEANUP struct buf most = {0}, name = {0}, old = {0}, text = {0}, joined = {0};
        bool own_folders = flags_has(f, "usedagdir");
        const char *file = f->words[0];
        const char *lines[ADD_MAX + 2];
        const struct flag_given *g;
        struct err err = {""};
        int64_t max, rescue, pre, post, from;
        struct submit s;
        size_t at = 0;
        int code;

        if (flags_number(f, "maxjobs", 0, &max, &err) != 0 ||
            flags_number(f, "autorescue", 1, &rescue, &err) != 0 ||
            flags_number(f, "maxpre", 0, &pre, &err) != 0 || flags_number(f, "maxpost", 0, &post, &err) != 0)
                return cli_error(1, "%s", err.text);
        if (f->word_count > 1)
                join_files(f, own_folders, &text, &joined);
        else if (own_folders && enter_folder(file, &file) != 0)
                return 1;
        submit_init(&s, cli, text.n ? buf_z(&joined) : file);
        s.text = text.n ? buf_view(&text) : STR_NONE;
        s.language = SUBMIT_DAG;
        s.no_rescue = rescue == 0 || flags_has(f, "force");
        s.lines = lines;
        s.rescue = flags_text(f, "load_save");
        if (s.rescue && !strchr(s.rescue, '/')) { /* where DAGMan puts them */
                buf_printf(&old, "save_files/%s", s.rescue);
                s.rescue = access(buf_z(&old), F_OK) == 0 ? buf_z(&old) : s.rescue;
        }
        if (!s.rescue && flags_text(f, "dorescuefrom")) {
                if (flags_number(f, "dorescuefrom", 0, &from, &err) != 0 || from < 1 || from > 999)
                        return cli_error(1, "-dorescuefrom takes a number from 1 to 999");
                buf_printf(&old, DAG_RESCUE_NAME, s.file, (int)from);
                s.rescue = buf_z(&old);
        }
        s.max_pre = pre > 0 ? (uint64_t)pre : 0;
        s.max_post = post > 0 ? (uint64_t)post : 0;
        while ((g = flags_next(f, "append", &at)) && s.line_count < ADD_MAX)
                lines[s.line_count++] = g->words[0];
        if (max > 0) {
                buf_printf(&most, "max_materialize = %lld", (long long)max);
                lines[s.line_count++] = buf_z(&most);
        }
        if (flags_text(f, "batch-name")) {
                buf_printf(&name, "batch_name = %s", flags_text(f, "batch-name"));
                lines[s.line_count++] = buf_z(&name);
        }
        code = submit_read(&s);
        if (code == 0) {
                printf(LINE "File with the DAG : %s (%llu nodes)\n" LINE, f->words[0],
                       (unsigned long long)s.dag.nodes);
                fflush(stdout);
        }
        if (code == 0 && !flags_has(f, "no_submit"))
                code = submit_dag_send(&s, !text.n);
        submit_deinit(&s);
        return code;
}

static const struct flag_row rows[] = {
        {"append", 1, FLAG_VALUE, FLAG_ACTS, "LINE", "Add a line to the submit description of each node."},
        {"autorescue", 5, FLAG_VALUE, FLAG_ACTS, "0|1", "0: rescue files beside the DAG file are not read."},
        {"batch-name", 5, FLAG_VALUE, FLAG_ACTS, "NAME", "Name the request."},
        {"dorescuefrom", 3, FLAG_VALUE, FLAG_ACTS, "N", "Take the rescue file with that number."},
        {"force", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "Begin anew: rescue files are not read."},
        {"load_save", 4, FLAG_VALUE, FLAG_ACTS, "FILE", "Take this save point."},
        {"maxjobs", 4, FLAG_VALUE, FLAG_ACTS, "N", "At most so many jobs at once."},
        {"maxpost", 5, FLAG_VALUE, FLAG_ACTS, "N", "At most so many POST scripts at once."},
        {"maxpre", 5, FLAG_VALUE, FLAG_ACTS, "N", "At most so many PRE scripts at once."},
        {"no_submit", 4, FLAG_PLAIN, FLAG_ACTS, NULL, "Read and check the file; submit nothing."},
        {"maxidle", 4, FLAG_VALUE, FLAG_SO, "N", "Idle jobs cost nothing."},
        {"update_submit", 1, FLAG_PLAIN, FLAG_SO, NULL, "No file is written for DAGMan."},
        {"import_env", 2, FLAG_PLAIN, FLAG_SO, NULL, "There is no DAGMan that would have an environment."},
        {"verbose", 1, FLAG_PLAIN, FLAG_WARNED, NULL, "drover dag show shows the graph."},
        {"usedagdir", 3, FLAG_PLAIN, FLAG_ACTS, NULL, "Read each DAG file in the folder that it is in."},
        {"do_recurse", 4, FLAG_PLAIN, FLAG_SO, NULL, "A graph in a graph is read with it."},
        {"remote", 1, FLAG_VALUE, FLAG_HERE, "HOST", "Only this machine."},
        {0},
};
const struct condor_tool condor_submit_dag = {
        .name = "condor_submit_dag",
        .usage = "[FLAGS] FILE...",
        .line = "Submits the graph of jobs that DAG files describe, as one cluster; see drover-dag(5).",
        .rows = rows,
        .words_min = 1,
        .words_max = 1000,
        .run = submit_dag,
};
