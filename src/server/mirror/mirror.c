/* Opening and closing, what is kept on the disk, and the wait until this server leads.
 *
 * DIR/mirror has one line: leads or follows, the epoch, the joining, joined or alone. */
#include "server/mirror/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include "auth/ca.h"
#include "auth/key_file.h"
#include "base/format/sha256.h"
#include "base/mem.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "server/mirror/state.h"

#define KEPT_MAX   256
#define LOOK_PART  20 /* of the lease, between two looks at the time */
#define BEAT_PART  5
#define VALID_S    (5 * 365 * 86400LL)
#define WAITING_MS 500

/* ---- what is kept */

uint64_t mirror_random(void)
{
        uint64_t v = 0;

        while (getrandom(&v, sizeof(v), 0) != sizeof(v))
                ;
        return v >> 1; /* positive in JSON too */
}

void mirror_end(const struct mirror *m)
{
        paths_remove_ready(&m->server->paths);
        paths_remove_standby(&m->server->paths);
        _exit(1);
}

void mirror_deposed(const struct mirror *m)
{
        log_error("msg=\"the other server of the mirror leads now: this one ends, and follows when it is "
                  "started "
                  "again\" peer=%s",
                  m->config->peer);
        mirror_end(m);
}

void mirror_keep(struct mirror *m)
{
        const struct relation_kept *k = &m->r.kept;
        BUF_CLEANUP struct buf text = {0};
        struct err err;

        buf_printf(&text, "%s %llu %llu %s\n", k->role == RELATION_LEADS ? "leads" : "follows",
                   (unsigned long long)k->epoch, (unsigned long long)k->join, k->joined ? "joined" : "alone");
        if (fs_write(AT_FDCWD, m->server->paths.mirror, buf_view(&text), 0600, true, &err) == 0)
                return;
        log_error("msg=\"what the mirror rests on cannot be kept, so this server ends\" why=\"%s\"",
                  LOG_TEXT(str_of(err.text)));
        mirror_end(m);
}

static bool parse_kept(struct str text, struct relation_kept *ret)
{
        struct str rest = str_trim(text), role, epoch, join;

        if (!str_cut(&rest, ' ', &role) || !str_cut(&rest, ' ', &epoch) || !str_cut(&rest, ' ', &join))
                return false;
        *ret = (struct relation_kept){.role = str_eqz(role, "leads") ? RELATION_LEADS : RELATION_FOLLOWS,
                                      .joined = str_eqz(rest, "joined")};
        return (str_eqz(role, "leads") || str_eqz(role, "follows")) && str_to_u64(epoch, &ret->epoch) == 0 &&
               str_to_u64(join, &ret->join) == 0;
}

/* Without the file: a server that has a queue, or is all new, leads; one that was given the authority of
 * another and has no queue follows. */
static int load_kept(struct mirror *m, struct relation_kept *ret, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        const struct paths *p = &m->server->paths;
        int r = fs_read(AT_FDCWD, p->mirror, KEPT_MAX, &text, err);

        *ret = (struct relation_kept){.role = RELATION_FOLLOWS};
        if (r == 0 && !parse_kept(buf_view(&text), ret))
                return err_set(
                        err, -EBADMSG,
                        "%s is damaged: remove it on a server whose queue shall be copied from the other one "
                        "anew, with drover.db",
                        p->mirror);
        m->first = r == -ENOENT && (access(p->store, F_OK) == 0 || access(p->ca, F_OK) != 0);
        return r == -ENOENT ? 0 : r;
}

/* ---- threads */

static void signal_go(struct mirror *m)
{
        watch_signal_free(m->terminate);
        watch_signal_free(m->interrupt);
        m->terminate = m->interrupt = NULL;
        standing_free(m->standing);
        m->standing = NULL;
        mirror_follow_close(m);
        pthread_mutex_lock(&m->lock);
        m->go = true;
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
}

/* A leader that waits for its follower. Lock held. */
static bool is_silent(const struct mirror *m, int64_t now)
{
        return m->go && m->r.kept.role == RELATION_LEADS && m->r.kept.joined && m->r.until_ms &&
               now > m->r.until_ms + m->config->lease_ms && !m->ending;
}

static void on_look(void *arg)
{
        struct mirror *m = arg;
        int64_t now = clock_boot_ms();
        bool go = false, leaves;

        timer_start(m->look, m->config->lease_ms / LOOK_PART);
        pthread_mutex_lock(&m->lock);
        leaves = m->leaving;
        if (!m->go && !leaves) {
                if (!m->copying && relation_take_over(&m->r, now, clock_wall_ms() / 1000, mirror_random())) {
                        follow_stop(m); /* files of a group that was never acknowledged may be on the way */
                        mirror_keep(m);
                        m->tried = true;
                        log_info("msg=\"this server takes over\" peer=%s", m->config->peer);
                }
                go = m->tried && relation_may_act(&m->r, now);
                if (go && m->first && relation_promote(&m->r, clock_wall_ms() / 1000, mirror_random()))
                        mirror_keep(m);
        }
        if (m->config->manual && is_silent(m, now)) {
                /* the other one takes over when it is promoted, and only then */
                relation_promote(&m->r, clock_wall_ms() / 1000, mirror_random());
                mirror_keep(m);
                pthread_cond_broadcast(&m->changed);
                log_warn("msg=\"the mirror has not answered for longer than the lease: this server goes on "
                         "alone\" "
                         "peer=%s",
                         m->config->peer);
        } else if (is_silent(m, now)) {
                log_error("msg=\"the mirror has not answered for longer than the lease, and may have taken "
                          "over: this "
                          "server ends\" peer=%s",
                          m->config->peer);
                mirror_end(m);
        }
        pthread_mutex_unlock(&m->lock);
        if (go)
                signal_go(m);
}

static void on_beat_due(void *arg)
{
        struct mirror *m = arg;

        timer_start(m->beat, m->config->lease_ms / BEAT_PART);
        lead_beat(m);
        lead_pump(m);
}

/* A follower that is stopped leaves first, so that the leader need not wait for it. */
static void on_leave(void *arg)
{
        paths_remove_standby(&((struct mirror *)arg)->server->paths);
        _exit(0);
}

static void on_terminate(void *arg)
{
        struct mirror *m = arg;

        log_info("msg=\"stopping\"");
        pthread_mutex_lock(&m->lock);
        m->leaving = true;
        if (m->r.kept.role == RELATION_FOLLOWS && relation_leave(&m->r)) {
                mirror_keep(m);
                timer_start(m->leave, m->config->lease_ms); /* at once when a beat was answered: serve.c */
        } else {
                timer_start(m->leave, 0);
        }
        pthread_mutex_unlock(&m->lock);
}

/* ---- opening */

static int open_tls(struct mirror *m, struct err *err)
{
        const struct config *c = &m->server->config;
        BUF_CLEANUP struct buf cert = {0}, key = {0};
        struct str names[CONFIG_LISTS_MAX];
        struct tls_config server = {0}, client = {0};
        struct ca *ca = NULL;
        int r = ca_open(m->server->paths.ca, STR("Drover"), clock_wall_ms(), &ca, err);

        for (size_t i = 0; i < c->names.count; i++)
                names[i] = str_of(c->names.items[i]);
        if (r == 0)
                r = ca_issue_server(ca, names, c->names.count, clock_wall_ms(), VALID_S, &cert, &key, err);
        if (r == 0) {
                buf_str(&cert, ca_cert_pem(ca));
                server.cert_pem = buf_view(&cert);
                server.key_pem = buf_view(&key);
                r = tls_server_new(&server, &m->server_tls, err);
        }
        if (r == 0) {
                client.ca_fingerprint = str_of(ca_fingerprint(ca));
                r = tls_client_new(&client, &m->client_tls, err);
        }
        ca_free(ca);
        if (key.n)
                explicit_bzero(key.p, key.n);
        return r;
}

/* The other server makes the same secret of the same key. */
static int open_secret(struct mirror *m, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        unsigned char key[KEY_FILE_BYTES];
        int r = key_file_open(m->server->paths.credential_key, "copy it from the other server of the mirror",
                              key, err);

        if (r != 0)
                return r;
        buf_addz(&text, "drover mirror ");
        buf_add(&text, key, sizeof(key));
        r = sha256_hex(buf_view(&text), m->secret, err);
        explicit_bzero(key, sizeof(key));
        explicit_bzero(text.p, text.n);
        return r;
}

static void write_standing(void *arg, struct json *j)
{
        json_kstrz(j, "kind", "mirror");
        mirror_write(arg, j);
}

static int promote_standing(void *arg, bool force, struct err *err)
{
        return mirror_promote(arg, force, err);
}

static const struct standing_ops standing_ops = {write_standing, promote_standing,
                                                 "the other one of the mirror"};

static int open_http(struct mirror *m, struct err *err)
{
        const struct http_client_config client = {.address = m->config->peer,
                                                  .tls = m->client_tls,
                                                  .bearer = m->secret,
                                                  .handshake_ms = m->config->lease_ms};
        int r;

        m->http = http_server_new(m->loop, serve_request, m);
        m->client = http_client_new(m->loop, &client);
        r = http_server_listen(m->http, m->config->listen, 0, m->server_tls, NULL, err);
        return r == 0 ? standing_new(m->loop, m->server, &standing_ops, m, &m->standing, err) : r;
}

static void start_relation(struct mirror *m, struct relation_kept *k)
{
        m->r.lease_ms = m->config->lease_ms;
        m->r.automatic = !m->config->manual;
        if (m->first) /* its epoch begins when it is known that the other one does not lead */
                *k = (struct relation_kept){.role = RELATION_LEADS, .epoch = 1};
        relation_start(&m->r, k, (struct relation_at){0}, clock_boot_ms(), mirror_random());
}

int mirror_open(struct server *s, struct mirror **ret, struct err *err)
{
        struct mirror *m;
        pthread_condattr_t monotonic;
        struct relation_kept kept;
        int r;

        *ret = NULL;
        if (!s->config.mirror.peer || s->config.check)
                return 0;
        m = *ret = mem_new(struct mirror);
        m->server = s;
        m->config = &s->config.mirror;
        m->hooks = (struct store_mirror){lead_before, lead_after, m};
        pthread_mutex_init(&m->lock, NULL);
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&m->changed, &monotonic);
        pthread_condattr_destroy(&monotonic);
        m->thread = thread_new(s);
        m->loop = thread_loop(m->thread);
        m->look = timer_new(m->loop, on_look, m);
        m->beat = timer_new(m->loop, on_beat_due, m);
        m->leave = timer_new(m->loop, on_leave, m);
        r = load_kept(m, &kept, err);
        if (r == 0)
                r = open_tls(m, err);
        if (r == 0)
                r = open_secret(m, err);
        if (r == 0)
                r = open_http(m, err);
        if (r == 0)
                start_relation(m, &kept);
        return r;
}

int mirror_lead(struct mirror *m, void (*waiting)(void), struct err *err)
{
        int64_t end = clock_mono_ns() + WAITING_MS * 1000000LL;
        struct timespec t = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};
        bool told = false;
        int r;

        mirror_follow_open(m); /* also of a leader, for its position */
        m->terminate = watch_signal_new(m->loop, SIGTERM, on_terminate, m);
        m->interrupt = watch_signal_new(m->loop, SIGINT, on_terminate, m);
        timer_start(m->look, 0);
        timer_start(m->beat, 0);
        r = thread_start(m->thread, err);
        if (r != 0)
                return r;
        pthread_mutex_lock(&m->lock);
        while (!m->go) {
                if (told)
                        pthread_cond_wait(&m->changed, &m->lock);
                else if (pthread_cond_timedwait(&m->changed, &m->lock, &t) == ETIMEDOUT) {
                        waiting();
                        told = true;
                }
        }
        pthread_mutex_unlock(&m->lock);
        return 0;
}

/* ---- closing */

static void handed(void *arg, int status, struct str body, const struct err *err)
{
        struct mirror *m = arg;

        (void)body;
        (void)err;
        m->beat_call = NULL;
        if (status == 200)
                log_info("msg=\"handed over to the mirror\" peer=%s", m->config->peer);
        pthread_mutex_lock(&m->lock);
        m->handed = true;
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
}

static void hand_over(struct server *s, struct task *t)
{
        struct mirror *m = s->mirror;
        BUF_CLEANUP struct buf path = {0};
        struct relation_beat b;
        bool gives;

        free(t);
        m->ending = true;
        lead_stop(m);
        pthread_mutex_lock(&m->lock);
        gives = relation_hand_over(&m->r, clock_boot_ms(), &b);
        if (gives)
                mirror_keep(m);
        else
                m->handed = true;
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
        if (!gives)
                return;
        buf_addz(&path, "/mirror/beat");
        serve_write_beat(&path, &b);
        const struct http_call_spec spec = {
                .method = "POST", .path = buf_z(&path), .timeout_ms = m->config->lease_ms};
        m->beat_call = http_client_call(m->client, &spec, handed, m);
}

static void wait_handed(struct mirror *m)
{
        struct task *t = mem_new(struct task);

        t->run = hand_over;
        mailbox_post(thread_mail(m->thread), &t->mail);
        pthread_mutex_lock(&m->lock);
        while (!m->handed)
                pthread_cond_wait(&m->changed, &m->lock);
        pthread_mutex_unlock(&m->lock);
}

void mirror_close(struct mirror *m, bool orderly)
{
        if (!m)
                return;
        if (orderly && m->go)
                wait_handed(m);
        thread_stop(m->thread);
        serve_stop(m);
        follow_stop(m);
        lead_stop(m);
        mirror_follow_close(m);
        http_server_free(m->http);
        standing_free(m->standing);
        http_client_free(m->client);
        tls_unref(m->server_tls);
        tls_unref(m->client_tls);
        timer_free(m->look);
        timer_free(m->beat);
        timer_free(m->leave);
        window_deinit(&m->window);
        thread_free(m->thread);
        pthread_cond_destroy(&m->changed);
        pthread_mutex_destroy(&m->lock);
        explicit_bzero(m->secret, sizeof(m->secret));
        free(m);
}

/* ---- what others ask */

const struct store_mirror *mirror_store(const struct mirror *m)
{
        return m ? &m->hooks : NULL;
}

void mirror_serves(struct mirror *m, struct store *store, uint64_t snapshot)
{
        if (!m)
                return;
        pthread_mutex_lock(&m->lock);
        m->store = store;
        m->snapshot = snapshot;
        pthread_mutex_unlock(&m->lock);
}

bool mirror_is_joined(struct mirror *m)
{
        bool is;

        if (!m)
                return false;
        pthread_mutex_lock(&m->lock);
        is = m->r.kept.role == RELATION_LEADS && m->r.kept.joined;
        pthread_mutex_unlock(&m->lock);
        return is;
}

uint64_t mirror_epoch(struct mirror *m)
{
        uint64_t epoch;

        if (!m)
                return 0;
        pthread_mutex_lock(&m->lock);
        epoch = m->r.kept.epoch;
        pthread_mutex_unlock(&m->lock);
        return epoch;
}

const char *mirror_peer(const struct mirror *m)
{
        return m ? m->config->peer : NULL;
}

int mirror_promote(struct mirror *m, bool force, struct err *err)
{
        int r = 0;

        pthread_mutex_lock(&m->lock);
        if (m->copying)
                r = err_set(err, -EBUSY,
                            "the leader's queue is being copied: there is nothing whole to lead with");
        else if (m->r.kept.role == RELATION_LEADS && !m->r.kept.joined)
                r = err_set(err, -EALREADY, "this server leads already, and alone");
        else if (m->r.kept.role == RELATION_FOLLOWS && !m->r.kept.joined && !force)
                r = err_set(
                        err, -ESTALE,
                        "this server has not all that the leader has: what is missing would be lost; --force "
                        "promotes it all the same");
        else if (m->r.kept.role == RELATION_FOLLOWS && access(m->server->paths.store, F_OK) < 0)
                r = err_set(err, -ENOENT,
                            "this server has no copy of the queue: there is nothing to lead with");
        if (r == 0 && relation_promote(&m->r, clock_wall_ms() / 1000, mirror_random())) {
                mirror_keep(m);
                m->tried = true;
                log_warn("msg=\"this server was promoted\" peer=%s", m->config->peer);
        }
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
        return r;
}

void mirror_write(struct mirror *m, struct json *j)
{
        pthread_mutex_lock(&m->lock);
        bool leads = m->r.kept.role == RELATION_LEADS, acts = relation_may_act(&m->r, clock_boot_ms());
        int64_t heard = m->peer_heard_ms ? clock_boot_ms() - m->peer_heard_ms : -1;

        json_kstrz(j, "role", leads ? acts ? "leader" : "waits for its mirror" : "follower");
        json_kstrz(j, "peer", m->config->peer);
        json_kbool(j, "mirrored", m->r.kept.joined);
        json_kbool(j, "copying", m->copying);
        json_kstrz(j, "takeover", m->config->manual ? "manual" : "automatic");
        json_kint(j, "epoch", (int64_t)m->r.kept.epoch);
        json_kint(j, "serial", (int64_t)m->r.at.serial);
        if (heard >= 0)
                json_kint(j, "heard_ms", heard);
        pthread_mutex_unlock(&m->lock);
}
