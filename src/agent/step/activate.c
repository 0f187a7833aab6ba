#include "agent/step/activate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/environment/environments.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "base/system/fs.h"

#define WORDS_MAX 4096 /* bytes of an error message */
#define ENVS_MAX  256  /* environments named in an ad */
#define FAILED    125

/* Runs bash if it exists, since scripts of activate.d may be written for it. */
static const char choose[] = "if command -v bash >/dev/null 2>&1; then exec bash -c \"$@\"; fi\n"
                             "exec /bin/sh -c \"$@\"\n";

/* The script's own variables begin with drover_, so that all others reach the program as the job has set
 * them. Arguments: a file for error messages, the modules' init file, the modules, conda's root, the conda
 * environment, the folder of a Python environment; for a job of a dataset the list, its first line, the
 * number of lines and the file that gets them; then the program and its arguments. */
static const char script[] =
        "drover_words=$1 drover_init=$2 drover_modules=$3 drover_root=$4 drover_env=$5 drover_venv=$6\n"
        "drover_list=$7 drover_first=$8 drover_count=$9\n"
        "shift 9\n"
        "drover_mine=$1\n"
        "shift\n"
        "fail() { printf '%s\\n' \"$*\" >>\"$drover_words\"; cat \"$drover_words\" >&2; exit 125; }\n"
        "if [ -n \"$drover_modules\" ]; then\n"
        "        drover_shell=sh\n"
        "        [ -n \"$BASH_VERSION\" ] && drover_shell=bash\n"
        "        for drover_file in \"$drover_init\" \"/usr/share/modules/init/$drover_shell\" "
        "\"/usr/share/lmod/lmod/init/$drover_shell\" "
        "/etc/profile.d/modules.sh /etc/profile.d/lmod.sh; do\n"
        "                [ -r \"$drover_file\" ] && break\n"
        "                [ \"$drover_file\" = \"$drover_init\" ] && [ -n \"$drover_init\" ] && fail "
        "\"modules: $drover_init cannot be "
        "read\"\n"
        "        done\n"
        "        [ -r \"$drover_file\" ] || fail 'modules: there is no module command here; the agent'\\''s "
        "modules_init may name "
        "its init file'\n"
        "        . \"$drover_file\"\n"
        "        for drover_module in $drover_modules; do\n"
        "                module load \"$drover_module\" >\"$drover_words\" 2>&1 || fail \"modules: "
        "$drover_module could not be "
        "loaded\"\n"
        "                # versions before 4 end with 0 whatever happens\n"
        "                grep -q 'ERROR:' \"$drover_words\" && fail \"modules: $drover_module could not be "
        "loaded\"\n"
        "                cat \"$drover_words\" >&2\n"
        "        done\n"
        "fi\n"
        "if [ -n \"$drover_env\" ]; then\n"
        "        case $drover_env in\n"
        "        */*) drover_prefix=$drover_env ;;\n"
        "        *)\n"
        "                if [ -z \"$drover_root\" ]; then\n"
        "                        for drover_conda in conda mamba micromamba; do\n"
        "                                drover_root=$(command -v $drover_conda) && drover_root=$(readlink "
        "-f \"$drover_root\") && "
        "break\n"
        "                        done\n"
        "                        drover_root=${drover_root%/*}\n"
        "                        drover_root=${drover_root%/*}\n"
        "                fi\n"
        "                [ -n \"$drover_root\" ] || fail \"conda: where is the environment $drover_env? the "
        "agent's "
        "conda_root may name "
        "conda's folder\"\n"
        "                drover_prefix=$drover_root/envs/$drover_env\n"
        "                [ \"$drover_env\" = base ] && drover_prefix=$drover_root ;;\n"
        "        esac\n"
        "        [ -d \"$drover_prefix/conda-meta\" ] || fail \"conda: $drover_prefix is no environment: it "
        "has no "
        "conda-meta\"\n"
        "        export PATH=\"$drover_prefix/bin:$PATH\" CONDA_PREFIX=\"$drover_prefix\" "
        "CONDA_DEFAULT_ENV=\"$drover_env\" "
        "CONDA_SHLVL=1\n"
        "        for drover_file in \"$drover_prefix\"/etc/conda/activate.d/*.sh; do\n"
        "                [ -r \"$drover_file\" ] || continue\n"
        "                . \"$drover_file\" 2>\"$drover_words\" || fail \"conda: $drover_file failed\"\n"
        "                cat \"$drover_words\" >&2\n"
        "        done\n"
        "fi\n"
        "if [ -n \"$drover_venv\" ]; then\n"
        "        [ -x \"$drover_venv/bin/python\" ] || fail \"python: the environment $drover_venv cannot be "
        "used here\"\n"
        "        export PATH=\"$drover_venv/bin:$PATH\" VIRTUAL_ENV=\"$drover_venv\"\n"
        "        unset PYTHONHOME\n"
        "fi\n"
        "if [ -n \"$drover_list\" ]; then\n"
        "        drover_last=$((drover_first + drover_count - 1))\n"
        "        sed -n \"${drover_first},${drover_last}p;${drover_last}q\" <\"$drover_list\" "
        ">\"$drover_mine\" 2>\"$drover_words\" || fail 'dataset: the list of files cannot be read'\n"
        "        drover_n=0\n"
        "        while IFS= read -r drover_file; do\n"
        "                case $drover_file in\n"
        "                /*) [ -e \"$drover_file\" ] || fail \"dataset: the file $drover_file is not here\" "
        ";;\n"
        "                esac\n"
        /* more would not fit into what the kernel hands to a program */
        "                [ $drover_n -lt 1000 ] && export \"INPUTFILE$drover_n=$drover_file\"\n"
        "                drover_n=$((drover_n + 1))\n"
        "        done <\"$drover_mine\"\n"
        "        [ $drover_n -eq $drover_count ] || fail \"dataset: the list has $drover_n of $drover_count "
        "files\"\n"
        "fi\n"
        "rm -f \"$drover_words\"\n"
        "case $1 in\n"
        "*/*) [ -x \"$1\" ] && [ ! -d \"$1\" ] || fail \"cannot run $1: it is no program\" ;;\n"
        "*) command -v -- \"$1\" >/dev/null || fail \"cannot run $1: it is not in PATH\" ;;\n"
        "esac\n"
        "exec \"$@\"\n";

static const char *modules_of(const struct attempt *at)
{
        return at->t->m->modules;
}

bool activate_wanted(const struct attempt *at)
{
        const struct job_template *m = at->t->m;

        if (queue_hands_on(at->q))
                return false;
        if (*m->steps[at->step].container) /* which has programs and environments of its own */
                return *m->file_list;
        return *m->file_list || *modules_of(at) || *m->conda_env || *m->python_env ||
               at->q->config->modules.n;
}

static bool is_digits(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
        return s.n > 0 && s.n < 12;
}

int activate_file_list(const struct attempt *at, struct buf *text, struct activate_list *ret, struct err *err)
{
        struct str rest, *const words[] = {&ret->name, &ret->first, &ret->count, &ret->uuid, &ret->host};
        int r = expand_text(at, at->t->m->file_list, text, err);

        *ret = (struct activate_list){.name = STR_NONE};
        rest = buf_view(text);
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
                str_word(&rest, words[i]);
        if (r == 0 && ret->name.n &&
            (str_find(ret->name, '/') >= 0 || !is_digits(ret->first) || !is_digits(ret->count)))
                return err_set(err, -EINVAL, "DatasetList names no lines of a list: '" STR_FMT "'",
                               STR_ARG(str_head(buf_view(text), 200)));
        return r;
}

static void words_name(const struct attempt *at, struct buf *out)
{
        buf_printf(out, ".drover_activate.%u", at->step);
}

/* Names parted by commas or blanks, as words parted by blanks. What a shell would make something else of is
 * refused: the words are split, and matched against files, by the shell. */
static int add_modules(struct str text, struct buf *out, struct err *err)
{
        for (size_t i = 0; i < text.n; i++) {
                char c = text.p[i];

                if (strchr("*?[]\\", c) || (unsigned char)c < ' ')
                        return err_set(err, -EINVAL, "modules: '" STR_FMT "' are no names of modules",
                                       STR_ARG(text));
                buf_char(out, c == ',' ? ' ' : c);
        }
        buf_char(out, ' ');
        return 0;
}

/* Replaces a file by the folder of the environment that was made from it. */
static int add_environment(const struct attempt *at, struct buf *env, struct buf *venv, struct err *err)
{
        struct buf path = {0};
        enum environment_kind kind;

        if (!environment_asked(at))
                return expand_text(at, at->t->m->conda_env, env, err);
        if (!environments_path(at, &kind, &path))
                return err_set(err, -EINVAL, "the environment that it began with is not here any more");
        buf_str(kind == ENVIRONMENT_PYTHON ? venv : env, buf_view(&path));
        buf_deinit(&path);
        return 0;
}

int activate_wrap(const struct attempt *at, const char *sandbox, struct buf *path, struct args *argv,
                  struct err *err)
{
        const struct config_queue *c = at->q->config;
        BUF_CLEANUP struct buf words = {0}, text = {.max = 65536}, modules = {.max = 65536},
                               env = {.max = 65536}, venv = {.max = 65536}, where = {.max = 65536},
                               list = {0}, first = {0}, count = {0}, mine = {0};
        struct activate_list files;
        struct args all = {0};
        bool contained = *at->t->m->steps[at->step].container;
        int r = contained ? 0 : expand_text(at, modules_of(at), &text, err);

        for (size_t i = 0; i < c->modules.n && r == 0 && !contained; i++)
                r = add_modules(str_of(c->modules.v[i]), &modules, err);
        if (r == 0)
                r = add_modules(buf_view(&text), &modules, err);
        if (r == 0 && !contained)
                r = add_environment(at, &env, &venv, err);
        if (r == 0)
                r = activate_file_list(at, &where, &files, err);
        if (r < 0)
                return r;
        if (files.name.n) {
                buf_printf(&list, "%s/" STR_FMT, sandbox, STR_ARG(files.name));
                buf_printf(&mine, "%s/" ACTIVATE_FILES, sandbox);
                buf_str(&first, files.first);
                buf_str(&count, files.count);
        }
        buf_printf(&words, "%s/", sandbox);
        words_name(at, &words);
        const char *const head[] = {"/bin/sh",
                                    "-c",
                                    choose,
                                    "drover-activate",
                                    script,
                                    "drover-activate",
                                    buf_z(&words),
                                    c->modules_init ? c->modules_init : "",
                                    str_trim(buf_view(&modules)).n ? buf_z(&modules) : "",
                                    c->conda_root ? c->conda_root : "",
                                    buf_z(&env),
                                    buf_z(&venv),
                                    buf_z(&list),
                                    buf_z(&first),
                                    buf_z(&count),
                                    buf_z(&mine)};
        for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
                args_add(&all, str_of(head[i]));
        for (size_t i = 0; i < argv->n; i++)
                args_add(&all, str_of(argv->v[i]));
        args_deinit(argv);
        *argv = all;
        buf_reset(path);
        buf_addz(path, head[0]);
        return 0;
}

bool activate_failed(const struct attempt *at, struct buf *ret_why)
{
        const struct step_result *r = &at->result.steps[at->step];
        BUF_CLEANUP struct buf path = {0}, text = {.max = WORDS_MAX};
        char name[64], bytes[WORDS_MAX];

        if (!activate_wanted(at) || r->signaled || r->exit_code != FAILED || at->a->users_path)
                return false;
        sandbox_name(at, name);
        buf_printf(&path, "%s/", name);
        words_name(at, &path);
        int fd = fs_open_beneath(at->a->jobs, buf_z(&path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
        if (fd >= 0)
                close(fd);
        if (n <= 0)
                return false;
        struct str rest = str_make(bytes, (size_t)n), word;
        while (str_word(&rest, &word))
                buf_printf(&text, "%s" STR_FMT, text.n ? " " : "", STR_ARG(word));
        buf_str(ret_why, buf_view(&text));
        return true;
}

static bool is_plain(const char *name)
{
        for (const char *z = name; *z; z++)
                if ((unsigned char)*z < ' ' || *z == '"' || *z == '\\')
                        return false;
        return name[0] != '.';
}

void activate_attributes(const struct config_queue *c, struct buf *out)
{
        BUF_CLEANUP struct buf path = {0};
        const struct dirent *e;
        size_t n = 0;

        if (c->modules_init)
                buf_addz(out, "HasModules = true; ");
        if (!c->conda_root)
                return;
        buf_printf(&path, "%s/envs", c->conda_root);
        buf_addz(out, "HasConda = true; CondaEnvs = {\"base\"");
        DIR *dir = opendir(buf_z(&path));
        while (dir && n < ENVS_MAX && (e = readdir(dir)))
                if (is_plain(e->d_name)) {
                        buf_printf(out, ", \"%s\"", e->d_name);
                        n++;
                }
        if (dir)
                closedir(dir);
        buf_addz(out, "}; ");
}
