/* A script is a small job of its own at the machine of the submit, which runs in the node's folder. Its words
 * that begin with $ are what is known when the DAG is read, macros of the job, or what the server fills in
 * when it gives the job to its place: how the node's jobs ended, say. */
#include <errno.h>

#include "jdl/dag/reader.h"

#define BOTH (1u << DAG_PRE | 1u << DAG_POST | 1u << DAG_HOLD)
#define POST (1u << DAG_POST)

static const struct {
        const char *word, *text; /* text NULL: see constant() */
        unsigned roles;
} macros[] = {
        {"$JOB", "$(JOB)", BOTH},
        {"$NODE", "$(JOB)", BOTH},
        {"$RETRY", NULL, BOTH},
        {"$MAX_RETRIES", NULL, BOTH},
        {"$NODE_COUNT", NULL, BOTH},
        {"$DAGID", "$(ClusterId)", BOTH},
        {"$CLUSTERID", "$(ClusterId)", BOTH},
        {"$DAG_STATUS", "$$([DAGStatus])", BOTH},
        {"$FAILED_COUNT", "$$([DAGFailedCount])", BOTH},
        {"$JOBID", "$$([DAGJobId])", POST | 1u << DAG_HOLD},
        {"$JOB_COUNT", "$$([DAGJobCount])", POST | 1u << DAG_HOLD},
        {"$RETURN", "$$([DAGReturn])", POST},
        {"$SUCCESS", "$$([DAGSuccess])", POST},
        {"$PRE_SCRIPT_RETURN", NULL, POST},
        {"$QUEUED_COUNT", NULL, 0},
        {"$DONE_COUNT", NULL, 0},
        {"$FUTILE_COUNT", NULL, 0},
        {"$EXIT_CODES", NULL, 0},
        {"$EXIT_CODE_COUNTS", NULL, 0},
        {"$JOB_ABORT_COUNT", NULL, 0},
};

static void constant(const struct dag_reader *r, const struct dag_node *n, struct str word, struct buf *out)
{
        if (str_eqz(word, "$RETRY"))
                buf_addz(out, n->attempts > 1 ? "$(RETRY)" : "0");
        else if (str_eqz(word, "$MAX_RETRIES"))
                buf_printf(out, "%lld", (long long)(n->retry > 0 ? n->retry : 0));
        else if (str_eqz(word, "$NODE_COUNT"))
                buf_printf(out, "%u", r->node_count);
        else
                buf_addz(out, n->scripts[DAG_PRE] ? "0" : "-1");
}

/* The path of a script: without a slash at its beginning from the folder of the node. */
static void script_path(const struct dag_reader *r, const struct dag_node *n, struct str word,
                        struct buf *out)
{
        if (word.p[0] != '/' && !(n->dir && n->dir[0] == '/'))
                buf_printf(out, "%s/", r->world->cwd);
        if (word.p[0] != '/' && n->dir)
                buf_printf(out, "%s/", n->dir);
        buf_str(out, word);
}

/* A word of the arguments, between quotes that a submit file takes. */
static void add_word(struct buf *out, struct str word)
{
        buf_addz(out, " '");
        for (size_t i = 0; i < word.n; i++) {
                if (word.p[i] == '\'' || word.p[i] == '"')
                        buf_char(out, word.p[i]);
                buf_char(out, word.p[i]);
        }
        buf_char(out, '\'');
}

static int add_argument(struct dag_reader *r, const struct dag_node *n, enum dag_role role, struct str word,
                        struct buf *out)
{
        BUF_CLEANUP struct buf text = {0};

        for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++) {
                if (!str_eqz(word, macros[i].word))
                        continue;
                if (!(macros[i].roles & 1u << role))
                        return dag_fail(r, n->file, n->line,
                                        "node %s: " STR_FMT " is not known in this script; see drover-dag(5)",
                                        n->name, STR_ARG(word));
                if (macros[i].text)
                        buf_addz(&text, macros[i].text);
                else
                        constant(r, n, word, &text);
                add_word(out, buf_view(&text));
                return 0;
        }
        add_word(out, word);
        return 0;
}

static void add_environment(const struct dag_reader *r, struct buf *out)
{
        buf_addz(out, "getenv = PATH, HOME, USER, LOGNAME, LANG, PYTHONPATH\n");
        if (r->environment_count == 0)
                return;
        buf_addz(out, "environment = \"");
        for (uint32_t i = 0; i < r->environment_count; i++) {
                BUF_CLEANUP struct buf one = {0};

                buf_printf(&one, "%s=%s", r->environment[i].name, r->environment[i].value);
                add_word(out, buf_view(&one));
        }
        buf_addz(out, "\"\n");
}

/* The shell's line that runs the script; with DEBUG it appends what the script has printed to a file, at one
 * time, because other scripts may write there, too. Back quotes, because $( begins a macro. */
static void add_run(const struct dag_reader *r, const struct dag_script *s, enum dag_role role,
                    struct buf *out)
{
        static const char *const names[] = {[DAG_PRE] = "PRE", [DAG_POST] = "POST", [DAG_HOLD] = "HOLD"};
        static const char *const runs[] = {[DAG_DEBUG_NONE] = "\"$0\" \"$@\"; c=$?;",
                                           [DAG_DEBUG_STDOUT] = "o=`\"$0\" \"$@\"`; c=$?;",
                                           [DAG_DEBUG_STDERR] = "{ o=`\"$0\" \"$@\" 2>&1 >&3`; c=$?; } 3>&1;",
                                           [DAG_DEBUG_ALL] = "o=`\"$0\" \"$@\" 2>&1`; c=$?;"};

        buf_addz(out, runs[s->debug]);
        if (!s->debug)
                return;
        buf_printf(out, " printf '%%s\\n' \"*** Node=$(JOB) Type=%s Status=$c\" \"$o\" >>'", names[role]);
        if (s->debug_file[0] != '/')
                buf_printf(out, "%s/", r->world->cwd);
        buf_printf(out, "%s';", s->debug_file);
}

int dag_script_text(struct dag_reader *r, const struct dag_node *n, enum dag_role role, struct buf *out)
{
        const struct dag_script *s = n->scripts[role];
        struct str rest = str_of(s->command), word = STR_NONE;
        BUF_CLEANUP struct buf path = {0};
        int rc = 0;

        str_word(&rest, &word);
        script_path(r, n, word, &path);
        buf_addz(out, "universe = local\ntransfer_executable = false\n");
        add_environment(r, out);
        buf_printf(out, "executable = " STR_FMT "\narguments = \"",
                   STR_ARG(s->defers || s->debug ? STR("/bin/sh") : buf_view(&path)));
        if (s->defers || s->debug) {
                BUF_CLEANUP struct buf loop = {0};

                if (s->defers)
                        buf_addz(&loop, "while :; do ");
                add_run(r, s, role, &loop);
                if (s->defers)
                        buf_printf(&loop, " [ $c -eq %lld ] || exit $c; sleep %lld; done",
                                   (long long)s->defer_status, (long long)s->defer_s);
                else
                        buf_addz(&loop, " exit $c");
                add_word(out, STR("-c"));
                add_word(out, buf_view(&loop));
                add_word(out, buf_view(&path));
        }
        while (!rc && str_word(&rest, &word))
                rc = add_argument(r, n, role, word, out);
        buf_addz(out, "\"\n");
        return rc;
}
