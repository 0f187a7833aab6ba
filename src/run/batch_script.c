/* Scripts for /bin/sh with nothing but what every node has: coreutils and setsid of util-linux. */
#include <signal.h>
#include <stdlib.h>

#include "run/batch.h"

#define LEASE_S      600 /* for a script that has never seen a lease */
#define KILL_AFTER_S 5   /* from SIGTERM to SIGKILL */

void batch_quote(struct buf *out, const char *text)
{
        buf_char(out, '\'');
        for (; *text; text++)
                if (*text == '\'')
                        buf_addz(out, "'\\''");
                else
                        buf_char(out, *text);
        buf_char(out, '\'');
}

static void assign(struct buf *out, const char *name, const char *value)
{
        buf_printf(out, "%s=", name);
        batch_quote(out, value);
        buf_char(out, '\n');
}

/* The begin: once only, where the folder is seen, and while the lease runs. How old the lease is, the file
 * system says, which gave both times: clocks of other machines do not matter. */
static const char begin[] =
        "now() { date +%s%3N; }\n"
        "say() { # the agent may be another user; the program is over\n"
        "        umask 022\n"
        "        printf '%s\\n' \"$@\" >\"$step.tmp\" && mv \"$step.tmp\" \"$step.done\"\n"
        "}\n"
        "failed() { say \"failed $1\"; exit 0; }\n"
        "if ! mkdir -m 755 \"$step.began\" 2>/dev/null; then\n"
        "        if [ -d \"$step.began\" ]; then # it was submitted twice, and runs; or it ran, and was put "
        "back\n"
        "                echo 'drover again' >&2\n"
        "                exit 0\n"
        "        fi\n"
        "        echo \"drover: $box is not seen on $(hostname), or not writable\" >&2\n"
        "        exit 74\n"
        "fi\n"
        "serial= age=0\n"
        "[ -r \"$lease\" ] && { read -r serial lease_s; read -r often end && every=$often grace=$end; } "
        "<\"$lease\"\n"
        "if [ -n \"$serial\" ]; then\n"
        "        age=$(($(stat -c %Y \"$step.began\") - $(stat -c %Y \"$lease\")))\n"
        "        [ $age -lt 0 ] && age=0\n"
        "        if [ $age -ge $lease_s ]; then # its turn came late: it may run elsewhere by now\n"
        "                say 'lost lease'\n"
        "                exit 0\n"
        "        fi\n"
        "fi\n"
        "began=$(now)\n"
        "(umask 022 && echo \"$began $(hostname)\" >\"$step.tmp\") && mv \"$step.tmp\" \"$step.began/at\"\n"
        "ulimit -c 0\n";

/* A session of its own beside the program, so that it ends whole when it is not needed any more: it looks at
 * the lease and at the time. It counts by the node's time since its start, which goes on while a job is
 * stopped. No single quote may stand in it. */
static const char guard[] =
        "orders='for order in \"$step\".order.????????????????; do\n"
        "        mv \"$order\" \"$step.taken.$$\" 2>/dev/null || continue\n"
        "        read -r signal <\"$step.taken.$$\" && kill -s \"$signal\" -- \"-$child\"\n"
        "        rm -f \"$step.taken.$$\"\n"
        "done'\n"
        "guard='step=$1 child=$2 grace=$3 lease=$4 term=$5 every=$6 left=$7 orders=$8 script=${11}\n"
        "seen=${10} why=\n"
        "up() { read -r up rest </proc/uptime && up=${up%%.*} || up=$(date +%s); }\n"
        "up\n"
        "since=$((up - $9))\n"
        "while [ -z \"$why\" ]; do\n"
        "        nap=$every\n"
        "        [ $left -gt 0 ] && [ $left -lt $nap ] && nap=$left\n"
        "        sleep $nap\n"
        "        eval \"$orders\"\n"
        "        up\n"
        "        serial= often=\n"
        "        [ -r \"$lease\" ] && { read -r serial seconds; read -r often end; } <\"$lease\"\n"
        "        if [ -n \"$serial\" ] && [ \"$serial\" != \"$seen\" ]; then\n"
        "                seen=$serial term=$seconds since=$up\n"
        "                [ -n \"$often\" ] && every=$often grace=$end\n"
        "        fi\n"
        "        kill -0 $script 2>/dev/null || why=killed # the script alone\n"
        "        [ $((up - since)) -ge $term ] && why=lease\n"
        "        [ $left -eq $nap ] && why=walltime\n"
        "        [ $left -gt 0 ] && left=$((left - nap))\n"
        "done\n"
        "[ -e \"$step.why\" ] || echo $why >\"$step.why\"\n"
        "kill -s TERM -- \"-$child\"\n"
        "kill -s CONT -- \"-$child\"\n"
        "sleep $grace\n"
        "kill -s KILL -- \"-$child\"'\n"
        "beside() { setsid /bin/sh -c \"$@\" </dev/null >/dev/null 2>&1 & guards=\"$guards $!\"; }\n"
        "told() { # to end\n"
        "        [ -e \"$step.why\" ] || echo killed >\"$step.why\"\n"
        "        kill -s TERM -- \"-$child\" 2>/dev/null\n"
        "        kill -s CONT -- \"-$child\" 2>/dev/null\n"
        "        beside 'sleep $1; kill -s KILL -- \"-$2\"' end $grace $child\n"
        "}\n";

/* A signal to the script ends a wait before its time, with that signal's status: then it waits again. What
 * was waited for already is unknown (127). */
static const char traps[] =
        "child=$! guards= status=\n"
        "trap 'again=1; told' TERM INT\n"
        "trap 'again=1; kill -s STOP -- \"-$child\"' TSTP # its own stop would not reach the program\n"
        "trap 'again=1; kill -s CONT -- \"-$child\"' CONT\n"
        "trap 'again=1; eval \"$orders\"' URG # a signal for the program\n";

static const char end[] =
        "beside \"$guard\" guard \"$step\" $child $grace \"$lease\" $lease_s $every $walltime \"$orders\" "
        "$age \"$serial\" $$\n"
        "again=1\n"
        "while [ -n \"$again\" ]; do\n"
        "        again=\n"
        "        wait $child\n"
        "        now=$?\n"
        "        case $now:$status in\n"
        "        127:143 | 127:130 | 127:148 | 127:146 | 127:151 | 127:138 | 127:140) status=127 ;;\n"
        "        127:?*) ;;\n"
        "        *) status=$now ;;\n"
        "        esac\n"
        "done\n"
        "ended=$(now)\n"
        "for guard in $guards; do kill -s KILL $guard; kill -s KILL -- \"-$guard\"; done 2>/dev/null\n"
        "kill -s KILL -- \"-$child\" 2>/dev/null # what it left behind\n"
        "after >/dev/null 2>&1\n"
        "why=itself\n"
        "[ -e \"$step.why\" ] && why=$(cat \"$step.why\")\n"
        "times >\"$step.times\"\n"
        "say \"ended $status $why $began $ended\" \"$(cat \"$step.times\")\"\n"
        "exit $status\n";

static void redirect(struct buf *out, const char *sign, const char *path)
{
        buf_addz(out, sign);
        if (!path || !*path)
                buf_addz(out, "/dev/null");
        else if (*path == '/')
                batch_quote(out, path);
        else {
                buf_addz(out, "\"$box\"/");
                batch_quote(out, path);
        }
}

static void environment(const struct run_spec *s, struct buf *out)
{
        buf_addz(out, "unset LC_ALL\n"); /* of the submit command, whose words are read here */
        for (char *const *e = s->envp; e && *e; e++) {
                const char *eq = strchr(*e, '=');
                bool name = eq && eq > *e;
                for (const char *p = *e; name && p < eq; p++)
                        name = *p == '_' || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') ||
                               (p > *e && *p >= '0' && *p <= '9');
                if (!name)
                        continue; /* no shell can have it */
                buf_printf(out, "export %.*s=", (int)(eq - *e), *e);
                batch_quote(out, eq + 1);
                buf_char(out, '\n');
        }
}

static void program(const struct run_spec *s, struct buf *out)
{
        const char *in = s->stdin_path;
        assign(out, "program", s->path);
        buf_addz(out, "case $program in\n"
                      "*/*) [ -x \"$program\" ] && [ ! -d \"$program\" ] || failed program ;;\n"
                      "*) command -v \"$program\" >/dev/null || failed program ;;\n"
                      "esac\n");
        if (in && *in) {
                buf_addz(out, "[ -r ");
                redirect(out, "", in);
                buf_addz(out, " ] || failed stdin\n");
        }
        /* what a shell starts beside itself ignores these two, and it cannot be undone in a shell */
        buf_addz(out, "clean='env --default-signal=INT,QUIT'\n"
                      "$clean true 2>/dev/null || clean=\n"
                      "$clean setsid \"$program\"");
        for (char *const *a = s->argv + 1; s->argv[0] && *a; a++) {
                buf_char(out, ' ');
                batch_quote(out, *a);
        }
        redirect(out, " <", in);
        redirect(out, s->flags & RUN_STDOUT_APPEND ? " >>" : " >", s->stdout_path);
        if (s->flags & RUN_STDERR_IS_STDOUT)
                buf_addz(out, " 2>&1");
        else
                redirect(out, s->flags & RUN_STDERR_APPEND ? " 2>>" : " 2>", s->stderr_path);
        buf_addz(out, " &\n");
}

static void after(const struct run_spec *s, struct buf *out)
{
        buf_addz(out, "after() { :");
        for (char *const *a = s->after; a && *a; a++) {
                buf_addz(out, a == s->after ? "; " : " ");
                batch_quote(out, *a);
        }
        buf_addz(out, "; }\n");
}

void batch_script(const struct run_spec *s, const char *head, const struct batch_guard *g, struct buf *out)
{
        buf_printf(out, "#!/bin/sh\n%s# job %s, attempt %u, step %u\n", head, s->job ? s->job : "",
                   s->id.fence, s->id.step);
        assign(out, "box", s->sandbox);
        assign(out, "lease", g->lease);
        buf_printf(out, "step=$box/" BATCH_STEP ".%u\n", s->id.step);
        buf_printf(out, "walltime=%llu grace=%d every=%u lease_s=%d\n",
                   (unsigned long long)((s->walltime_ms + 999) / 1000), KILL_AFTER_S, g->every_s, LEASE_S);
        buf_addz(out, begin);
        environment(s, out);
        buf_addz(out, "cd ");
        batch_quote(out, s->cwd ? s->cwd : s->sandbox);
        buf_addz(out, " || failed folder\n");
        buf_addz(out, guard);
        after(s, out);
        program(s, out);
        buf_addz(out, traps);
        buf_addz(out, g->traps ? g->traps : "");
        buf_addz(out, end);
}

void batch_script_array(const char *index_variable, unsigned index_first, const char *head, const char *list,
                        struct buf *out)
{
        struct str names = str_of(index_variable), name;
        buf_printf(out, "#!/bin/sh\n%s", head);
        assign(out, "list", list);
        buf_addz(out, "n=\n");
        while (str_word(&names, &name))
                buf_printf(out, "n=${n:-$" STR_FMT "}\n", STR_ARG(name));
        buf_printf(out,
                   "case ${n:-x} in *[!0-9]*) n=1 ;; *) n=$((n - %u + 1)) ;; esac\n"
                   "[ $n -gt 0 ] || n=1\n"
                   "script=$(sed -n \"${n}p\" \"$list\")\n"
                   "if [ ! -r \"$script\" ]; then\n"
                   "        echo \"drover: $list is not seen on $(hostname)\" >&2\n"
                   "        exit 74\n"
                   "fi\n"
                   "exec /bin/sh \"$script\"\n",
                   index_first);
}

/* ---- how it ended */

/* "0m1.23s" */
static uint64_t shell_time_ms(struct str s)
{
        struct str minutes;
        double m = 0, seconds = 0;
        if (!str_cut(&s, 'm', &minutes) || !s.p || s.n < 2 || str_to_double(minutes, &m) != 0 ||
            str_to_double(str_head(s, s.n - 1), &seconds) != 0 || m < 0 || seconds < 0 || m > 1e9)
                return 0;
        return (uint64_t)((m * 60 + seconds) * 1000 + 0.5);
}

/* A shell says 128 and the signal's number for a program that a signal ended. */
static void status_of(uint64_t status, struct run_event *e)
{
        e->signaled = status > 128 && status <= 128 + SIGSYS;
        e->exit_code = (int)(e->signaled ? status - 128 : status & 255);
}

static bool read_ended(struct str line, struct run_event *e)
{
        static const char *const whys[] = {[RUN_ITSELF] = "itself",
                                           [RUN_KILLED] = "killed",
                                           [RUN_WALLTIME] = "walltime",
                                           [RUN_LEASE_ENDED] = "lease"};
        struct str word[4];
        uint64_t status;
        for (size_t i = 0; i < 4; i++)
                if (!str_cut(&line, ' ', &word[i]))
                        return false;
        if (str_to_u64(word[0], &status) != 0 || str_to_u64(word[2], &e->started_ms) != 0 ||
            str_to_u64(word[3], &e->ended_ms) != 0)
                return false;
        e->state = RUN_ENDED;
        status_of(status, e);
        for (size_t i = 0; i < sizeof(whys) / sizeof(*whys); i++)
                if (str_eqz(word[1], whys[i]))
                        e->why = (enum run_why)i;
        return true;
}

void batch_script_lease(int64_t wall_ms, uint64_t serial, int64_t left_ms, unsigned every_s, struct buf *out)
{
        int64_t left = left_ms / 1000, every = left / 12, grace = left / 6;
        every = every < 1 ? 1 : every > every_s ? every_s : every;
        grace = grace < 1 ? 1 : grace > KILL_AFTER_S ? KILL_AFTER_S : grace;
        /* seen late, found old late, and killed in the end: all that within what is left */
        int64_t term = left - 2 * every - grace - 1;
        buf_printf(out, "%lld.%llu %lld\n%lld %lld\n", (long long)wall_ms, (unsigned long long)serial,
                   (long long)(term < 1 ? 1 : term), (long long)every, (long long)grace);
}

bool batch_script_done(struct str text, struct run_event *e)
{
        static const struct {
                const char *what;
                int error;
        } failures[] = {{"program", 2}, {"stdin", 2}, {"folder", 2}};
        struct str line, word;
        if (!str_cut(&text, '\n', &line) || !str_cut(&line, ' ', &word))
                return false;
        if (str_eqz(word, "failed")) {
                for (size_t i = 0; i < sizeof(failures) / sizeof(*failures); i++)
                        if (str_eqz(line, failures[i].what)) {
                                e->state = RUN_FAILED;
                                e->what = failures[i].what;
                                e->error = failures[i].error;
                                return true;
                        }
                return false;
        }
        if (str_eqz(word, "lost")) {
                *e = (struct run_event){.state = RUN_LOST,
                                        .text = "its turn came there after its lease had ended"};
                return true;
        }
        if (!str_eqz(word, "ended") || !read_ended(line, e))
                return false;
        /* of `times`: the shell's own line, then its children's: user, system */
        str_cut(&text, '\n', &line);
        if (str_cut(&text, '\n', &line) && str_cut(&line, ' ', &word)) {
                e->cpu_user_ms = shell_time_ms(word);
                e->cpu_system_ms = shell_time_ms(str_trim(line));
        }
        return true;
}
