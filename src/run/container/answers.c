/* Reads the answers and errors of container engines. */
#include <stdlib.h>
#include <string.h>

#include "base/job/image.h"
#include "base/str.h"
#include "run/container/container.h"

bool container_probed(enum container_engine e, struct str answer, struct container_host *ret)
{
        struct str line = STR_NONE, word;

        str_cut(&answer, '\n', &line);
        *ret = (struct container_host){.engine = e};
        if (e == CONTAINER_APPTAINER) { /* "apptainer version 1.1.9-1", "singularity-ce version 3.10" */
                ptrdiff_t blank = str_rfind(line, ' ');

                line = str_skip(line, (size_t)(blank + 1));
                ret->in_place = true;
        }
        if (!str_word(&line, &word) || word.n == 0 || word.p[0] < '0' || word.p[0] > '9')
                return false;
        for (size_t i = 0; i < word.n && i + 1 < sizeof(ret->version); i++)
                ret->version[i] = word.p[i] == '"' || word.p[i] == '\\' ? '?' : word.p[i];
        if (e != CONTAINER_PODMAN)
                return true;
        if (!str_word(&line, &word))
                return false;
        ret->in_place = str_eqz(word, "crun");
        ret->rootless = str_word(&line, &word) && str_eqz(word, "true");
        return true;
}

/* Reads a size as podman and docker print it: "4.87 MB", "72.8MB", "512kB". */
static uint64_t size_of(struct str text)
{
        static const struct {
                const char *unit;
                double bytes;
        } units[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
        size_t n = 0;
        double value;

        while (n < text.n && (text.p[n] == '.' || (text.p[n] >= '0' && text.p[n] <= '9')))
                n++;
        if (str_to_double(str_head(text, n), &value) != 0)
                return 0;
        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
                if (str_ieqz(str_trim(str_skip(text, n)), units[i].unit))
                        return (uint64_t)(value * units[i].bytes);
        return 0;
}

void container_each_image(enum container_engine e, struct str answer,
                          void (*fn)(void *arg, struct str name, uint64_t bytes), void *arg)
{
        struct str line, name;

        while (answer.n && str_cut(&answer, '\n', &line)) {
                BUF_CLEANUP struct buf whole = {0}, kept = {0};

                if (!str_cut(&line, ' ', &name) || str_search(name, STR("<none>")) >= 0)
                        continue;
                if (e == CONTAINER_APPTAINER) {
                        if (!container_kept_read(name, &kept))
                                continue;
                        name = buf_view(&kept);
                }
                if (container_image(e, name, &whole, NULL) < 0)
                        continue;
                fn(arg, buf_view(&whole), size_of(line));
        }
}

/* ---- failures */

static bool starts_any(struct str line, const char *const *heads)
{
        for (; *heads; heads++)
                if (str_starts(line, str_of(*heads)))
                        return true;
        return false;
}

/* Removes colours, which some of apptainer's errors have even without a terminal. */
static struct str without_colour(struct str line)
{
        while (str_starts(line, STR("\033["))) {
                ptrdiff_t end = str_find(line, 'm');

                if (end < 0)
                        break;
                line = str_skip(line, (size_t)end + 1);
        }
        return line;
}

static struct str last_line(struct str text)
{
        if (str_ends(text, STR("\n\033[0m")))
                text = str_head(text, text.n - strlen("\033[0m"));
        while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
                text.n--;
        return str_skip(text, (size_t)(str_rfind(text, '\n') + 1));
}

struct str container_words(struct str errors)
{
        static const char *const heads[] = {
                "Error: ", "docker: ", "FATAL: ", "Error response from daemon: ", NULL};
        struct str line, found = last_line(errors);

        for (struct str rest = errors; rest.n && str_cut(&rest, '\n', &line);)
                if (starts_any(line, heads))
                        found = line;
        found = str_trim(found);
        return str_head(found, 600);
}

bool container_passes(struct str words)
{
        static const char *const phrases[] = {"connection refused",
                                              "connection reset",
                                              "connection timed out",
                                              "broken pipe",
                                              "i/o timeout",
                                              "handshake timeout",
                                              "deadline exceeded",
                                              "exceeded while awaiting headers",
                                              "exceeded while reading body",
                                              "no route to host",
                                              "network is unreachable",
                                              "host is down",
                                              "server misbehaving",
                                              "name resolution",
                                              "unexpected EOF",
                                              ": EOF",
                                              "no space left on device",
                                              "toomanyrequests:",
                                              "Too Many Requests",
                                              "too many requests",
                                              "Internal Server Error",
                                              "Bad Gateway",
                                              "Service Unavailable",
                                              "Gateway Time"};

        for (size_t i = 0; i < sizeof(phrases) / sizeof(*phrases); i++)
                if (str_search(words, str_of(phrases[i])) >= 0)
                        return true;
        return false;
}

static const char *const engine_heads[][3] = {
        [CONTAINER_PODMAN] = {"Error: ", NULL},
        [CONTAINER_DOCKER] = {"docker: ", "Error: ", NULL}, /* the latter is drover-init's */
        [CONTAINER_APPTAINER] = {"FATAL: ", "ERROR  : ", NULL},
};
/* errors of the inits that start the program */
static const char *const init_heads[] = {"ERROR (catatonit:", "ERROR (drover-init)", "[FATAL tini (", NULL};

/* Cuts off docker's hint "See 'docker run --help'."; returns false if there is none. */
static bool without_hint(struct str tail, struct str *ret)
{
        struct str last = last_line(tail);

        if (!str_starts(last, STR("See 'docker")) && !str_starts(last, STR("Run 'docker")))
                return false;
        *ret = last_line(str_trim(str_head(tail, (size_t)(last.p - tail.p))));
        return true;
}

/* Classifies an end. Apptainer's C part prints ERROR and exits with 1, the rest prints FATAL and exits with
 * 255; "FATAL:   stat /no: no such file or directory" and the like are about the program. */
static enum container_end apptainer_ended(int exit_code, struct str line)
{
        static const char *const of_program[] = {"stat ", "exec ", "permission denied", "is a directory",
                                                 NULL};

        if (str_starts(line, STR("ERROR")))
                return exit_code == 1 || exit_code == 255 ? CONTAINER_FAILED : CONTAINER_PROGRAM_ENDED;
        if (exit_code != 255)
                return CONTAINER_PROGRAM_ENDED;
        line = str_trim(str_skip(line, strlen("FATAL:")));
        if (str_search(line, STR("could not open image")) >= 0 && str_search(line, STR("%2F")) >= 0 &&
            str_ends(line, STR("no such file or directory")))
                return CONTAINER_NO_IMAGE; /* a kept image (see container_keeps) that was removed */
        return starts_any(line, of_program) || (str_starts(line, STR("\"")) &&
                                                str_ends(line, STR("executable file not found in $PATH")))
                       ? CONTAINER_NO_PROGRAM
                       : CONTAINER_FAILED;
}

enum container_end container_ended(enum container_engine e, int exit_code, struct str tail,
                                   struct str *ret_words)
{
        struct str last = last_line(tail);

        if (exit_code == 0 || e == CONTAINER_NONE)
                return CONTAINER_PROGRAM_ENDED;
        if (e == CONTAINER_DOCKER)
                without_hint(tail, &last);
        if (e == CONTAINER_APPTAINER)
                last = without_colour(last);
        *ret_words = str_head(str_trim(last), 600);
        if (e != CONTAINER_APPTAINER && (exit_code == 1 || exit_code == 126 || exit_code == 127) &&
            starts_any(last, init_heads))
                return CONTAINER_NO_PROGRAM;
        if (!starts_any(last, engine_heads[e]))
                return CONTAINER_PROGRAM_ENDED;
        if (e == CONTAINER_APPTAINER)
                return apptainer_ended(exit_code, last);
        if (exit_code == 126 || exit_code == 127)
                return CONTAINER_NO_PROGRAM;
        if (exit_code != 125)
                return CONTAINER_PROGRAM_ENDED;
        return str_search(last, STR("image not known")) >= 0 || str_search(last, STR("No such image")) >= 0 ||
                               str_search(last, STR("Unable to find image")) >= 0
                       ? CONTAINER_NO_IMAGE
                       : CONTAINER_FAILED;
}
