#include <stdio.h>
#include <stdlib.h>

#include "bank/bank.h"
#include "core/lifecycle/draft.h"
#include "core/lifecycle/lots.h"
#include "core/lifecycle/reservations.h"
#include "core/model/changes.h"
#include "core/query.h"
#include "sim/game_state.h"

static void add_attribute(struct submission_part *p, const char *name, const char *text)
{
        submission_add_attribute(p, str_of(name), str_of(text), strstr(text, "$(") != NULL);
}

/* Numbers that are borrowed by the submission until it was given to the core. */
struct texts {
        char memory[32], priority[32], depends[64], reservation[24], quote[24], size[8], duration[8];
        struct buf items, files, edges;
};

static void fill_files(struct game *g, struct submission_part *p, struct texts *t)
{
        char room[32];
        size_t from = t->files.n;

        buf_printf(&t->files, "\"%s,", game_file_url(game_below(g, GAME_FILES), room));
        buf_printf(&t->files, "%s\"", game_file_url(game_below(g, GAME_FILES), room));
        submission_add_attribute(p, STR("TransferInput"), str_skip(buf_view(&t->files), from), false);
        /* A placement job that copies more than the store can ever have would never end. */
        add_attribute(p, "TransferInputSizes", g->space ? "\"100000,2000000\"" : "\"100000,200000000\"");
        if (game_chance(g, 50))
                add_attribute(p, "BetterPlaceWait", "1");
}

/* Jobs that start together; so few that each kind of place could have them. */
static void fill_set(struct game *g, struct submission_part *p)
{
        static const char *const within[] = {"\"node\"", "\"group\"", "\"anywhere\""};
        unsigned kind = game_below(g, 3), size = kind == 0 ? 2 : 2 + game_below(g, 3);

        add_attribute(p, "Cmd", "\"/bin/true\"");
        add_attribute(p, "Arguments", "\"$(Node)\"");
        add_attribute(p, "RequestCpus", "1");
        add_attribute(p, "RequestMemory", "50");
        add_attribute(p, "GangSize", (const char *const[]){"2", "3", "4"}[size - 2]);
        add_attribute(p, "GangWithin", within[kind]);
        if (game_chance(g, 50))
                add_attribute(p, "JobUniverse", "11");
        if (game_chance(g, 30))
                add_attribute(p, "OnExitRemove", "ExitCode == 0 || NumJobCompletions > 2");
        if (game_chance(g, 20))
                add_attribute(p, "OnExitHold", "ExitCode == 2");
        if (game_chance(g, 10))
                add_attribute(p, "PeriodicVacate", "NumJobStarts < 2 && JobStatus == 2");
        if (game_chance(g, 10))
                add_attribute(p, "PeriodicRemove", "NumJobStarts > 3 && ProcId % 5 == 0");
        if (game_chance(g, 20))
                add_attribute(p, "ConcurrencyLimits", "\"sw\"");
        p->steps = size * (1 + game_below(g, 8));
}

/* Returns whether any queue of the game has that many processors, and a speed above 0 if fast: a job that no
 * place can run would never end. */
static bool fits_somewhere(const struct game *g, unsigned cpus, bool fast)
{
        for (unsigned i = 0; i < GAME_AGENTS; i++)
                for (unsigned k = 0; k < g->agents[i].queue_count; k++)
                        if (g->agents[i].queues[k].cpus >= cpus &&
                            (!fast || game_speed(&g->agents[i].queues[k])))
                                return true;
        return false;
}

/* A placement job: where it writes, and what it does there with lots and files. Jobs of lots that nobody
 * makes are removed after a while. */
static void fill_placement(struct game *g, struct submission_part *p, const struct texts *t)
{
        static const char *const types[] = {"\"transfer\"", "\"transfer\"", "\"reserve\"", "\"rm\"",
                                            "\"release\""};
        bool near = game_chance(g, 50), lots = g->space && near;
        const char *type = types[lots ? game_below(g, 5) : 0];
        bool lot = strcmp(type, types[2]) == 0 || strcmp(type, types[4]) == 0;

        add_attribute(p, "DapType", type);
        add_attribute(p, "OutputDestination", near ? "\"https://near.sim/out\"" : "\"https://far.sim/out\"");
        if (lot || game_chance(g, 60))
                add_attribute(p, "TransferOutputSizeMB", t->size);
        if (lot)
                add_attribute(p, "ReserveDuration", t->duration);
        if (!lots || !(lot || game_chance(g, 30)))
                return;
        add_attribute(p, "ReserveId", game_chance(g, 50) ? "\"a\"" : "\"b\"");
        add_attribute(p, "PeriodicRemove", "time() - QDate > 60");
}

static void fill_part(struct game *g, struct submission_part *p, struct texts *t)
{
        enum { ROOM, ANY, FAST, MEMORY };
        static const char *const requirements[] = {[ROOM] = "TARGET.Cpus >= RequestCpus",
                                                   [ANY] = "true",
                                                   [FAST] = "TARGET.Speed > 0",
                                                   [MEMORY] = "TARGET.Memory > 100 && TARGET.Speed != 9"};
        static const char *const limits[] = {"\"sw\"", "\"sw:2,db.x\"", "\"free, SW\"",
                                             "strcat(\"db.\", TARGET.Speed)", "\"db.y:2\""};

        unsigned wants = game_below(g, 4), cpus = game_chance(g, 80) ? 1 : game_chance(g, 80) ? 2 : 6;

        add_attribute(p, "Cmd", "\"/bin/true\"");
        add_attribute(p, "Arguments", "\"$(Process)\"");
        if (!fits_somewhere(g, cpus, false))
                cpus = 2;
        if (wants == FAST && !fits_somewhere(g, cpus, true))
                wants = ANY;
        add_attribute(p, "Requirements", requirements[wants]);
        add_attribute(p, "RequestCpus", cpus == 1 ? "1" : cpus == 2 ? "2" : "6");
        add_attribute(p, "JobPrio", t->priority);
        if (game_chance(g, 20))
                add_attribute(p, "Rank", "TARGET.Speed");
        if (game_chance(g, 30))
                add_attribute(p, "OnExitRemove", "ExitCode == 0 || NumJobCompletions > 2");
        if (game_chance(g, 10))
                add_attribute(p, "OnExitHold", "ExitCode == 2");
        if (game_chance(g, 10))
                add_attribute(p, "PeriodicRelease", "NumJobStarts < 5");
        if (game_chance(g, 5))
                add_attribute(p, "PeriodicHold", "NumJobStarts > 3 && JobStatus == 1");
        if (game_chance(g, 30))
                add_attribute(p, "AllowedExecuteDuration", "1");
        if (game_chance(g, 15))
                add_attribute(p, "LeaveJobInQueue",
                              game_chance(g, 30) ? "true" : "time() - CompletionDate < 90");
        if (game_chance(g, 10))
                add_attribute(p, "QOS", "\"urgent\"");
        if (game_chance(g, 40))
                add_attribute(p, "AcctGroup", game_chance(g, 50) ? "\"lab.night\"" : "\"nice-user\"");
        if (game_chance(g, 25))
                fill_files(g, p, t);
        if (game_chance(g, g->space ? 40 : 10))
                fill_placement(g, p, t);
        if (game_chance(g, 30))
                add_attribute(p, "ConcurrencyLimits", limits[game_below(g, 5)]);
        if (game_chance(g, 20)) {
                submission_add_variable(p, STR("mem"));
                p->items = buf_view(&t->items);
                p->rows = 20;
                add_attribute(p, "RequestMemory", "$(mem)");
        } else {
                add_attribute(p, "RequestMemory", t->memory);
                p->steps = 1 + game_below(g, game_chance(g, 10) ? 2000 : 30);
        }
}

struct game_draft {
        struct submission s;
        struct texts t;
        struct core_draft *draft;
};

static void draft_free(struct game_draft *x)
{
        submission_deinit(&x->s);
        buf_deinit(&x->t.items);
        buf_deinit(&x->t.files);
        buf_deinit(&x->t.edges);
        free(x);
}

/* Jobs of a request that was submitted before; false: there is none of this user's. */
static bool earlier_jobs(struct game *g, const struct submission *s, char *to, size_t n)
{
        static const char *const when[] = {"ok", "fail", "any", "each"};
        struct core *core = sim_world_core(g->world);
        uint64_t last = core_request_last(core), jobs = submission_members(s);
        unsigned how = game_below(g, 4);
        struct core_request r;

        if (last == 0 || core_request_get(core, 1 + game_below(g, (unsigned)last), &r) != 0 ||
            !str_eq(r.owner, s->owner))
                return false;
        if (how == DEPENDENCY_EACH && jobs > r.counts.jobs)
                how = DEPENDENCY_ANY;
        if (how == DEPENDENCY_EACH)
                snprintf(to, n, "\"%" PRIu64 ".0-%" PRIu64 ":each\"", r.id, jobs - 1);
        else if (game_chance(g, 50))
                snprintf(to, n, "\"%" PRIu64 ".%u:%s\"", r.id, game_below(g, (unsigned)r.counts.jobs),
                         when[how]);
        else
                snprintf(to, n, "\"%" PRIu64 ":%s\"", r.id, when[how]);
        return true;
}

/* Edges from lower to higher numbers, so that there is no circle. */
static void draw_edges(struct game *g, struct submission *s, struct buf *edges)
{
        static const char *const when[] = {"",       ":ok",      ":any",  ":fail",  ":ok=1", ":post",
                                           ":retry", ":retry=1", ":held", ":start", ":stop"};
        uint64_t jobs = submission_members(s);

        for (unsigned n = 1 + game_below(g, 8); n > 0 && jobs > 1; n--) {
                unsigned middle = 1 + game_below(g, (unsigned)jobs - 1), first = game_below(g, middle);
                unsigned last = middle + game_below(g, (unsigned)jobs - middle);

                buf_printf(edges, "%s%u-%u>%u-%u%s", edges->n ? ";" : "", first, middle - 1, middle, last,
                           when[game_below(g, sizeof(when) / sizeof(when[0]))]);
        }
        s->edges = buf_view(edges);
}

static bool has_attribute(const struct submission *s, const char *name)
{
        for (size_t i = 0; i < s->part_count; i++)
                for (size_t k = 0; k < s->parts[i].attribute_count; k++)
                        if (str_eqz(s->parts[i].attributes[k].name, name))
                                return true;
        return false;
}

/* Edges that cut a gang are refused. */
static bool has_gangs(const struct submission *s)
{
        return has_attribute(s, "GangSize");
}

static void depend(struct game *g, struct game_draft *x)
{
        bool remove = game_chance(g, 60), outer = game_chance(g, 20);

        if (outer)
                outer = earlier_jobs(g, &x->s, x->t.depends, sizeof(x->t.depends));
        for (size_t i = 0; i < x->s.part_count; i++) {
                if (outer)
                        add_attribute(&x->s.parts[i], "DependsOn", x->t.depends);
                if (remove)
                        add_attribute(&x->s.parts[i], "OnDependencyFailure", "\"remove\"");
        }
        for (size_t i = 0; i < x->s.part_count; i++)
                if (game_chance(g, 5))
                        add_attribute(&x->s.parts[i], game_chance(g, 70) ? "AbortGraphOn" : "OnGraphAbort",
                                      game_chance(g, 50) ? "1" : "\"stay\"");
        if (game_chance(g, 20) && !has_gangs(&x->s))
                draw_edges(g, &x->s, &x->t.edges);
}

/* Lets some jobs name a reservation. When it is over they are held, and then removed, since nobody edits
 * them. */
static void name_reservation(struct game *g, struct game_draft *x)
{
        const struct advance *a = core_reserved_first(sim_world_core(g->world));

        while (a && a->next && game_chance(g, 50))
                a = a->next;
        if (!a || a->request || a->maintenance || !game_chance(g, 40))
                return;
        snprintf(x->t.reservation, sizeof(x->t.reservation), "%" PRIu64, a->id);
        for (size_t i = 0; i < x->s.part_count; i++) {
                add_attribute(&x->s.parts[i], "ReservationId", x->t.reservation);
                add_attribute(&x->s.parts[i], "PeriodicRemove", "HoldReasonCode == 1004");
        }
}

struct quote_choice {
        struct game *g;
        const struct submission *s;
        uint64_t id;
        unsigned seen;
};

/* Whether the account may pay for the first part: its group's, or else its owner's. */
static bool pays(const struct bank_account *a, const struct submission *s)
{
        const struct submission_part *p = &s->parts[0];

        for (size_t i = 0; i < p->attribute_count; i++)
                if (str_eqz(p->attributes[i].name, "AcctGroup"))
                        return str_search(p->attributes[i].text, str_of(a->name)) == 1;
        return str_eqz(s->owner, a->name);
}

static void choose_quote(void *arg, const struct bank_quote *q)
{
        struct quote_choice *x = arg;

        if (q->used || (!pays(q->account, x->s) && !game_chance(x->g, 5)))
                return;
        if (game_below(x->g, ++x->seen) == 0)
                x->id = q->id;
}

static void name_quote(struct game *g, struct game_draft *x)
{
        struct quote_choice choice = {.g = g, .s = &x->s};

        if (!g->bank || !game_chance(g, 70))
                return;
        bank_quotes_each(core_bank(sim_world_core(g->world)), choose_quote, &choice);
        if (!choice.id)
                return;
        snprintf(x->t.quote, sizeof(x->t.quote), "%" PRIu64, choice.id);
        for (size_t i = 0; i < x->s.part_count; i++)
                add_attribute(&x->s.parts[i], "BankQuote", x->t.quote);
}

/* The draft names a reservation that has ended while it was loaded, or a quote that is another account's, or
 * used or over by now, or its owner is inactive in the bank: then it is refused, as it should be. */
static bool may_be_refused(struct game *g, const struct game_draft *x)
{
        if (x->t.quote[0] ||
            registry_is_inactive(bank_users(core_bank(sim_world_core(g->world))), x->s.owner))
                return true;
        if (!x->t.reservation[0])
                return false;
        for (const struct advance *a = core_reserved_first(sim_world_core(g->world)); a; a = a->next)
                if (a->id == strtoull(x->t.reservation, NULL, 10))
                        return false;
        return true;
}

/* Jobs that are reserved for: each for itself, or, where limits cannot keep them apart for ever, all
 * together.
 */
static void fill_meta(struct game *g, struct submission *s)
{
        static const char *const prefer[] = {"\"time\"", "\"cost\"", "0.5", "0.9"};
        bool together = submission_members(s) <= 3 && s->edges.n == 0 &&
                        !has_attribute(s, "ConcurrencyLimits") && !has_attribute(s, "QOS");
        const char *weight = prefer[game_below(g, 4)];

        if (submission_members(s) > 100 || has_attribute(s, "DapType"))
                return;
        for (size_t i = 0; i < s->part_count; i++) {
                add_attribute(&s->parts[i], together ? "CoAllocate" : "Meta", "true");
                add_attribute(&s->parts[i], "MetaPrefer", weight);
        }
}

static void describe(struct game *g, struct game_draft *x)
{
        bool meta = g->metas && game_chance(g, 40), small = meta && game_chance(g, 50);
        unsigned parts = small ? 2 : 1 + (game_chance(g, 20) ? game_below(g, 3) : 0);

        x->s.owner = game_chance(g, 50) ? STR("ann@local") : STR("bob@local");
        x->s.at_ms = sim_world_now(g->world);
        for (int i = 0; i < 16; i++)
                x->s.uuid[i] = (unsigned char)sim_random_u64(&g->random);
        snprintf(x->t.memory, sizeof(x->t.memory), "%u", game_below(g, 200));
        snprintf(x->t.priority, sizeof(x->t.priority), "%u", game_below(g, 3));
        snprintf(x->t.size, sizeof(x->t.size), "%u", 1 + game_below(g, 8));
        snprintf(x->t.duration, sizeof(x->t.duration), "%u", 1 + game_below(g, 3));
        buf_room(&x->t.files, 4096); /* views of it are kept: it must not move */
        for (unsigned i = 0; i < 20; i++)
                buf_printf(&x->t.items, "%u\n", game_below(g, 4) * 50);
        for (unsigned i = 0; i < parts; i++)
                if (!meta && game_chance(g, 15))
                        fill_set(g, submission_add_part(&x->s));
                else
                        fill_part(g, submission_add_part(&x->s), &x->t);
        for (size_t i = 0; small && !has_attribute(&x->s, "DapType") && i < x->s.part_count; i++)
                if (x->s.parts[i].items.n == 0)
                        x->s.parts[i].steps = 1;
        for (size_t i = 0; i < x->s.part_count; i++)
                if (game_chance(g, 30))
                        add_attribute(&x->s.parts[i], "WantIOProxy", "true");
        depend(g, x);
        if (meta)
                fill_meta(g, &x->s);
        else if (!has_gangs(&x->s))
                name_reservation(g, x);
        name_quote(g, x);
}

void game_user_submit(struct game *g)
{
        struct core *core = sim_world_core(g->world);
        struct game_draft *x = mem_new(struct game_draft);
        struct err err;
        uint64_t id;
        bool existing;
        int r;

        describe(g, x);
        if (!g->draft && game_chance(g, 40)) {
                r = core_draft_new(core, &x->s, CORE_DRAFT_SUBMIT, &x->draft, &err);
                g->draft = r ? NULL : x;
        } else {
                r = core_submit(core, &x->s, false, &id, &existing, &err);
                if (!r)
                        sim_world_answer(g->world, id);
        }
        if (r && !may_be_refused(g, x))
                sim_world_violation(g->world, "a submit was refused: %s", err.text);
        if (g->draft != x)
                draft_free(x);
}

void game_user_draft(struct game *g)
{
        struct game_draft *x = g->draft;
        struct err err;
        uint64_t id;
        bool existing, more = false;
        int r;

        if (!x)
                return;
        r = core_draft_some(x->draft, &more, &err);
        if (!r && more)
                return;
        if (!r)
                r = core_draft_submit(x->draft, &id, &existing, &err);
        if (r && !may_be_refused(g, x))
                sim_world_violation(g->world, "a submit was refused: %s", err.text);
        else if (!r)
                sim_world_answer(g->world, id);
        core_draft_free(x->draft);
        game_user_draft_drop(g);
}

void game_user_draft_drop(struct game *g)
{
        if (g->draft)
                draft_free(g->draft);
        g->draft = NULL;
}

void game_user_act(struct game *g)
{
        static const enum core_action actions[] = {CORE_ACT_HOLD,   CORE_ACT_RELEASE,  CORE_ACT_REMOVE,
                                                   CORE_ACT_VACATE, CORE_ACT_PRIORITY, CORE_ACT_RELEASE,
                                                   CORE_ACT_EDIT};
        static const char *const texts[] = {"1", "2 - 1", "1 + 0", "$(Process) * 0 + 1"};
        BUF_CLEANUP struct buf changes = {0};
        struct core *core = sim_world_core(g->world);
        uint64_t last = core_request_last(core), n;
        struct core_command cmd = {.action = actions[game_below(g, 7)],
                                   .request = last ? 1 + game_below(g, (unsigned)last) : 1,
                                   .reason = STR("because"),
                                   .value = game_below(g, 5)};
        struct set some = {0};
        struct core_request r;

        if (cmd.action == CORE_ACT_REMOVE && game_chance(g, 60))
                cmd.action = CORE_ACT_HOLD;
        if (core_request_get(core, cmd.request, &r) == 0 && game_chance(g, 70)) {
                uint32_t from = game_below(g, (unsigned)r.counts.jobs),
                         to = from + 1 + game_below(g, (unsigned)(r.counts.jobs - from));

                set_add_range(&some, from, to);
                cmd.members = &some;
        }
        if (cmd.action == CORE_ACT_EDIT) {
                unsigned text = game_below(g, 4);

                changes_add(&changes, game_chance(g, 50) ? STR("Rank") : STR("RequestCpus"), text == 3,
                            str_of(texts[text]));
                cmd.changes = buf_view(&changes);
        }
        core_act(core, &cmd, &n, NULL);
        set_deinit(&some);
}

void game_user_release_all(struct game *g)
{
        struct core *core = sim_world_core(g->world);

        for (uint64_t id = core_request_next(core, 0); id; id = core_request_next(core, id)) {
                struct core_command cmd = {.action = CORE_ACT_RELEASE, .request = id, .reason = STR("end")};
                uint64_t n;

                core_act(core, &cmd, &n, NULL);
        }
}

void game_user_order_node(struct game *g)
{
        static const enum node_state states[] = {NODE_DRAINING, NODE_DRAINING, NODE_UP,   NODE_UP,
                                                 NODE_UP,       NODE_FAILED,   NODE_DOWN, NODE_RETIRED};
        const struct game_agent *a = &g->agents[game_below(g, GAME_AGENTS)];
        struct core *core = sim_world_core(g->world);
        struct core_node_order o = {.agent = a->name,
                                    .to = states[game_below(g, 8)],
                                    .by = STR("root"),
                                    .reason = STR("because")};

        /* An admin who says that a machine is off must be right. */
        if ((o.to == NODE_DOWN || o.to == NODE_RETIRED) && !a->connected && a->count)
                return;
        if (o.to == NODE_DRAINING && game_chance(g, 50))
                o.deadline_ms = sim_world_now(g->world) + game_below(g, 500);
        GAME_TRACE(g, "%s is ordered to be %s", a->name, sm_state(&node_states, o.to));
        core_node_set(core, &o, NULL);
}

void game_user_resume_all(struct game *g)
{
        for (unsigned i = 0; i < GAME_AGENTS; i++) {
                struct core_node_order o = {.agent = g->agents[i].name, .to = NODE_UP, .by = STR("root")};

                core_node_set(sim_world_core(g->world), &o, NULL);
        }
}

/* ---- the bank */

static const char *const accounts[] = {"ann@local", "bob@local", "lab", "lab.night", "nice-user"};
#define ACCOUNTS (sizeof(accounts) / sizeof(accounts[0]))

static void order_bank(struct game *g, struct bank_order o)
{
        uint64_t id;

        core_bank_order(sim_world_core(g->world), &o, &id, NULL); /* or it is refused */
}

void game_user_bank_begin(struct game *g)
{
        for (size_t i = 0; i < ACCOUNTS; i++) {
                order_bank(g, (struct bank_order){.op = BANK_OPEN, .account = str_of(accounts[i])});
                order_bank(g, (struct bank_order){.op = BANK_MEMBER,
                                                  .account = str_of(accounts[i]),
                                                  .user = STR("*"),
                                                  .role = BANK_ROLE_USER});
                order_bank(g, (struct bank_order){.op = BANK_DEPOSIT,
                                                  .account = str_of(accounts[i]),
                                                  .amount = 3000,
                                                  .credit = 50});
        }
        sim_world_turn(g->world);
        while (sim_world_flying(g->world))
                sim_world_commit(g->world);
}

/* Registers a machine or a user, makes it active or inactive, or removes it: jobs that cost something go to
 * other machines meanwhile, wait or are held. */
static void order_machine(struct game *g)
{
        static const enum bank_op ops[] = {BANK_REGISTER, BANK_MACHINE, BANK_UNREGISTER},
                                  user_ops[] = {BANK_REGISTER, BANK_USER, BANK_UNREGISTER};

        if (game_chance(g, 30)) {
                order_bank(g, (struct bank_order){
                                      .op = user_ops[game_below(g, 3)],
                                      .user = str_of(accounts[game_below(g, 2)]),
                                      .activity = (enum bank_activity)game_below(g, BANK_ACTIVITIES)});
                return;
        }
        order_bank(g, (struct bank_order){.op = ops[game_below(g, 3)],
                                          .place = str_of(g->agents[game_below(g, GAME_AGENTS)].name),
                                          .activity = (enum bank_activity)game_below(g, BANK_ACTIVITIES)});
}

void game_user_bank(struct game *g)
{
        static const enum bank_op ops[] = {BANK_DEPOSIT, BANK_DEPOSIT, BANK_WITHDRAW, BANK_TRANSFER,
                                           BANK_SET,     BANK_LIEN,    BANK_EXTEND,   BANK_RELEASE,
                                           BANK_CHARGE,  BANK_REFUND,  BANK_QUOTE,    BANK_QUOTE,
                                           BANK_QUOTE,   BANK_QUOTE,   BANK_CLOSE,    BANK_OPEN,
                                           BANK_REQUOTE, BANK_CANCEL,  BANK_ACCOUNT};
        struct bank_order o = {.op = ops[game_below(g, sizeof(ops) / sizeof(ops[0]))],
                               .account = str_of(accounts[game_below(g, ACCOUNTS)]),
                               .to = str_of(accounts[game_below(g, ACCOUNTS)]),
                               .amount = game_below(g, 900)};

        for (size_t i = 0; g->draining && i < ACCOUNTS; i++)
                order_bank(g, (struct bank_order){.op = BANK_OPEN, .account = str_of(accounts[i])});
        for (size_t i = 0; g->draining && i < ACCOUNTS; i++)
                order_bank(g, (struct bank_order){.op = BANK_DEPOSIT,
                                                  .account = str_of(accounts[i]),
                                                  .amount = 1000000000000});
        for (size_t i = 0; g->draining && i < GAME_AGENTS; i++)
                order_bank(g, (struct bank_order){.op = BANK_UNREGISTER, .place = str_of(g->agents[i].name)});
        for (size_t i = 0; g->draining && i < 2; i++)
                order_bank(g, (struct bank_order){.op = BANK_UNREGISTER, .user = str_of(accounts[i])});
        if (g->draining)
                return;
        if (game_chance(g, 20)) {
                order_machine(g);
                return;
        }
        if (game_chance(g, 40))
                o.id = game_below(g, 100);
        if (o.op == BANK_REQUOTE || o.op == BANK_CANCEL)
                o.quote = game_below(g, 100);
        if (o.op == BANK_SET && game_chance(g, 50))
                o.activity = BANK_INACTIVE;
        if (o.op == BANK_ACCOUNT)
                o.activity = (enum bank_activity)game_below(g, BANK_ACTIVITIES);
        if (o.op == BANK_QUOTE || game_chance(g, 30))
                o.end_ms = sim_world_now(g->world) + 1 + game_below(g, o.op == BANK_QUOTE ? 30000 : 3000);
        if (o.op == BANK_QUOTE) {
                o.duration_ms = 1000 + game_below(g, 5000);
                o.cpus = 1 + game_below(g, 6);
        }
        order_bank(g, o);
}

void game_user_reserve(struct game *g)
{
        struct core *core = sim_world_core(g->world);
        const struct advance *a = core_reserved_first(core);
        struct core_reserve r = {.who = STR("ann@local"),
                                 .users = STR("*"),
                                 .nodes = 1 + game_below(g, 3),
                                 .cpus = 1 + game_below(g, 3),
                                 .memory_mib = game_chance(g, 50) ? 100 : 0,
                                 .evict = game_chance(g, 50),
                                 .start_ms = sim_world_now(g->world) + game_below(g, 2000),
                                 .duration_ms = 1000 + game_below(g, 2000)};
        uint64_t id;

        if (a && game_chance(g, 20)) {
                core_reserve_end(core, a->id, STR("ann@local"), STR("enough"), NULL);
                return;
        }
        if (game_chance(g, 15)) {
                r.users = STR("");
                r.maintenance = true;
        } else if (game_chance(g, 30)) {
                r.every_ms = r.duration_ms + 1000;
                r.until_ms = r.start_ms + game_below(g, 20000);
        }
        if (!r.maintenance && g->bank && game_chance(g, 50))
                r.account = str_of(accounts[game_below(g, ACCOUNTS)]);
        if (core_reserve(core, &r, false, &id, NULL) == 0)
                GAME_TRACE(g, "%" PRIu64 " is reserved", id);
}

void game_user_reserve_end_all(struct game *g)
{
        struct core *core = sim_world_core(g->world);
        const struct advance *a = core_reserved_first(core), *next;

        for (; a; a = next) {
                next = a->next;
                if (!a->request)
                        core_reserve_end(core, a->id, STR("root"), STR("end"), NULL);
        }
}

void game_user_make_space(struct game *g)
{
        struct core *core = sim_world_core(g->world);
        const struct lot *x;
        size_t n;
        MEM_CLEANUP struct lot **all = space_sorted(core, &n);

        for (size_t i = 0; i < n; i++) {
                x = all[i];
                if (*x->name)
                        core_lot_release(core, str_of(x->store), str_of(x->owner), str_of(x->name), NULL);
                else if (core_space_set(core, str_of(x->store), str_of(x->owner), 0, NULL) == 0)
                        break; /* the record is gone, and the list with it */
        }
}
