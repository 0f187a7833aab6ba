/* The leader: beats, and groups on their way to the follower, one call of each at a time.
 *
 * While the follower is not joined it is sent the groups of the window, one after the other, beside the
 * commits. When it has the newest one it is close, and commits wait for it for a moment, so that there is a
 * commit after which both have the same, however busy the leader is: then it joins. */
#include <errno.h>

#include "base/mem.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "server/mirror/state.h"

#define CLOSE_MS    500
#define PATIENCE_MS 30000 /* a commit waits this long for a follower that beats, and then dismisses it */

/* ---- the store's thread */

static void wake_run(struct server *s, struct task *t)
{
        free(t);
        lead_pump(s->mirror);
}

static void wake(struct mirror *m)
{
        struct task *t = mem_new(struct task);

        t->run = wake_run;
        mailbox_post(thread_mail(m->thread), &t->mail);
}

static bool is_close(const struct mirror *m)
{
        return clock_boot_ms() < m->close_until_ms;
}

/* Waits for at most this long. Lock held. */
static void wait_a_while(struct mirror *m, int64_t ms)
{
        int64_t end = clock_mono_ns() + ms * 1000000;
        struct timespec t = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};

        pthread_cond_timedwait(&m->changed, &m->lock, &t);
}

/* Waits until the follower has the group, or none is needed. Lock held. */
static int wait_for_follower(struct mirror *m, struct relation_at at, struct err *err)
{
        int r = 0;

        m->waits_since_ms = clock_boot_ms();
        for (;;) {
                if (m->r.kept.role != RELATION_LEADS) {
                        r = err_set(err, -ECANCELED, "the other server of the mirror, %s, leads now",
                                    m->config->peer);
                        break;
                }
                bool has = relation_at_is(m->acked, at);

                if (has && relation_may_act(&m->r, clock_boot_ms()))
                        break;
                if (!m->r.kept.joined && (has || !is_close(m)))
                        break;
                wait_a_while(m, 50);
        }
        m->waits_since_ms = 0;
        return r;
}

int lead_before(void *arg, const struct str *ops, size_t count, struct store_batch *add, struct err *err)
{
        struct mirror *m = arg;
        BUF_CLEANUP struct buf position = {0};
        struct buf group = {0};
        struct relation_at before, at;
        bool sent;
        int r;

        pthread_mutex_lock(&m->lock);
        before = m->r.at;
        at = relation_next(&m->r);
        pack_u64(&position, at.line);
        pack_u64(&position, at.serial);
        store_batch_blob_put(add, MIRROR_AT, buf_view(&position));
        store_batch_pack(add, &group);
        for (size_t i = 0; i < count; i++)
                buf_str(&group, ops[i]);
        window_add(&m->window, before, at, &group);
        sent = m->r.kept.joined || is_close(m);
        pthread_mutex_unlock(&m->lock);
        if (sent)
                wake(m);
        pthread_mutex_lock(&m->lock);
        r = wait_for_follower(m, at, err);
        pthread_mutex_unlock(&m->lock);
        return r;
}

void lead_after(void *arg, bool committed)
{
        struct mirror *m = arg;

        if (committed)
                return;
        pthread_mutex_lock(&m->lock);
        relation_diverge(&m->r, m->window.last->before, mirror_random());
        window_drop_last(&m->window);
        m->peer_known = false;
        pthread_mutex_unlock(&m->lock);
}

/* ---- the mirror's thread */

/* Lock held. */
static void take_said(struct mirror *m, const struct relation_beat *b, const struct relation_said *said,
                      int64_t sent_ms)
{
        bool was = m->r.kept.joined;

        m->peer_heard_ms = clock_boot_ms();
        if (m->first && !m->go && said->leads) {
                log_error("msg=\"this server has a queue of its own, and so has the other one of the mirror: "
                          "remove "
                          "drover.db on the one whose queue is not wanted\" peer=%s file=\"%s\"",
                          m->config->peer, m->server->paths.store);
                mirror_end(m);
        }
        if (relation_answered(&m->r, b, said, sent_ms)) {
                mirror_keep(m);
                if (m->r.kept.role != RELATION_LEADS && m->go)
                        mirror_deposed(m);
        }
        if (m->r.kept.role != RELATION_LEADS || said->epoch != m->r.kept.epoch)
                return;
        m->peer_known = true;
        m->peer_at = said->at;
        m->acked = said->at;
        if (!m->r.kept.joined && m->r.at.serial &&
            (relation_at_is(said->at, m->r.at) ||
             (m->window.last && relation_at_is(said->at, m->window.last->before))))
                m->close_until_ms = clock_boot_ms() + CLOSE_MS;
        if (m->r.kept.joined && !relation_at_is(said->at, m->r.at) && !window_after(&m->window, said->at))
                relation_dismiss(&m->r);
        if (m->waits_since_ms && clock_boot_ms() - m->waits_since_ms > PATIENCE_MS)
                relation_dismiss(&m->r);
        if (was != m->r.kept.joined)
                log_info("msg=\"%s\" peer=%s",
                         m->r.kept.joined ? "the mirror has all, and has each commit from now on"
                                          : "the mirror has left: this server goes on alone",
                         m->config->peer);
        pthread_cond_broadcast(&m->changed);
}

static void on_beat(void *arg, int status, struct str body, const struct err *err)
{
        struct mirror *m = arg;
        struct relation_said said;
        bool again = false;

        m->beat_call = NULL;
        pthread_mutex_lock(&m->lock);
        m->tried = true;
        if (status == 200 && serve_read_said(body, &said)) {
                bool joined = m->r.kept.joined;

                take_said(m, &m->beat_sent, &said, m->beat_sent_ms);
                again = joined != m->r.kept.joined; /* the lease begins with the next answer */
        } else if (status > 0) {
                log_warn("msg=\"the other server of the mirror refuses\" peer=%s status=%d", m->config->peer,
                         status);
        } else {
                log_debug("msg=\"the mirror does not answer\" peer=%s why=\"%s\"", m->config->peer,
                          LOG_TEXT(str_of(err->text)));
        }
        pthread_mutex_unlock(&m->lock);
        if (again)
                lead_beat(m);
        lead_pump(m);
}

static void call(struct mirror *m, const char *path, const struct relation_beat *b, const struct buf *more,
                 struct str body, http_call_fn *fn, struct http_call **ret)
{
        BUF_CLEANUP struct buf all = {0};

        buf_addz(&all, path);
        serve_write_beat(&all, b);
        if (more)
                buf_str(&all, buf_view(more));
        const struct http_call_spec spec = {.method = "POST",
                                            .path = buf_z(&all),
                                            .type = "application/octet-stream",
                                            .body = body,
                                            /* repeated when it was lost: both are safe to hear twice */
                                            .timeout_ms = body.n ? PATIENCE_MS * 2 : m->config->lease_ms / 2};
        *ret = http_client_call(m->client, &spec, fn, m);
}

void lead_beat(struct mirror *m)
{
        BUF_CLEANUP struct buf more = {0};
        struct relation_beat b;
        uint64_t snapshot = 0;
        struct relation_at useless;
        bool copy;

        if (m->beat_call || m->ending)
                return;
        pthread_mutex_lock(&m->lock);
        if (m->r.kept.role != RELATION_LEADS) {
                pthread_mutex_unlock(&m->lock);
                return;
        }
        relation_beat(&m->r, &b);
        copy = m->go && m->peer_known && !m->r.kept.joined && m->r.at.serial &&
               !relation_at_is(m->peer_at, m->r.at) && !window_after(&m->window, m->peer_at);
        useless = m->peer_at;
        snapshot = m->store ? m->snapshot : 0;
        pthread_mutex_unlock(&m->lock);
        buf_printf(&more, "&snapshot=%llu", (unsigned long long)snapshot);
        if (copy)
                buf_printf(&more, "&useless_line=%llu&useless_serial=%llu", (unsigned long long)useless.line,
                           (unsigned long long)useless.serial);
        m->beat_sent = b;
        m->beat_sent_ms = clock_boot_ms();
        call(m, "/mirror/beat", &b, &more, STR(""), on_beat, &m->beat_call);
}

static void on_appended(void *arg, int status, struct str body, const struct err *err)
{
        struct mirror *m = arg;
        struct relation_said said;
        bool good = status == 200 && serve_read_said(body, &said);

        (void)err;
        m->append_call = NULL;
        pthread_mutex_lock(&m->lock);
        if (good) {
                bool joined = m->r.kept.joined;

                take_said(m, &m->append_sent, &said, m->append_sent_ms);
                if (joined != m->r.kept.joined)
                        timer_start(m->beat, 0);
        } else if (status != 202) {
                m->peer_known = false; /* the next beat tells */
        }
        pthread_mutex_unlock(&m->lock);
        if (status == 202) /* a piece */
                m->append.offset += MIRROR_PIECE;
        else
                m->append.size = 0;
        if (good || status == 202)
                lead_pump(m);
}

void lead_pump(struct mirror *m)
{
        BUF_CLEANUP struct buf more = {0}, piece = {0};
        const struct window_group *g = NULL;

        if (m->append_call || m->ending)
                return;
        pthread_mutex_lock(&m->lock);
        if (m->go && m->r.kept.role == RELATION_LEADS && m->peer_known)
                g = window_after(&m->window, m->peer_at);
        if (g) {
                if (!m->append.size || !relation_at_is(m->append.at, g->at)) {
                        m->append.at = g->at;
                        m->append.before = g->before;
                        m->append.size = g->ops.n;
                        m->append.offset = 0;
                }
                struct str rest = str_skip(buf_view(&g->ops), m->append.offset);

                buf_str(&piece, str_head(rest, MIRROR_PIECE));
                relation_beat(&m->r, &m->append_sent);
        }
        pthread_mutex_unlock(&m->lock);
        if (!g)
                return;
        buf_printf(&more,
                   "&before_line=%llu&before_serial=%llu&to_line=%llu&to_serial=%llu&offset=%zu&size=%zu",
                   (unsigned long long)m->append.before.line, (unsigned long long)m->append.before.serial,
                   (unsigned long long)m->append.at.line, (unsigned long long)m->append.at.serial,
                   m->append.offset, m->append.size);
        m->append_sent_ms = clock_boot_ms();
        call(m, "/mirror/append", &m->append_sent, &more, buf_view(&piece), on_appended, &m->append_call);
}

void lead_stop(struct mirror *m)
{
        http_call_cancel(m->beat_call);
        http_call_cancel(m->append_call);
        m->beat_call = m->append_call = NULL;
}
