/* Writes scripts for /bin/sh that need only what every node has: coreutils, and setsid of util-linux. */
#include <signal.h>
#include <stdlib.h>

#include "run/batch/batch.h"
#include "run/sandbox_names.h"

#define LEASE_S      600 /* assumed lease of a script that has never seen the lease file */
#define KILL_AFTER_S 5   /* from SIGTERM to SIGKILL */
#define MEASURE_S    10  /* longest time of the command that prints the energy */
#define JOULES_MAX   1000000000000ull

void batch_quote(struct buf *out, const char *text)
{
        command_quote(out, str_of(text));
}

static void assign(struct buf *out, const char *name, const char *value)
{
        buf_printf(out, "%s=", name);
        batch_quote(out, value);
        buf_char(out, '\n');
}

/* Start of a script: it begins only once, only where the script's file is visible, and only while the lease
 * runs. The lease's age is taken from the file system's times, so other machines' clocks do not matter. The
 * file .end has the time at which the lease ends; where it shows no time left, the script computes the end
 * itself. */
static const char begin[] =
        "forget() { [ -z \"$secrets\" ] || rm -rf \"$box/" SANDBOX_CREDENTIALS
        "\"; } # its agent may be gone\n"
        "say() { # the agent may be another user; the program is over. The last line makes it whole\n"
        "        umask 022\n"
        "        { times; printf '%s\\n' \"$*\"; } >\"$step.done\"\n"
        "}\n"
        "failed() { say \"failed $1\"; exit 0; }\n"
        "{ read -r host </proc/sys/kernel/hostname; } 2>/dev/null || host=$(hostname)\n"
        "set -C # a file is made by one of us\n"
        "if ! { true >\"$step.began\"; } 2>/dev/null; then\n"
        "        if [ -e \"$step.began\" ]; then # it was submitted twice, and runs; or it ran, and was put "
        "back\n"
        "                { true >\"$step.again\"; } 2>/dev/null\n"
        "                exit 0\n"
        "        fi\n"
        "        echo \"drover: $box is not seen on $host, or not writable\" >&2\n"
        "        exit 74\n"
        "fi\n"
        "set +C\n"
        "echo \"$host\" >\"$step.began\"\n"
        "serial=\n"
        "[ -r \"$lease\" ] && { read -r serial lease_s; read -r often end && every=$often grace=$end; } "
        "<\"$lease\"\n"
        "if [ -n \"$serial\" ] && { [ ! -e \"$lease.end\" ] || [ \"$step.began\" -nt \"$lease.end\" ]; }; "
        "then\n"
        "        age=$(($(stat -c %Y \"$step.began\") - $(stat -c %Y \"$lease\")))\n"
        "        [ $age -lt 0 ] && age=0\n"
        "        if [ $age -ge $lease_s ]; then # its turn came late: it may run elsewhere by now\n"
        "                forget\n"
        "                say 'lost lease'\n"
        "                exit 0\n"
        "        fi\n"
        "fi\n"
        "ulimit -c 0\n";

/* Watches the lease and the walltime, in a session of its own beside the program, so that it can be killed
 * as a whole. Time is counted by the node's uptime, which goes on while a job is stopped. The text must have
 * no single quote. */
static const char guard[] =
        "same='born() { # when a process began; nothing where that cannot be told\n"
        "        { read -r born <\"/proc/$1/stat\"; } 2>/dev/null || born=\n"
        "        set -- ${born##*)}\n"
        "        born=${20}\n"
        "}\n"
        "is() { # no other process has its number: of a group, that none has it which is not in the group\n"
        "        born $1\n"
        "        [ -z \"$born\" ] || [ -z \"$2\" ] || [ \"$born\" = \"$2\" ]\n"
        "}'\n"
        "eval \"$same\"\n"
        "orders='for order in \"$step\".order.????????????????; do\n"
        "        mv \"$order\" \"$step.taken.$$\" 2>/dev/null || continue\n"
        "        read -r signal <\"$step.taken.$$\" && kill -s \"$signal\" -- \"-$child\"\n"
        "        rm -f \"$step.taken.$$\"\n"
        "done'\n"
        "guard='step=$1 child=$2 grace=$3 lease=$4 term=$5 every=$6 left=$7 orders=$8 seen=$9 script=${10}\n"
        "child_born=${12} script_born=${13} why= aged=\n"
        "eval \"${11}\"\n"
        "up() { read -r up rest </proc/uptime && up=${up%%.*} || up=$(date +%s); }\n"
        "up\n"
        "since=$up\n"
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
        "        elif [ -n \"$serial\" ] && [ -z \"$aged\" ]; then # how old it was as this began\n"
        "                was=$(stat -c %Y \"$lease\") now=$(stat -c %Y \"$step.began\")\n"
        "                [ -n \"$was\" ] && [ \"${now:-0}\" -gt \"$was\" ] && since=$((since - now + was))\n"
        "        fi\n"
        "        [ -n \"$serial\" ] && aged=1\n"
        "        kill -0 $script 2>/dev/null && is $script \"$script_born\" || why=killed # the script "
        "alone\n"
        "        [ $((up - since)) -ge $term ] && why=lease\n"
        "        [ $left -eq $nap ] && why=walltime\n"
        "        [ $left -gt 0 ] && left=$((left - nap))\n"
        "done\n"
        "[ -e \"$step.why\" ] || echo $why >\"$step.why\"\n"
        "is $child \"$child_born\" || exit 0\n"
        "kill -s TERM -- \"-$child\"\n"
        "kill -s CONT -- \"-$child\"\n"
        "sleep $grace\n"
        "is $child \"$child_born\" && kill -s KILL -- \"-$child\"'\n"
        "beside() { setsid /bin/sh -c \"$@\" </dev/null >/dev/null 2>&1 & guards=\"$guards $!\"; }\n"
        "told() { # to end\n"
        "        [ -e \"$step.why\" ] || echo killed >\"$step.why\"\n"
        "        kill -s TERM -- \"-$child\" 2>/dev/null\n"
        "        kill -s CONT -- \"-$child\" 2>/dev/null\n"
        "        beside 'sleep $1; kill -s KILL -- \"-$2\"' end $grace $child\n"
        "}\n";

/* Waits for the program. A signal to the script ends a `wait` early with that signal's status, so it waits
 * again; status 127 means that the child was waited for already. A system that ends a job signals its
 * processes one after another: when a SIGTERM has ended the program, the script's own signal may still be on
 * its way, and is waited for. */
static const char traps[] =
        "child=$! guards= status=\n"
        "trap 'again=1; told' TERM INT\n"
        "trap 'again=1; kill -s STOP -- \"-$child\"' TSTP # its own stop would not reach the program\n"
        "trap 'again=1; kill -s CONT -- \"-$child\"' CONT\n"
        "trap 'again=1; eval \"$orders\"' URG # a signal for the program\n";

static const char end[] =
        "born $child\n"
        "child_born=$born\n"
        "born $$\n"
        "beside \"$guard\" guard \"$step\" $child $grace \"$lease\" $lease_s $every $walltime \"$orders\" "
        "\"$serial\" $$ \"$same\" \"$child_born\" \"$born\"\n"
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
        "[ $status -eq 143 ] && [ ! -e \"$step.why\" ] && sleep 2 # for a SIGTERM of its own\n"
        "for guard in $guards; do kill -s KILL $guard; kill -s KILL -- \"-$guard\"; done 2>/dev/null\n"
        "kill -s KILL -- \"-$child\" 2>/dev/null # what it left behind\n"
        "after >/dev/null 2>&1\n"
        "joules=\n"
        "measure\n"
        "case $joules in *[!0-9]*) joules= ;; esac\n"
        "why=itself\n"
        "[ -e \"$step.why\" ] && read -r why <\"$step.why\"\n"
        "[ \"$why\" = lease ] && forget\n"
        "say \"ended $status $why${joules:+ $joules}\"\n"
        "[ $status -gt 128 ] && status=1 # else the system takes the script for one that a signal ended\n"
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

/* Returns whether a shell reserves the variable: setting it ends the shell, unless by `command`. */
static bool is_a_shells_own(struct str name)
{
        static const char *const own[] = {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"};

        for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
                if (str_eqz(name, own[i]))
                        return true;
        return false;
}

/* Sets the job's environment in a subshell for the program alone, since a job's variable may have the name
 * of one of the script's. */
static void script_environment(const struct run_spec *s, struct buf *out)
{
        buf_addz(out, "environment() {\n"
                      "unset LC_ALL\n"); /* set for the submit command, whose output is parsed here */
        for (char *const *e = s->envp; e && *e; e++) {
                const char *eq = strchr(*e, '=');
                bool name = eq && eq > *e;

                for (const char *p = *e; name && p < eq; p++)
                        name = *p == '_' || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') ||
                               (p > *e && *p >= '0' && *p <= '9');
                if (!name)
                        continue; /* not a valid name in a shell */
                bool own = is_a_shells_own(str_make(*e, (size_t)(eq - *e)));
                buf_printf(out, "%sexport %.*s=", own ? "command " : "", (int)(eq - *e), *e);
                batch_quote(out, eq + 1);
                buf_addz(out, own ? " 2>/dev/null\n" : "\n");
        }
        buf_addz(out, "}\n");
}

static void redirect_streams(const struct run_spec *s, struct buf *out)
{
        redirect(out, " <", s->stdin_path);
        redirect(out, s->flags & RUN_STDOUT_APPEND ? " >>" : " >", s->stdout_path);
        if (s->flags & RUN_STDERR_IS_STDOUT)
                buf_addz(out, " 2>&1");
        else
                redirect(out, s->flags & RUN_STDERR_APPEND ? " 2>>" : " 2>", s->stderr_path);
}

static void program(const struct run_spec *s, struct buf *out)
{
        const char *in = s->stdin_path;

        assign(out, "program", s->path);
        buf_addz(out, "case $program in\n"
                      "*/*) [ -x \"$program\" ] && [ ! -d \"$program\" ] || failed program ;;\n"
                      "*) (set -- \"$program\"; environment; command -v \"$1\") >/dev/null || failed program "
                      ";;\n"
                      "esac\n");
        if (in && *in) {
                buf_addz(out, "[ -r ");
                redirect(out, "", in);
                buf_addz(out, " ] || failed stdin\n");
        }
        /* background processes of a shell ignore SIGINT and SIGQUIT, and all that a daemon under nohup starts
         * ignores SIGHUP, which a shell cannot undo; whether the node's env can is tested once */
        buf_addz(out,
                 "clean='/usr/bin/env --default-signal' known=${lease%/*}/signals.$host\n"
                 "[ -e \"$known\" ] || if $clean true; then echo >\"$known\"; else clean=; fi 2>/dev/null\n"
                 "setsid=/usr/bin/setsid # whatever PATH the job has\n"
                 "[ -x $setsid ] || setsid=setsid\n"
                 "(set -- $clean $setsid \"$program\"");
        for (char *const *a = s->argv + 1; s->argv[0] && *a; a++) {
                buf_char(out, ' ');
                batch_quote(out, *a);
        }
        buf_addz(out, "\nenvironment\nexec \"$@\")");
        redirect_streams(s, out);
        buf_addz(out, " &\n");
}

static void after(const struct run_spec *s, struct buf *out)
{
        if (!s->after || !*s->after) {
                buf_addz(out, "after() { :; }\n");
                return;
        }
        buf_addz(out, "after() (environment;");
        for (char *const *a = s->after; *a; a++) {
                buf_char(out, ' ');
                batch_quote(out, *a);
        }
        buf_addz(out, ")\n");
}

static void measure(const char *energy, struct buf *out)
{
        if (energy)
                buf_printf(out, "measure() { joules=$(timeout %d %s) 2>/dev/null; }\n", MEASURE_S, energy);
        else
                buf_addz(out, "measure() { :; }\n");
}

void batch_script(const struct run_spec *s, const char *head, const struct batch_guard *g, struct buf *out)
{
        buf_printf(out, "#!/bin/sh\n%s# job %s, attempt %u, step %u\n", head, s->job ? s->job : "",
                   s->id.fence, s->id.step);
        assign(out, "box", s->sandbox);
        assign(out, "lease", g->lease);
        buf_printf(out, "step=$box/" BATCH_STEP ".%u secrets=%s\n", s->id.step,
                   s->flags & RUN_CREDENTIALS ? "1" : "");
        buf_printf(out, "walltime=%llu grace=%d every=%u lease_s=%d\n",
                   (unsigned long long)((s->walltime_ms + 999) / 1000), KILL_AFTER_S, g->every_s, LEASE_S);
        buf_addz(out, begin);
        script_environment(s, out);
        buf_addz(out, "cd ");
        batch_quote(out, s->cwd ? s->cwd : s->sandbox);
        buf_addz(out, " || failed folder\n");
        buf_addz(out, guard);
        after(s, out);
        measure(g->energy, out);
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
                   "part=$list.$(((n - 1) / %u)) script=\n"
                   "[ -r \"$part\" ] && . \"$part\"\n"
                   "if [ ! -r \"$script\" ]; then\n"
                   "        echo \"drover: $list is not seen on $(hostname)\" >&2\n"
                   "        exit 74\n"
                   "fi\n"
                   ". \"$script\"\n",
                   index_first, BATCH_LIST_PART);
}

void batch_script_member(unsigned index, const char *script, struct buf *out)
{
        buf_printf(out, index % BATCH_LIST_PART ? "%u) script=" : "case $n in\n%u) script=", index + 1);
        batch_quote(out, script);
        buf_addz(out, " ;;\n");
}

/* ---- reading how a script ended */

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

/* Converts a shell's status, which is 128 plus the signal's number for a program ended by a signal. */
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
        struct str number, why;
        uint64_t status, joules;

        if (!str_word(&line, &number) || str_to_u64(number, &status) != 0 || !str_word(&line, &why))
                return false;
        e->state = RUN_ENDED;
        status_of(status, e);
        for (size_t i = 0; i < sizeof(whys) / sizeof(*whys); i++)
                if (str_eqz(why, whys[i]))
                        e->why = (enum run_why)i;
        if (str_word(&line, &number) && str_to_u64(number, &joules) == 0 && joules <= JOULES_MAX)
                e->energy_uj = joules * 1000000;
        return true;
}

int64_t batch_script_lease(int64_t wall_ms, uint64_t serial, int64_t left_ms, unsigned every_s,
                           struct buf *out)
{
        int64_t left = left_ms / 1000, every = left / 12, grace = left / 6;

        every = every < 1 ? 1 : every > every_s ? every_s : every;
        grace = grace < 1 ? 1 : grace > KILL_AFTER_S ? KILL_AFTER_S : grace;
        /* must cover a late look, a late check, and the kill */
        int64_t term = left - 2 * every - grace - 1;
        term = term < 1 ? 1 : term;
        buf_printf(out, "%lld.%llu %lld\n%lld %lld\n", (long long)wall_ms, (unsigned long long)serial,
                   (long long)term, (long long)every, (long long)grace);
        return term;
}

/* Reads two lines of `times`, the shell's own and its children's (user, system), and the line of the end.
 * Scripts of early versions wrote them in the other order. */
bool batch_script_done(struct str text, struct run_event *e)
{
        static const struct {
                const char *what;
                int error;
        } failures[] = {{"program", 2}, {"stdin", 2}, {"folder", 2}};
        struct str line[3] = {{0}}, verdict, children, word;

        if (!text.n || text.p[text.n - 1] != '\n')
                return false; /* incomplete */
        for (size_t i = 0; i < 3 && text.n; i++)
                str_cut(&text, '\n', &line[i]);
        bool first = line[0].n && line[0].p[0] >= 'a'; /* times begin with digits */
        verdict = line[first ? 0 : 2];
        children = line[first ? 2 : 1];
        if (!str_word(&verdict, &word))
                return false;
        verdict = str_trim(verdict);
        if (str_eqz(word, "failed")) {
                for (size_t i = 0; i < sizeof(failures) / sizeof(*failures); i++)
                        if (str_eqz(verdict, failures[i].what)) {
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
        if (!str_eqz(word, "ended") || !read_ended(verdict, e))
                return false;
        if (str_word(&children, &word)) {
                e->cpu_user_ms = shell_time_ms(word);
                e->cpu_system_ms = shell_time_ms(str_trim(children));
        }
        return true;
}
