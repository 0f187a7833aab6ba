/* Two servers with a store each, on a network that delays, loses, repeats and reorders what they say, and is
 * cut in either direction. They die, freeze at any point, and come back with what was on their disks;
 * administrators stop, drain and promote them. A client's groups are acknowledged as the server does it: the
 * follower first, then the own store, then the answer. After every step: whatever was acknowledged is in the
 * store of whoever leads.
 *
 * DROVER_SEEDS has how many games are played, DROVER_SEED which is played first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "server/mirror/relation.h"

#define LEASE_MS  1000
#define LOG_MAX   1000
#define MAIL_MAX  64
#define STEPS     3000
#define GAMES     300
#define DELAY_MAX 3000

struct entry {
        struct relation_at at;
        uint32_t value;
};
struct record {
        struct entry v[LOG_MAX];
        size_t n;
};
enum kind { BEAT, SAID, APPEND, COPY_ASKED, COPY };
struct message {
        enum kind kind;
        unsigned to, run; /* a connection ends with the process that has it */
        int64_t due_ms, sent_ms;
        struct relation_beat beat;
        struct relation_said said;
        uint64_t epoch;
        struct relation_at before;
        struct entry entry; /* of APPEND, which is also a beat */
        struct record *copy;
};
enum phase { NOTHING, SENT, STORED }; /* of the group that is being made durable */
struct node {
        /* on the disk */
        struct relation_kept kept;
        struct record log;
        /* in memory */
        struct relation r;
        bool up, copying;
        unsigned run; /* number of the process */
        size_t checked;
        int64_t frozen_until_ms, beat_ms;
        enum phase phase;
        int64_t close_until_ms; /* the follower is about to have all: it is waited for */
        struct entry group;
};
struct game {
        uint64_t random;
        unsigned seed;
        int64_t now_ms;
        struct node node[2];
        struct message mail[MAIL_MAX];
        size_t mail_count;
        bool cut[2]; /* towards that node */
        bool calm;
        struct entry acked[LOG_MAX];
        size_t acked_count;
        unsigned takeovers, promotions, copies, handed, joinings, mirrored;
        uint32_t values;
};

static uint32_t roll(struct game *g, uint32_t n)
{
        g->random ^= g->random << 13;
        g->random ^= g->random >> 7;
        g->random ^= g->random << 17;
        return (uint32_t)((g->random >> 11) % n);
}

static uint64_t line(struct game *g)
{
        return (uint64_t)roll(g, UINT32_MAX) << 32 | roll(g, UINT32_MAX);
}

static void violation(const struct game *g, const char *what)
{
        fail_msg("seed %u at %lld ms: %s", g->seed, (long long)g->now_ms, what);
}

static struct relation_at last_of(const struct record *log)
{
        return log->n ? log->v[log->n - 1].at : (struct relation_at){0};
}

static bool has(const struct record *log, const struct entry *e)
{
        const struct entry *mine = &log->v[e->at.serial - 1];

        return e->at.serial <= log->n && relation_at_is(mine->at, e->at) && mine->value == e->value;
}

/* Whoever may act has all that was acknowledged, and there is one at most. */
static void check(struct game *g)
{
        bool acts[2];

        for (unsigned i = 0; i < 2; i++) {
                struct node *n = &g->node[i];

                acts[i] = n->up && relation_may_act(&n->r, g->now_ms);
                if (!acts[i])
                        n->checked = 0;
                for (; acts[i] && n->checked < g->acked_count; n->checked++)
                        if (!has(&n->log, &g->acked[n->checked]))
                                violation(g, "the leader does not have what was acknowledged");
        }
        if (acts[0] && acts[1])
                violation(g, "both lead");
}

static void say(struct game *g, const struct message *m)
{
        struct message *to;

        if (g->mail_count == MAIL_MAX || g->cut[m->to] || roll(g, 20) == 0) {
                free(m->copy);
                return;
        }
        to = &g->mail[g->mail_count++];
        *to = *m;
        to->run = g->node[m->to].run;
        to->due_ms = g->now_ms + (roll(g, 10) ? roll(g, 30) : roll(g, DELAY_MAX));
        if (!m->copy && roll(g, 20) == 0 && g->mail_count < MAIL_MAX) { /* twice */
                g->mail[g->mail_count] = *to;
                g->mail[g->mail_count++].due_ms = g->now_ms + roll(g, DELAY_MAX);
        }
}

static void start(struct game *g, struct node *n);

/* A leader that is none any more starts anew, as the server does. */
static void keep(struct game *g, struct node *n)
{
        bool ended = n->kept.role == RELATION_LEADS && n->r.kept.role == RELATION_FOLLOWS;

        g->joinings += !n->kept.joined && n->r.kept.joined && n->r.kept.role == RELATION_LEADS;
        n->kept = n->r.kept;
        if (ended)
                start(g, n);
}

static void start(struct game *g, struct node *n)
{
        n->up = true;
        n->run++;
        n->copying = false;
        n->phase = NOTHING;
        n->frozen_until_ms = n->beat_ms = n->close_until_ms = 0;
        relation_start(&n->r, &n->kept, last_of(&n->log), g->now_ms, line(g));
}

static void append(struct game *g, unsigned me, struct relation_at before, const struct entry *e)
{
        struct message m = {.kind = APPEND, .to = !me, .sent_ms = g->now_ms, .before = before, .entry = *e};

        relation_beat(&g->node[me].r, &m.beat);
        say(g, &m);
}

static void acknowledge(struct game *g, struct node *n)
{
        if (g->acked_count < LOG_MAX)
                g->acked[g->acked_count++] = n->group;
        n->phase = NOTHING;
}

/* The steps of a commit, any number of which may lie apart. */
static void commit_step(struct game *g, unsigned me)
{
        struct node *n = &g->node[me];

        if (n->phase == NOTHING && n->log.n < LOG_MAX - 1 && roll(g, g->calm ? 20 : 3) == 0) {
                n->group = (struct entry){relation_next(&n->r), ++g->values};
                n->phase = SENT;
        } else if (n->phase == SENT && (n->r.kept.joined || g->now_ms < n->close_until_ms)) {
                if (roll(g, 3) == 0)
                        append(g, me, last_of(&n->log), &n->group);
        } else if (n->phase == SENT) {
                n->phase = STORED;
        }
        if (n->phase == STORED && roll(g, 2)) {
                if (n->r.kept.joined &&
                    roll(g, 50) == 0) { /* the own disk is full, and the group never written */
                        n->phase = NOTHING;
                        relation_diverge(&n->r, last_of(&n->log), line(g));
                        return;
                }
                n->log.v[n->log.n++] = n->group;
                if (!g->calm && roll(g, 40) == 0) /* asleep between the write and the answer */
                        n->frozen_until_ms = g->now_ms + roll(g, 4 * LEASE_MS);
                acknowledge(g, n);
        }
}

static void take_append(struct node *n, const struct message *m)
{
        if (n->r.kept.role != RELATION_FOLLOWS || m->beat.epoch != n->r.kept.epoch || n->copying ||
            !relation_at_is(m->before, n->r.at) || n->log.n == LOG_MAX)
                return;
        n->log.v[n->log.n++] = m->entry;
        n->r.at = m->entry.at;
}

/* What the follower lacks is sent, or it copies all. */
static void catch_up(struct game *g, unsigned me, struct relation_at peer)
{
        struct node *n = &g->node[me];

        if (relation_at_is(peer, last_of(&n->log)))
                n->close_until_ms = g->now_ms + LEASE_MS / 2;
        for (size_t i = 0; i + 1 < n->log.n; i++)
                if (relation_at_is(n->log.v[i].at, peer)) {
                        if (i + 4 > n->log.n)
                                n->close_until_ms = g->now_ms + LEASE_MS / 2;
                        append(g, me, peer, &n->log.v[i + 1]);
                        return;
                }
}

static bool known_to(const struct node *n, struct relation_at at)
{
        for (size_t i = 0; i < n->log.n; i++)
                if (relation_at_is(n->log.v[i].at, at))
                        return true;
        return relation_at_is(at, n->r.at);
}

static void take(struct game *g, struct message *m)
{
        unsigned me = m->to;
        struct node *n = &g->node[me];
        struct message answer = {.to = !me};

        switch (m->kind) {
        case BEAT:
        case APPEND:
                if (relation_heard(&n->r, &m->beat, g->now_ms))
                        keep(g, n);
                if (m->kind == APPEND)
                        take_append(n, m);
                answer.kind = SAID;
                answer.beat = m->beat;
                answer.sent_ms = m->sent_ms;
                relation_say(&n->r, &answer.said);
                say(g, &answer);
                break;
        case SAID:
                if (relation_answered(&n->r, &m->beat, &m->said, m->sent_ms))
                        keep(g, n);
                if (n->r.kept.role != RELATION_LEADS || m->said.epoch != n->r.kept.epoch)
                        break;
                if (n->phase == SENT && relation_at_is(m->said.at, n->group.at))
                        n->phase = STORED;
                if (known_to(n, m->said.at))
                        catch_up(g, me, m->said.at);
                else if (!n->r.kept.joined)
                        say(g, &(struct message){.kind = COPY_ASKED, .to = !me, .epoch = n->r.kept.epoch});
                else
                        relation_dismiss(&n->r);
                if (roll(g, 300) == 0) /* the follower is too slow for its leader */
                        relation_dismiss(&n->r);
                break;
        case COPY_ASKED: /* at the follower: the old store goes, and the leader's is asked for */
                if (n->r.kept.role != RELATION_FOLLOWS || n->r.kept.joined || m->epoch != n->r.kept.epoch)
                        break;
                n->copying = true;
                n->log.n = 0;
                n->r.at = (struct relation_at){0};
                answer.kind = COPY;
                answer.epoch = m->epoch;
                say(g, &answer);
                break;
        case COPY:
                if (!m->copy) { /* at the leader */
                        if (n->r.kept.role != RELATION_LEADS || m->epoch != n->r.kept.epoch)
                                break;
                        answer.kind = COPY;
                        answer.epoch = m->epoch;
                        answer.copy = mem_new(struct record);
                        *answer.copy = n->log;
                        say(g, &answer);
                } else if (n->copying && m->epoch == n->r.kept.epoch) {
                        n->log = *m->copy;
                        n->r.at = last_of(&n->log);
                        n->copying = false;
                        g->copies++;
                }
                break;
        }
        free(m->copy);
        m->copy = NULL;
}

/* What a process does by itself. */
static void work(struct game *g, unsigned me)
{
        struct node *n = &g->node[me];
        struct message m = {.kind = BEAT, .to = !me, .sent_ms = g->now_ms};

        if (relation_take_over(&n->r, g->now_ms, g->now_ms / 1000, line(g))) {
                keep(g, n);
                g->takeovers++;
        }
        if (n->copying && roll(g, 100) == 0)
                n->copying = false; /* given up, and asked for again */
        if (n->r.kept.role != RELATION_LEADS)
                return;
        commit_step(g, me);
        if (g->now_ms >= n->beat_ms) {
                n->beat_ms = g->now_ms + LEASE_MS / 5;
                relation_beat(&n->r, &m.beat);
                say(g, &m);
        }
}

static void hand_over(struct game *g, unsigned me)
{
        struct node *n = &g->node[me];
        struct message m = {.kind = BEAT, .to = !me, .sent_ms = g->now_ms};

        if (n->phase == NOTHING && relation_hand_over(&n->r, g->now_ms, &m.beat)) {
                keep(g, n);
                say(g, &m);
                g->handed++;
        }
}

/* An administrator sees to it that the other server does not run, and that this one had all. */
static void promote(struct game *g, unsigned me)
{
        struct node *n = &g->node[me], *other = &g->node[!me];

        if (other->up || n->copying || !(n->r.kept.joined || n->r.kept.role == RELATION_LEADS))
                return;
        if (other->kept.epoch > n->kept.epoch)
                return;
        if (relation_promote(&n->r, g->now_ms / 1000, line(g))) {
                keep(g, n);
                g->promotions++;
        }
}

static void trouble(struct game *g)
{
        unsigned me = roll(g, 2);
        struct node *n = &g->node[me];

        switch (roll(g, 400)) {
        case 0: n->up = false; break;
        case 1: g->cut[me] = true; break;
        case 2: n->frozen_until_ms = g->now_ms + roll(g, 4 * LEASE_MS); break;
        case 3:
                if (n->up)
                        hand_over(g, me);
                break;
        case 4:
                if (n->up && roll(g, 3) == 0)
                        promote(g, me);
                break;
        case 5:
                if (n->up && relation_leave(&n->r))
                        keep(g, n);
                break;
        default: break;
        }
        if (!n->up && roll(g, 40) == 0)
                start(g, n);
        if (roll(g, 100) == 0)
                g->cut[me] = false;
}

static void step(struct game *g)
{
        g->now_ms += roll(g, 40);
        if (!g->calm)
                trouble(g);
        for (size_t i = 0; i < g->mail_count; i++) {
                struct message m = g->mail[i];
                struct node *to = &g->node[m.to];

                if (m.due_ms > g->now_ms || to->frozen_until_ms > g->now_ms)
                        continue;
                g->mail[i--] = g->mail[--g->mail_count];
                if (to->up && to->run == m.run)
                        take(g, &m);
                else
                        free(m.copy);
                check(g);
        }
        for (unsigned i = 0; i < 2; i++)
                if (g->node[i].up && g->node[i].frozen_until_ms <= g->now_ms)
                        work(g, i);
        check(g);
}

static bool is_mirrored(const struct game *g)
{
        for (unsigned i = 0; i < 2; i++) {
                const struct relation *leader = &g->node[i].r, *follower = &g->node[!i].r;

                if (relation_may_act(leader, g->now_ms) && leader->kept.joined && follower->kept.joined &&
                    relation_at_is(leader->at, follower->at))
                        return true;
        }
        return false;
}

/* At the end all works, and the two come to the same, unless nobody leads: the leader had given up the lead,
 * and the other has not heard it, and may not lead by itself. */
static void calm_down(struct game *g)
{
        g->calm = true;
        for (unsigned i = 0; i < 2; i++) {
                g->cut[i] = false;
                if (!g->node[i].up)
                        start(g, &g->node[i]);
        }
        for (unsigned i = 0; i < STEPS && !is_mirrored(g); i++)
                step(g);
        if (is_mirrored(g))
                g->mirrored++;
        else if (g->node[0].r.kept.role == RELATION_LEADS || g->node[1].r.kept.role == RELATION_LEADS)
                violation(g, "the two do not come to the same");
}

static unsigned play(unsigned seed, struct game *sum)
{
        struct game *g = mem_new(struct game);
        unsigned acked;

        g->seed = seed;
        g->random = seed * 0x9e3779b97f4a7c15u + 1;
        g->now_ms = 1000000;
        for (unsigned i = 0; i < 2; i++) {
                g->node[i].r.lease_ms = LEASE_MS;
                g->node[i].r.automatic = seed % 4 != 0;
        }
        g->node[0].kept = (struct relation_kept){.role = RELATION_LEADS, .epoch = 1};
        start(g, &g->node[0]);
        start(g, &g->node[1]);
        for (unsigned i = 0; i < STEPS; i++)
                step(g);
        calm_down(g);
        sum->takeovers += g->takeovers;
        sum->promotions += g->promotions;
        sum->copies += g->copies;
        sum->handed += g->handed;
        sum->joinings += g->joinings;
        sum->mirrored += g->mirrored;
        acked = (unsigned)g->acked_count;
        for (size_t i = 0; i < g->mail_count; i++)
                free(g->mail[i].copy);
        free(g);
        return acked;
}

static unsigned number_of(const char *name, unsigned otherwise)
{
        const char *text = getenv(name);

        return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void test_games(void **state)
{
        struct game *sum = mem_new(struct game);
        unsigned acked = 0, first = number_of("DROVER_SEED", 1), games = number_of("DROVER_SEEDS", GAMES);

        (void)state;
        for (unsigned i = 0; i < games; i++)
                acked += play(first + i, sum);
        print_message("%u games, %u mirrored at the end: %u acknowledged, %u takeovers, %u handed over, %u "
                      "promotions, "
                      "%u joinings, %u copies\n",
                      games, sum->mirrored, acked, sum->takeovers, sum->handed, sum->promotions,
                      sum->joinings, sum->copies);
        if (games >= GAMES) { /* else nothing was tried */
                assert_true(acked > games && sum->takeovers > 0 && sum->handed > 0 && sum->promotions > 0);
                assert_true(sum->joinings > games && sum->copies > 0 && sum->mirrored > games / 2);
        }
        free(sum);
}

/* A follower that dies right after it has joined is missed like any other: the end of its lease is known. */
static void test_a_lease_that_never_began(void **state)
{
        struct relation r = {.lease_ms = LEASE_MS};
        const struct relation_kept kept = {.role = RELATION_LEADS, .epoch = 1};
        struct relation_said said = {.epoch = 1};
        struct relation_beat b;

        (void)state;
        relation_start(&r, &kept, (struct relation_at){5, 6}, 1000, 7);
        said.at = r.at;
        relation_beat(&r, &b);
        assert_true(relation_may_act(&r, 1000));
        assert_true(relation_answered(&r, &b, &said, 1000));
        assert_true(r.kept.joined && r.until_ms == 1000);
        assert_false(relation_may_act(&r, 1000));
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_games),
                                           cmocka_unit_test(test_a_lease_that_never_began)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
