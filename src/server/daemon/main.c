/* droverd: reads the options, locks the instance, and runs the server; with --check it only checks the
 * state. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/system/secret.h"
#include "core/query.h"
#include "ev/service.h"
#include "server/daemon/backup.h"
#include "server/daemon/daemon.h"
#include "server/daemon/follow.h"
#include "server/daemon/own_user.h"
#include "server/import/sums.h"

#define EXIT_USAGE   2
#define EXIT_DRAINED 75 /* EX_TEMPFAIL: the service manager starts it again */

static int check_recovered(struct server *s, const struct recovered *r)
{
        struct core_counts n;
        const char *wrong = core_check(s->core);

        core_totals(s->core, &n);
        printf("%s: snapshot after record %" PRIu64 ", %" PRIu64 " records replayed in %" PRId64
               " ms, last record %" PRIu64 "\n",
               config_postgres(&s->config) ? "PostgreSQL" : s->paths.store, r->snapshot_seq, r->records,
               r->took_ms, r->last_seq);
        printf("jobs: %" PRIu64 " (%" PRIu64 " idle, %" PRIu64 " running, %" PRIu64 " held, %" PRIu64
               " completed, %" PRIu64 " removed), %zu bytes\n",
               n.jobs, n.idle, n.running, n.held, n.completed, n.removed, core_bytes(s->core));
        printf("%s%s\n", wrong ? "wrong: " : "ok", wrong ? wrong : "");
        return wrong ? 1 : 0;
}

static void raise_files_limit(void)
{
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
                l.rlim_cur = l.rlim_max;
                setrlimit(RLIMIT_NOFILE, &l);
        }
}

/* Commands that only read or copy create nothing, so that a misspelt folder is not taken for an empty
 * instance. */
static int look_for(const struct config *c, struct err *err)
{
        BUF_CLEANUP struct buf store = {0};

        buf_printf(&store, "%s/%s", c->dir, config_postgres(c) ? "postgresql.id" : "drover.db");
        if (access(buf_z(&store), F_OK) == 0)
                return 0;
        return err_set(err, -errno, "cannot read %s: %s", buf_z(&store), strerror(errno));
}

/* Everything is done as the user of the instance, who owns its files: files that this user has placed
 * there must not be used with root's rights. */
static int main_become_user(const struct config *c, struct err *err)
{
        bool serves = !c->check && !c->backup && !c->restore;
        int r = c->check || c->backup ? look_for(c, err) : 0;

        return r == 0 ? own_user_become(c->dir, c->user, serves, err) : r;
}

static int lead(struct server *s)
{
        struct recovered recovered;
        struct err err = {0};
        int lock, r;

        r = main_become_user(&s->config, &err);
        if (r == 0)
                r = paths_init(&s->paths, s->config.dir, &err);
        if (r == 0)
                r = paths_lock(&s->paths, &lock, &err);
        if (r == 0) {
                paths_sweep(&s->paths); /* removes temporary files of a killed server */
                r = server_open(s, &recovered, &err);
                if (r == 0 && s->config.check)
                        s->exit_code = check_recovered(s, &recovered);
                else if (r == 0)
                        r = server_run(s, &err);
                server_close(s);
        }
        paths_deinit(&s->paths);
        if (r == 0)
                return s->exit_code == 0 && s->drained ? EXIT_DRAINED : s->exit_code;
        fprintf(stderr, "droverd: %s\n", err.text);
        return 1;
}

static int serve(struct server *s)
{
        if (s->config.follow) /* its parent has the instance's lock, and its user */
                return follow_serve(s);
        return lead(s);
}

static void say_copied(const struct config *c, const struct backup_done *done)
{
        BUF_CLEANUP struct buf out = {0};
        struct json j = {.out = &out};

        if (c->json) {
                json_open(&j, '{');
                json_kstrz(&j, "dir", c->dir);
                json_kstrz(&j, c->backup ? "backup" : "restored", c->backup ? c->backup : c->restore);
                json_kint(&j, "files", (int64_t)done->files);
                json_kint(&j, "bytes", (int64_t)done->bytes);
                json_kint(&j, "took_ms", done->took_ms);
                json_close(&j, '}');
        } else {
                buf_printf(&out, "%s: %" PRIu64 " files, %" PRIu64 " bytes in %" PRId64 " ms",
                           c->backup ? c->backup : c->dir, done->files, done->bytes, done->took_ms);
        }
        puts(buf_z(&out));
}

/* Runs --backup or --restore. Returns the exit code. */
static int copy_instance(const struct config *c)
{
        struct backup_done done = {0};
        struct err err = {0};
        int r = main_become_user(c, &err);

        if (r == 0)
                r = c->backup ? backup_make(c, c->backup, &done, &err)
                              : backup_restore(c, c->restore, &done, &err);
        if (r == 0)
                say_copied(c, &done);
        else
                fprintf(stderr, "droverd: %s\n", err.text);
        return r == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
        struct server s = {0};
        struct err err = {0};
        int r;

        if (argc >= 2 && strcmp(argv[1], "import-sums") == 0)
                return sums_import_main(argc - 2, argv + 2);
        secret_no_dumps();
        r = config_read(&s.config, argc, argv, &err);
        if (r < 0) {
                fprintf(stderr, "droverd: %s\n", err.text);
                config_deinit(&s.config);
                return EXIT_USAGE;
        }
        if (r == 0 && s.config.check_config) {
                printf("droverd: the settings are right\n");
        } else if (r == 0) {
                log_init("droverd", s.config.log_level);
                /* until the server runs; then SIGHUP makes it read its settings again */
                signal(SIGHUP, SIG_IGN);
                service_open();
                umask(077);
                raise_files_limit();
                r = s.config.backup || s.config.restore ? copy_instance(&s.config) : serve(&s);
        } else {
                r = 0;
        }
        config_deinit(&s.config);
        return r;
}
