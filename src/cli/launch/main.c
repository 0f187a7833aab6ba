/* drover-launch [OPTIONS] HOST COMMAND...: runs a command on another node of the parallel job that calls it,
 * in place of ssh: MPI's launchers start their daemons so.
 *
 * The calls are those of `drover chirp`: the node's agent asks the server, and the server the other agent. A
 * connection that is lost is made again: the command goes on meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "cli/client/chirp.h"

#define FAILED    255 /* as ssh's */
#define START_MS  60000
#define PAUSE_MS  500
#define HOSTS_MAX (64u << 20)

static const char usage[] =
        "usage: drover-launch [OPTIONS] HOST COMMAND [ARGUMENT]...\n"
        "Runs a command on another node of the parallel job that calls it, like ssh; see drover-launch(8).\n"
        "HOST is a line of the file that DROVER_HOSTS names. The options of ssh are accepted, and do "
        "nothing.\n";

static int fail(const char *text)
{
        fprintf(stderr, "drover-launch: %s\n", text);
        return FAILED;
}

static void pause_a_while(void)
{
        const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};

        nanosleep(&pause, NULL);
}

/* ---- which node */

static struct str label_of(struct str name)
{
        ptrdiff_t dot = str_find(name, '.');

        return dot < 0 ? name : str_head(name, (size_t)dot);
}

/* Looks for the host in the list, in which each node has one or more lines of the same name. Open MPI cuts
 * names at their first dot, so a name without one stands for what it begins. Returns 0, -ENOENT: no node has
 * that name. */
static int find_node(struct str hosts, struct str host, uint32_t *ret)
{
        struct str line, before = STR_NONE;
        uint32_t node = 0;
        bool found = false;

        while (str_cut(&hosts, '\n', &line)) {
                if (line.n == 0)
                        continue;
                if (before.n && !str_eq(line, before))
                        node++;
                before = line;
                if (str_eq(line, host)) {
                        *ret = node;
                        return 0;
                }
                if (!found && str_eq(label_of(line), host)) {
                        *ret = node;
                        found = true;
                }
        }
        return found ? 0 : -ENOENT;
}

static int node_of(const char *host, uint32_t *ret, struct err *err)
{
        const char *path = getenv("DROVER_HOSTS");
        BUF_CLEANUP struct buf hosts = {.max = HOSTS_MAX};
        int r;

        if (!path || !*path)
                return err_set(
                        err, -ENOENT,
                        "DROVER_HOSTS is not set: this is for programs of jobs that were submitted with "
                        "universe = parallel, and run as processes of agents' machines");
        r = fs_read(AT_FDCWD, path, HOSTS_MAX, &hosts, err);
        if (r < 0)
                return r;
        if (find_node(buf_view(&hosts), str_of(host), ret) < 0)
                return err_set(err, -ENOENT, "the job has no node '%s': %s lists those that it has", host,
                               path);
        return 0;
}

/* ---- the command */

static void add_word(struct buf *to, const char *word)
{
        buf_add(to, word, strlen(word) + 1);
}

/* A shell there reads the words as one line, as of ssh. Where the caller's folder does not exist there, HOME
 * is the node's own: Open MPI's daemon starts its processes in HOME then. */
static void write_command(struct buf *to, char *const *words, int count)
{
        MEM_CLEANUP char *here = getcwd(NULL, 0);
        BUF_CLEANUP struct buf line = {0};

        for (int i = 0; i < count; i++)
                buf_printf(&line, "%s%s", i ? " " : "", words[i]);
        add_word(to, "sh");
        add_word(to, "-c");
        add_word(to, "[ -x \"$1\" ] || export HOME=\"$PWD\"; exec sh -c \"$2\"");
        add_word(to, "drover-launch");
        add_word(to, here ? here : "/");
        add_word(to, buf_z(&line));
}

static int start(struct chirp_client *c, uint32_t node, struct str command, uint64_t *ret, struct err *err)
{
        const struct chirp_call call = {.op = "launch", .node = node, .data = command};
        int64_t end = clock_boot_ms() + START_MS;
        struct chirp_reply reply = {0};
        int r;

        while ((r = chirp_call(c, &call, &reply, err)) == -EBUSY && clock_boot_ms() < end)
                pause_a_while(); /* the nodes start at the same time */
        *ret = reply.command;
        chirp_reply_deinit(&reply);
        return r;
}

/* An agent that was started again does not know its jobs yet. */
static bool is_for_a_while(int r, int64_t unknown_ms)
{
        return (r == -ESRCH && clock_boot_ms() < unknown_ms + START_MS) || r == -EAGAIN || r == -ECONNRESET ||
               r == -EPIPE || r == -ENOENT || r == -ECONNREFUSED || r == -ETIMEDOUT;
}

/* Prints the output of the command on the node as it comes, until the command has ended. Returns the exit
 * code. */
static int follow(struct chirp_client **c, uint32_t node, uint64_t command)
{
        struct chirp_call call = {.op = "launched", .node = node, .command = command};
        struct chirp_reply reply = {0};
        struct err err = {""};
        int64_t unknown_ms =
                0; /* boot clock: since when the agent has said that it does not know the command */
        int r;

        do {
                r = *c ? chirp_call(*c, &call, &reply, &err) : chirp_connect(c, &err);
                if (r != -ESRCH)
                        unknown_ms = 0;
                else if (!unknown_ms)
                        unknown_ms = clock_boot_ms();
                if (r < 0 && is_for_a_while(r, unknown_ms)) {
                        chirp_disconnect(*c);
                        *c = NULL;
                        pause_a_while();
                        continue;
                }
                if (r == 0 && fs_write_all(STDOUT_FILENO, reply.data.p, reply.data.n) == 0)
                        call.offset += reply.data.n;
                if (r == 0 && fs_write_all(STDERR_FILENO, reply.stderr_data.p, reply.stderr_data.n) == 0)
                        call.stderr_offset += reply.stderr_data.n;
                buf_reset(&reply.data);
                buf_reset(&reply.stderr_data);
        } while (r == 0 ? !reply.over : is_for_a_while(r, unknown_ms));
        chirp_reply_deinit(&reply);
        if (r < 0)
                return fail(err.text);
        return reply.signal ? 128 + reply.signal : reply.exit_code;
}

static int launch(const char *host, char *const *words, int count)
{
        BUF_CLEANUP struct buf command = {.max = CHIRP_DATA_MAX};
        struct chirp_client *c = NULL;
        struct err err = {""};
        uint64_t number = 0;
        uint32_t node = 0;
        int r = node_of(host, &node, &err);

        write_command(&command, words, count);
        if (r == 0 && buf_check(&command))
                r = err_set(&err, -E2BIG, "the command is longer than %u KiB", CHIRP_DATA_MAX >> 10);
        if (r == 0)
                r = chirp_connect(&c, &err);
        if (r == 0)
                r = start(c, node, buf_view(&command), &number, &err);
        r = r < 0 ? fail(err.text) : follow(&c, node, number);
        chirp_disconnect(c);
        return r;
}

int main(int argc, char **argv)
{
        static const char with_value[] = "BbcDEeFIiJLlmOopQRSWw"; /* of ssh's options */
        int at = 1;

        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                return puts("drover-launch " DROVER_VERSION) < 0;
        if (argc == 2 && strcmp(argv[1], "--help") == 0)
                return fputs(usage, stdout) < 0;
        for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++)
                if (!argv[at][2] && strchr(with_value, argv[at][1]))
                        at++;
        if (argc - at < 2) {
                fputs(usage, stderr);
                return FAILED;
        }
        return launch(argv[at], argv + at + 1, argc - at - 1);
}
