/* Machines that are agents on this machine, each in a folder of its own: for tests, demonstrations, and
 * trying out rules. An agent outlives the server: it is found again by its folder, which is in the arguments
 * of the agent and of its shepherd. Stopping a machine kills both at once, like switching it off; its jobs
 * die with the shepherd. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "base/system/program.h"
#include "ev/children.h"
#include "provision/provisioner.h"

#define CMDLINE_MAX 65536u

struct process {
        struct provisioner base;
        struct loop *loop;
        const struct provisioner_settings *settings;
        struct answer *answers;
};
/* An answer to be delivered from the loop. */
struct answer {
        struct process *p;
        struct answer *next, **at;
        struct timer *timer;
        provisioner_done_fn *done;
        void *arg;
        enum provisioner_result result;
        char *why, *id;
        char **names; /* id and tag of each instance */
        size_t name_count, name_cap;
};

static void answer_free(struct answer *a)
{
        *a->at = a->next;
        if (a->next)
                a->next->at = a->at;
        timer_free(a->timer);
        for (size_t i = 0; i < a->name_count; i++)
                free(a->names[i]);
        free(a->names);
        free(a->why);
        free(a->id);
        free(a);
}

static void on_answer(void *arg)
{
        struct answer *x = arg;
        struct provisioner_instance *all = mem_array(NULL, x->name_count + 1, sizeof(*all));
        struct provisioner_answer a = {.result = x->result,
                                       .why = str_of(x->why ? x->why : ""),
                                       .id = str_of(x->id ? x->id : ""),
                                       .instances = all,
                                       .instance_count = x->name_count / 2};

        for (size_t i = 0; i + 1 < x->name_count; i += 2)
                all[i / 2] = (struct provisioner_instance){str_of(x->names[i]), str_of(x->names[i + 1])};
        x->done(x->arg, &a);
        free(all);
        answer_free(x);
}

static struct answer *answer_new(struct provisioner *base, provisioner_done_fn *done, void *arg)
{
        struct process *p = (struct process *)(void *)base;
        struct answer *a = mem_new(struct answer);

        *a = (struct answer){.p = p, .next = p->answers, .at = &p->answers, .done = done, .arg = arg};
        if (a->next)
                a->next->at = &a->next;
        p->answers = a;
        a->timer = timer_new(p->loop, on_answer, a);
        timer_start(a->timer, 0);
        return a;
}

static void refuse_order(struct answer *a, const struct err *err)
{
        a->result = PROVISIONER_FAILED;
        a->why = mem_dupz(err->text);
}

/* ---- what runs */

/* Returns a machine's id, which is also the name of its folder: the part of its tag after the last point.
 * The whole tag would make paths of sockets in the folder too long. */
static struct str id_of(struct str tag)
{
        ptrdiff_t at = str_rfind(tag, '.');

        return str_skip(tag, at < 0 ? 0 : (size_t)at + 1);
}

static bool id_valid(struct str id)
{
        for (size_t i = 0; i < id.n; i++)
                if (!isalnum((unsigned char)id.p[i]))
                        return false;
        return id.n > 0 && id.n <= 64;
}

/* Returns whether one of the NUL-terminated words names the folder or something in it. */
static bool names_folder(const struct buf *words, const char *folder)
{
        size_t n = strlen(folder);

        for (size_t at = 0; at < words->n; at += strnlen(words->p + at, words->n - at) + 1) {
                const char *word = words->p + at;
                size_t left = words->n - at;

                if (left > n && memcmp(word, folder, n) == 0 && (word[n] == '\0' || word[n] == '/'))
                        return true;
        }
        return false;
}

/* Sends the signal to each process of ours that names the folder in its arguments; how many there are. */
static unsigned folder_kill(const char *folder, int signo)
{
        DIR *proc = opendir("/proc");
        const struct dirent *e;
        unsigned found = 0;

        while (proc && (e = readdir(proc))) {
                BUF_CLEANUP struct buf words = {0};
                char path[320];
                struct stat st;
                long pid = strtol(e->d_name, NULL, 10);

                snprintf(path, sizeof(path), "%s/cmdline", e->d_name);
                if (pid <= 1 || pid == getpid() || fstatat(dirfd(proc), e->d_name, &st, 0) < 0 ||
                    (st.st_uid != geteuid() && st.st_uid != 0) ||
                    fs_read(dirfd(proc), path, CMDLINE_MAX, &words, NULL) != 0 ||
                    !names_folder(&words, folder))
                        continue;
                found++;
                if (signo)
                        kill((pid_t)pid, signo);
        }
        if (proc)
                closedir(proc);
        return found;
}

static void folder_of(const struct process *p, struct str id, struct buf *out)
{
        buf_printf(out, "%s/" STR_FMT, p->settings->folder, STR_ARG(id));
}

static void folder_remove(const struct process *p, const char *id)
{
        int dir = open(p->settings->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (dir < 0)
                return;
        fs_remove_tree(dir, id);
        close(dir);
}

/* Lists running machines, and removes the folders of others. */
static void process_list(struct provisioner *base, struct str prefix, provisioner_done_fn *done, void *arg)
{
        struct process *p = (struct process *)(void *)base;
        struct answer *a = answer_new(base, done, arg);
        DIR *dir = opendir(p->settings->folder);
        const struct dirent *e;

        while (dir && (e = readdir(dir))) {
                BUF_CLEANUP struct buf folder = {0}, path = {0}, tag = {0};

                if (!id_valid(str_of(e->d_name)) || a->name_count == 2 * PROVISIONER_INSTANCES_MAX)
                        continue;
                folder_of(p, str_of(e->d_name), &folder);
                if (folder_kill(buf_z(&folder), 0) == 0) {
                        folder_remove(p, e->d_name);
                        continue;
                }
                buf_printf(&path, "%s/tag", buf_z(&folder));
                if (fs_read(AT_FDCWD, buf_z(&path), PROVISIONER_TEXT_MAX, &tag, NULL) != 0 ||
                    !str_starts(buf_view(&tag), prefix))
                        continue;
                MEM_GROW(a->names, a->name_cap, a->name_count + 2);
                a->names[a->name_count++] = mem_dupz(e->d_name);
                a->names[a->name_count++] = buf_take(&tag);
        }
        if (dir)
                closedir(dir);
}

/* ---- starting and stopping */

static void exited(void *arg, struct child *c, int status)
{
        (void)arg, (void)c, (void)status; /* the next list does not include it */
}

static void add_option(struct args *a, const char *option, struct str value)
{
        args_add(a, str_of(option));
        args_add(a, value);
}

static void add_number(struct args *a, const char *option, int64_t n, const char *unit)
{
        BUF_CLEANUP struct buf text = {0};

        buf_printf(&text, "%lld%s", (long long)n, unit);
        add_option(a, option, buf_view(&text));
}

/* The agent's jobs have the server's uid: they are shown neither its folder, which has the authority's key,
 * nor that of its sockets, which is elsewhere when the name is long. */
static void agent_words(const struct process *p, const struct provisioner_launch *l, const char *program,
                        const char *folder, struct args *a)
{
        BUF_CLEANUP struct buf token = {0};
        struct str rest = l->addresses, one, sockets;

        buf_printf(&token, "%s/token", folder);
        args_add(a, str_of(program));
        add_option(a, "--hide", str_of(p->settings->private));
        while (rest.n && str_cut(&rest, ',', &one)) {
                add_option(a, "--server", one);
                sockets = str_head(one, str_rfind(one, '/') > 0 ? (size_t)str_rfind(one, '/') : 0);
                if (str_starts(sockets, STR("unix:/")) &&
                    !str_eqz(str_skip(sockets, sizeof("unix:") - 1), p->settings->private))
                        add_option(a, "--hide", str_skip(sockets, sizeof("unix:") - 1));
        }
        add_option(a, "--dir", str_of(folder));
        add_option(a, "--name", l->name);
        add_option(a, "--token-file", buf_view(&token));
        if (l->cpus)
                add_number(a, "--cpus", l->cpus, "");
        if (l->memory_mib)
                add_number(a, "--memory", l->memory_mib, "M");
        if (l->attributes.n)
                add_option(a, "--attributes", l->attributes);
}

static int start_process(struct process *p, const struct provisioner_launch *l, struct err *err)
{
        BUF_CLEANUP struct buf folder = {0}, program = {0}, token = {0}, log = {0}, tag = {0};
        ARGS_CLEANUP struct args argv = {0};
        char *const env[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
                             NULL};
        struct child_spec spec = {.envp = env, .stdin_fd = -1, .stdout_fd = -1, .new_session = true};
        struct child *child;
        int r;

        if (!id_valid(id_of(l->tag)))
                return err_set(err, -EINVAL, "the end of the tag cannot be a folder's name");
        folder_of(p, id_of(l->tag), &folder);
        buf_printf(&tag, "%s/tag", buf_z(&folder));
        buf_printf(&token, "%s/token", buf_z(&folder));
        buf_printf(&log, "%s/log", buf_z(&folder));
        r = program_find("drover-agent", &program, err);
        if (r == 0 && fs_mkdirs(buf_z(&folder), 0700) != 0)
                r = err_set(err, -errno, "cannot make the folder %s", buf_z(&folder));
        if (r == 0)
                r = fs_write(AT_FDCWD, buf_z(&tag), l->tag, 0600, false, err);
        if (r == 0)
                r = fs_write(AT_FDCWD, buf_z(&token), l->token, 0600, false, err);
        if (r != 0)
                return r;
        agent_words(p, l, buf_z(&program), buf_z(&folder), &argv);
        spec.argv = argv.v;
        spec.stderr_fd = open(buf_z(&log), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        r = child_spawn(p->loop, &spec, exited, p, &child, err);
        if (spec.stderr_fd >= 0)
                close(spec.stderr_fd);
        if (r == 0)
                child_forget(child);
        return r;
}

static void process_start(struct provisioner *base, const struct provisioner_launch *l,
                          provisioner_done_fn *done, void *arg)
{
        struct answer *a = answer_new(base, done, arg);
        struct err err = {""};

        if (start_process((struct process *)(void *)base, l, &err) != 0)
                refuse_order(a, &err);
        else
                a->id = str_dupz(id_of(l->tag));
}

static void process_stop(struct provisioner *base, struct str id, struct str tag, provisioner_done_fn *done,
                         void *arg)
{
        struct process *p = (struct process *)(void *)base;
        BUF_CLEANUP struct buf folder = {0};

        (void)tag;
        answer_new(base, done, arg);
        if (!id_valid(id))
                return;
        folder_of(p, id, &folder);
        folder_kill(buf_z(&folder), SIGKILL); /* processes started meanwhile are found with the next list */
}

static void process_describe(struct provisioner *base, const struct provisioner_shape *shapes, size_t count,
                             provisioner_done_fn *done, void *arg)
{
        (void)shapes;
        (void)count;
        answer_new(base, done, arg);
}

static void process_close(struct provisioner *base)
{
        struct process *p = (struct process *)(void *)base;

        while (p->answers) {
                struct answer *a = p->answers;

                a->done(a->arg, &(struct provisioner_answer){PROVISIONER_FAILED, STR("given up")});
                answer_free(a);
        }
        free(p);
}

static int process_open(struct loop *l, const struct provisioner_settings *s, struct provisioner **ret,
                        struct err *err)
{
        struct process *p;

        if (fs_mkdirs(s->folder, 0700) != 0)
                return err_set(err, -errno, "cannot make the folder %s", s->folder);
        p = mem_new(struct process);
        *p = (struct process){.base = {&provisioner_process}, .loop = l, .settings = s};
        *ret = &p->base;
        return 0;
}

const struct provisioner_kind provisioner_process = {
        "process", process_open, process_close, process_list, process_start, process_stop, process_describe};
