/* drover glidein start: runs agents of this server as jobs of another cluster.
 *
 * A glide-in is an ordinary job of a queue that hands jobs to a batch system. Its program is a shell
 * script that starts an agent in a folder of the node, with a token of its own. The agent ends before the
 * walltime, or when it has been idle for some time. Everything that applies to jobs applies to it: limits,
 * rm, why, the batch system's accounting. A glide-in runs once, because its token is used up: one that is
 * lost is removed and not started again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/format/quantity.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "base/system/program.h"
#include "base/system/uuid.h"
#include "cli/client/instance.h"
#include "cli/client/submit.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"
#include "jdl/script/script.h"

#define COUNT_MAX      1000 /* in one call; each needs a token */
#define WALLTIME_MIN_S 120
#define IDLE_S         600
#define EXPIRES_S      (3 * 86400)
#define MARGIN_MIN_S   45 /* between the agent's end and the walltime: half a minute and its kill_grace */
#define MARGIN_MAX_S   300
#define TOKEN_MAX      512
#define NAME_MAX_TEXT  64

/* The shell does not exec the agent, because it must remove the agent's folder afterwards. */
static const char body[] =
        "home=$PWD name=$1 token=token.$2\n"
        "shift 2\n"
        "t=${TMPDIR:-/tmp}\n"
        "[ ${#t} -le 50 ] || t=/tmp\n" /* a socket's path may have 107 bytes */
        "top=$(mktemp -d \"$t/drover.XXXXXX\") || exit 1\n"
        /* the tokens of glide-ins that wait are beside this one, in folders of the same user */
        "hide=${home%/*}\n"
        "case $hide in */jobs) hide=${hide%/jobs} ;; esac\n"
        "[ -z \"$hide\" ] || set -- --hide \"$hide\" \"$@\"\n"
        "if [ -n \"$package\" ]; then\n"
        "    mkdir \"$top/package\" && tar -xzf \"$package\" -C \"$top/package\" || { rm -rf \"$top\"; exit "
        "1; }\n"
        "    bin=$(dirname \"$(find \"$top/package\" -name drover-agent -perm -100 | head -n 1)\")\n"
        "fi\n"
        "agent=\n"
        "trap '[ -z \"$agent\" ] || kill -TERM \"$agent\"' TERM INT USR2\n"
        "\"$bin/drover-agent\" --dir \"$top/agent\" --name \"$name\" --token-file \"$home/$token\" \"$@\" &\n"
        "agent=$!\n"
        "wait \"$agent\"; status=$?\n"
        "while kill -0 \"$agent\" 2>/dev/null; do wait \"$agent\"; status=$?; done\n"
        "rm -f \"$home/$token\"\n"
        "rm -rf \"$top\"\n"
        "exit \"$status\"\n";

struct glidein {
        struct cli *cli;
        const struct options *o;
        int64_t count, walltime_s, idle_s;
        struct buf servers; /* separated by commas */
        struct buf owners;  /* in the form that tokens use */
        struct buf prefix;  /* of the agents' names */
        char dir[64];       /* folder of the files to send, made by this call; "": not made */
        int fd;
};

/* ---- options */

static int read_counts(struct glidein *g)
{
        const struct options *o = g->o;
        int64_t cpus = options_number(o, "cpus", 1);

        g->count = options_number(o, "count", 1);
        g->walltime_s = options_number(o, "walltime", 0);
        g->idle_s = options_number(o, "idle", IDLE_S);
        if (!options_text(o, "queue"))
                return cli_error(CLI_USAGE,
                                 "which queue shall run them? --queue NAME; drover agents lists them");
        if (!options_text(o, "walltime") || g->walltime_s < WALLTIME_MIN_S)
                return cli_error(CLI_USAGE, "how long may each run? --walltime TIME, of %d seconds at least",
                                 WALLTIME_MIN_S);
        if (g->count < 1 || g->count > COUNT_MAX)
                return cli_error(CLI_USAGE, "--count is from 1 to %d", COUNT_MAX);
        if (cpus < 1 || g->idle_s < 1)
                return cli_error(CLI_USAGE, "--cpus and --idle are at least 1");
        if (options_text(o, "token-file") && (g->count != 1 || !options_text(o, "name")))
                return cli_error(CLI_USAGE,
                                 "--token-file is for one glide-in, with the --name that the token is for");
        if (options_text(o, "package") && options_text(o, "programs"))
                return cli_error(CLI_USAGE,
                                 "the programs come from --package or are in --programs, not both");
        return 0;
}

/* Checks names of queues and agents, which are quoted in a requirement. */
static int check_name(const char *option, const char *name)
{
        for (const char *at = name; at && *at; at++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+", *at))
                        return cli_error(CLI_USAGE, "--%s %s: a name has letters, digits and -_.+ only",
                                         option, name);
        return name && (!*name || strlen(name) > NAME_MAX_TEXT)
                       ? cli_error(CLI_USAGE, "--%s is a name of at most %d letters", option, NAME_MAX_TEXT)
                       : 0;
}

static int read_memory(const struct glidein *g, uint64_t *ret_mib)
{
        const char *text = options_text(g->o, "memory");
        uint64_t bytes = 2ull << 30;

        if (text && quantity_size(str_of(text), &bytes) != 0)
                return cli_error(CLI_USAGE, "--memory %s: write a size as in 2G", text);
        *ret_mib = bytes >> 20;
        return *ret_mib ? 0 : cli_error(CLI_USAGE, "--memory is at least 1M");
}

/* Finds addresses that agents on other machines can reach: the given ones, or those at which the server of
 * this machine listens over TCP. */
static int read_servers(struct glidein *g)
{
        struct buf dir BUF_CLEANUP = {0}, text BUF_CLEANUP = {0}, word BUF_CLEANUP = {0};
        struct view root, one, agents;
        const char *given;
        size_t at = 0;

        while ((given = options_list(g->o, "address", &at)))
                buf_printf(&g->servers, "%s%s", g->servers.n ? "," : "", given);
        if (g->servers.n)
                return 0;
        if (instance_dir(g->cli->dir, &dir, NULL) == 0 && instance_read(buf_view(&dir), &text, &root) == 0)
                for (at = 0, agents = view_get(root, "agents"); view_next(agents, &at, &one);
                     buf_reset(&word)) {
                        view_text(one, &word);
                        if (str_starts(buf_view(&word), STR("unix:")) ||
                            str_starts(buf_view(&word), STR("0.0.0.0:")) ||
                            str_starts(buf_view(&word), STR("[::]:")))
                                continue;
                        buf_printf(&g->servers, "%s%s", g->servers.n ? "," : "", buf_z(&word));
                }
        return g->servers.n ? 0
                            : cli_error(CLI_USAGE,
                                        "where do the glide-ins find this server? --address HOST:PORT, an "
                                        "address of `listen` in droverd.yaml that the nodes reach");
}

/* Reads the owners whose jobs the glide-ins run; the default is the caller alone. */
static int read_owners(struct glidein *g)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        int code;

        if (options_text(g->o, "owners")) {
                buf_addz(&g->owners, options_text(g->o, "owners"));
                return 0;
        }
        code = api_get(g->cli, "/v1/server", &answer);
        if (code == 0)
                view_text(view_get(answer.root, "you"), &g->owners);
        return code;
}

/* ---- files to send */

static int file_write(struct glidein *g, const char *name, struct str text, mode_t mode)
{
        struct err err = {""};

        return fs_write(g->fd, name, text, mode, false, &err) == 0 ? 0
                                                                   : cli_error(CLI_FAILED, "%s", err.text);
}

static void node_name(const struct glidein *g, int64_t number, struct buf *out)
{
        if (options_text(g->o, "token-file"))
                buf_addz(out, options_text(g->o, "name"));
        else
                buf_printf(out, STR_FMT "-%lld", STR_ARG(buf_view(&g->prefix)), (long long)number);
}

static int token_make_one(struct glidein *g, int64_t number, struct buf *ret)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf request BUF_CLEANUP = {0}, name BUF_CLEANUP = {0};
        struct json j = {.out = &request};
        int code;

        node_name(g, number, &name);
        json_open(&j, '{');
        json_kstrz(&j, "kind", "agent");
        json_kstr(&j, "name", buf_view(&name));
        json_kint(&j, "uses", 1);
        json_kint(&j, "expires_s", options_number(g->o, "expires", EXPIRES_S));
        json_kstr(&j, "owners", buf_view(&g->owners));
        json_close(&j, '}');
        code = api_post(g->cli, "/v1/tokens", buf_view(&request), &answer);
        if (code == 0)
                view_text(view_get(answer.root, "token"), ret);
        return code;
}

static int write_tokens(struct glidein *g)
{
        const char *file = options_text(g->o, "token-file");
        int code = 0;

        for (int64_t i = 0; i < g->count && code == 0; i++) {
                struct buf text BUF_CLEANUP = {0};
                struct err err = {""};
                char name[32];

                snprintf(name, sizeof(name), "token.%lld", (long long)i);
                if (!file)
                        code = token_make_one(g, i, &text);
                else if (fs_read_secret(AT_FDCWD, file, TOKEN_MAX, &text, &err) != 0)
                        code = cli_error(CLI_FAILED, "%s", err.text);
                if (code == 0)
                        code = file_write(g, name, str_trim(buf_view(&text)), 0600);
                if (text.n)
                        explicit_bzero(text.p, text.n);
        }
        return code;
}

static void agent_option(struct buf *out, const char *option, struct str value)
{
        buf_printf(out, " %s ", option);
        script_quote(out, value);
}

static void agent_options(struct buf *out, const char *option, struct str list)
{
        struct str one;

        while (list.n && str_cut(&list, ',', &one))
                if (str_trim(one).n)
                        agent_option(out, option, str_trim(one));
}

static int write_script(struct glidein *g, uint64_t memory_mib)
{
        struct buf text BUF_CLEANUP = {0}, attributes BUF_CLEANUP = {0};
        const char *package = options_text(g->o, "package"), *programs = options_text(g->o, "programs");
        int64_t margin_s = g->walltime_s / 10;
        struct str file = str_of(package ? package : "");

        margin_s = margin_s < MARGIN_MIN_S ? MARGIN_MIN_S : margin_s > MARGIN_MAX_S ? MARGIN_MAX_S : margin_s;
        buf_addz(&text, "#!/bin/sh\numask 077\nbin=");
        script_quote(&text, programs ? str_of(programs) : STR("."));
        buf_addz(&text, " package=");
        script_quote(&text, str_skip(file, (size_t)(str_rfind(file, '/') + 1)));
        buf_addz(&text, "\nset -- \"$@\"");
        agent_options(&text, "--server", buf_view(&g->servers));
        agent_options(&text, "--owner", buf_view(&g->owners));
        buf_printf(&text, " --cpus %lld --memory %lluM --leave-after %llds --leave-idle %llds",
                   (long long)options_number(g->o, "cpus", 1), (unsigned long long)memory_mib,
                   (long long)(g->walltime_s - margin_s), (long long)g->idle_s);
        buf_addz(&attributes, "DroverGlidein = true");
        if (options_text(g->o, "attributes"))
                buf_printf(&attributes, "; %s", options_text(g->o, "attributes"));
        agent_option(&text, "--attributes", buf_view(&attributes));
        buf_addz(&text, "\n");
        buf_addz(&text, body);
        return file_write(g, "glidein", buf_view(&text), 0700);
}

/* ---- the job */

static int add_programs(const struct glidein *g, struct buf *out)
{
        static const char *const names[] = {"drover-agent", "drover-shepherd", "drover-mover", "drover-init"};

        if (options_text(g->o, "package")) {
                buf_printf(out, ", %s", options_text(g->o, "package"));
                return 0;
        }
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !options_text(g->o, "programs"); i++) {
                struct buf path BUF_CLEANUP = {0};
                struct err err = {""};

                if (program_find(names[i], &path, &err) != 0)
                        return cli_error(CLI_FAILED, "%s", err.text);
                buf_printf(out, ", %s", buf_z(&path));
        }
        return 0;
}

static int describe(const struct glidein *g, uint64_t memory_mib, struct buf *out)
{
        const struct options *o = g->o;
        const char *agent = options_text(o, "agent"), *logs = options_text(o, "logs");
        const char *title = options_text(o, "batch-name");
        int code;

        buf_printf(out, "executable = %s/glidein\narguments = $(node) $(Process)\n", g->dir);
        buf_printf(out, "should_transfer_files = YES\ntransfer_output_files = \"\"\n");
        buf_printf(out, "transfer_input_files = %s/token.$(Process)", g->dir);
        code = add_programs(g, out);
        buf_printf(out, "\nrequest_cpus = %lld\nrequest_memory = %lluM\n",
                   (long long)options_number(o, "cpus", 1), (unsigned long long)memory_mib);
        buf_printf(out, "allowed_execute_duration = %lld\njob_max_vacate_time = 60\n",
                   (long long)g->walltime_s);
        buf_printf(out, "requirements = TARGET.QueueName == \"%s\" && TARGET.DroverGlidein isnt true",
                   options_text(o, "queue"));
        if (agent)
                buf_printf(out, " && TARGET.AgentName == \"%s\"", agent);
        buf_addz(out, "\nperiodic_remove = JobStatus == 1 && NumJobStarts > 0\n");
        buf_addz(out, "+DroverGlidein = \"$(node)\"\nbatch_name = ");
        if (title)
                script_value(out, str_of(title));
        else
                buf_printf(out, "glidein-%s", options_text(o, "queue"));
        if (logs)
                buf_printf(out, "\noutput = %s/$(node).log\nerror = %s/$(node).log", logs, logs);
        buf_addz(out, "\nqueue node from (\n");
        for (int64_t i = 0; i < g->count; i++) {
                node_name(g, i, out);
                buf_char(out, '\n');
        }
        buf_addz(out, ")\n");
        return code;
}

static void print_request(struct cli *cli, const struct api_answer *answer)
{
        struct buf out BUF_CLEANUP = {0};

        if (cli->json) {
                buf_str(&out, answer->root.text);
        } else {
                buf_addz(&out, "request ");
                view_text(view_get(answer->root, "id"), &out);
                buf_addz(&out, ": ");
                human_count(&out, view_integer(view_get(answer->root, "jobs"), 0), "glide-in", "glide-ins");
        }
        buf_char(&out, '\n');
        cli_print(&out);
}

static int submit_glideins(struct glidein *g, uint64_t memory_mib)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf text BUF_CLEANUP = {.max = FORM_TEXT_MAX};
        struct submit s;
        int code = describe(g, memory_mib, &text);

        if (code != 0)
                return code;
        submit_init(&s, g->cli, "glidein");
        s.text = buf_view(&text);
        code = submit_append(&s, g->o);
        if (code == 0)
                code = submit_read(&s);
        if (code == 0)
                code = submit_send(&s, &answer);
        submit_deinit(&s);
        if (code == 0)
                print_request(g->cli, &answer);
        return code;
}

static int folder_make(struct glidein *g)
{
        const char *tmp = getenv("TMPDIR");

        if (snprintf(g->dir, sizeof(g->dir), "%s/drover-glidein.XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
            (int)sizeof(g->dir))
                snprintf(g->dir, sizeof(g->dir), "/tmp/drover-glidein.XXXXXX");
        if (!mkdtemp(g->dir))
                return cli_error(CLI_FAILED, "cannot make the folder %s: %s", g->dir, strerror(errno));
        g->fd = open(g->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return g->fd < 0 ? cli_error(CLI_FAILED, "cannot use the folder %s: %s", g->dir, strerror(errno)) : 0;
}

static void glidein_deinit(struct glidein *g)
{
        if (g->fd >= 0) {
                close(g->fd);
                fs_remove_tree(AT_FDCWD, g->dir);
        }
        buf_deinit(&g->servers);
        buf_deinit(&g->owners);
        buf_deinit(&g->prefix);
}

int cmd_glidein(struct cli *cli, const struct options *o)
{
        struct glidein g = {.cli = cli, .o = o, .fd = -1};
        char uuid[UUID_TEXT];
        uint64_t memory_mib = 0;
        int code = strcmp(o->words[0], "start") == 0
                           ? read_counts(&g)
                           : cli_error(CLI_USAGE, "drover glidein start: not \"%s\"", o->words[0]);

        if (code == 0)
                code = check_name("queue", options_text(o, "queue"));
        if (code == 0)
                code = check_name("agent", options_text(o, "agent"));
        if (code == 0)
                code = check_name("name", options_text(o, "name"));
        if (code == 0)
                code = read_memory(&g, &memory_mib);
        if (code == 0)
                code = read_servers(&g);
        if (code == 0)
                code = read_owners(&g);
        uuid_new(uuid);
        buf_printf(&g.prefix, "%s-%.8s", options_text(o, options_text(o, "name") ? "name" : "queue"), uuid);
        if (code == 0)
                code = folder_make(&g);
        if (code == 0)
                code = write_script(&g, memory_mib);
        if (code == 0)
                code = write_tokens(&g);
        if (code == 0)
                code = submit_glideins(&g, memory_mib);
        glidein_deinit(&g);
        return code;
}
