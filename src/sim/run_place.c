/* Agents of a simulation: they take, fetch, run, send and report; fail, and come back. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "sim/run_state.h"

static void make_dirty(struct run *r, struct place *p)
{
        if (p->dirty)
                return;
        p->dirty = true;
        MEM_GROW(r->dirty, r->dirty_cap, r->dirty_count + 1);
        r->dirty[r->dirty_count++] = p;
}

/* ---- its life */
void run_places_make(struct run *r)
{
        size_t n = 0;

        r->place_count = sim_site_agents(r->site);
        r->places = mem_zalloc(r->place_count * sizeof(*r->places));
        r->places_by_name = map_new();
        for (size_t k = 0; k < r->site->count; k++) {
                const struct sim_cluster *c = &r->site->clusters[k];

                for (uint32_t i = 0; i < c->agents; i++) {
                        struct place *p = &r->places[n++];
                        struct buf name = {0};

                        buf_addz(&name, c->name);
                        if (c->agents > 1)
                                buf_printf(&name, "-%u", i);
                        p->timer.kind = TIMER_PLACE;
                        p->launched_ms = -1;
                        p->cut.kind = TIMER_CUT;
                        p->name = buf_take(&name);
                        p->cluster = c;
                        p->cluster_index = (uint32_t)k;
                        p->number = i;
                        p->fetches = idmap_new();
                        cache_policy_init(&p->cache, c->cache_bytes);
                        map_put(r->places_by_name, str_of(p->name), p);
                }
        }
}

static void attempt_free(struct run *r, struct attempt *t)
{
        run_timer_stop(r, &t->timer);
        sim_pipe_cancel(&t->sending, run_now(r));
        *(t->prev ? &t->prev->next : &t->place->attempts) = t->next;
        if (t->next)
                t->next->prev = t->prev;
        r->held--;
        free(t);
}

static void fetch_free(struct run *r, struct fetch *f)
{
        sim_pipe_cancel(&f->flow, run_now(r));
        idmap_take(f->place->fetches, f->file);
        free(f->waiters);
        free(f);
}

static void place_drop_all(struct run *r, struct place *p)
{
        while (p->attempts)
                attempt_free(r, p->attempts);
        for (size_t at = 0;; at = 0) {
                void *fetch;

                if (!idmap_next(p->fetches, &at, NULL, &fetch))
                        break;
                fetch_free(r, fetch);
        }
}

void run_places_free(struct run *r)
{
        for (size_t i = 0; i < r->place_count; i++) {
                struct place *p = &r->places[i];

                place_drop_all(r, p);
                idmap_free(p->fetches);
                cache_policy_deinit(&p->cache);
                free(p->came);
                free(p->went);
                free(p->name);
        }
        map_free(r->places_by_name);
        free(r->places);
        free(r->dirty);
}

static void note_held(void *arg, uint64_t file, uint64_t bytes)
{
        struct place *p = arg;

        MEM_GROW(p->came, p->came_cap, p->came_count + 1);
        p->came[p->came_count++] = (struct core_file){file, bytes};
}

static void run_place_tell_links(struct run *r, struct place *p)
{
        struct core_link *links = mem_zalloc(r->site->count * sizeof(*links));
        char(*names)[16] = mem_zalloc(r->site->count * sizeof(*names));

        for (size_t k = 0; k < r->site->count; k++) {
                snprintf(names[k], sizeof(names[k]), "store%zu", k);
                links[k] = (struct core_link){str_of(names[k]), p->cluster->links[k].latency_us,
                                              p->cluster->links[k].bytes_per_s};
        }
        core_links(sim_world_core(r->world), p->name, links, r->site->count);
        free(links);
        free(names);
}

static void next_cut(struct run *r, struct place *p)
{
        if (p->cluster->cut_ms)
                run_timer_set(
                        r, &p->cut,
                        run_now(r) + 1 +
                                (int64_t)sim_random_exponential(&r->random, (double)p->cluster->cut_ms));
}

/* Connects an agent, at first or again, with its cache and no running jobs. */
void run_place_start(struct run *r, struct place *p)
{
        struct core *core = sim_world_core(r->world);

        p->up = true;
        p->cut_until = 0;
        p->renewed = run_now(r);
        p->session++;
        p->free_cpus = p->cluster->cpus;
        p->free_memory_mib = p->cluster->memory_mib;
        p->came_count = p->went_count = 0;
        core_agent_connected(core, p->name);
        core_inventory(core, p->name, NULL, 0, NULL, NULL);
        run_place_tell_links(r, p);
        cache_policy_each(&p->cache, note_held, p);
        core_cache_delta(core, p->name, p->came, p->came_count, NULL, 0, true);
        p->came_count = 0;
        p->offer_wanted = true;
        make_dirty(r, p);
        int64_t mean_ms = p->cluster->mtbf_ms + p->cluster->cloud.interrupted_ms; /* it has one of the two */

        if (mean_ms)
                run_timer_set(r, &p->timer,
                              run_now(r) + 1 + (int64_t)sim_random_exponential(&r->random, (double)mean_ms));
        next_cut(r, p);
}

/* Adds the energy of the attempt's program above that of idle processors. */
static void attempt_takes_energy(struct run *r, const struct attempt *t, int64_t to_ms)
{
        const struct sim_cluster *c = t->place->cluster;

        r->m->energy_j += (c->busy_watts - c->idle_watts) * r->w->jobs[t->job].cpus *
                          (double)(to_ms - t->run_from) / 1000;
}

/* Counts a lost attempt, with its processor time and energy. */
static void attempt_lost(struct run *r, const struct attempt *t)
{
        const struct sim_job *j = &r->w->jobs[t->job];

        r->m->lost++;
        if (t->state >= ATTEMPT_RUNNING) {
                r->lost_at[t->job] = run_now(r);
                int64_t to_ms = t->state == ATTEMPT_RUNNING ? run_now(r) : t->run_to;

                r->m->lost_cpu_s += (double)j->cpus * (double)(run_now(r) - t->run_from) / 1000;
                attempt_takes_energy(r, t, to_ms);
        }
        for (uint32_t i = 0; i < j->inputs.count; i++)
                cache_policy_unpin(&t->place->cache, r->file_ids[r->w->refs[j->inputs.first + i]]);
        r->waiting += t->state >= ATTEMPT_RUNNING;
        r->times[t->job].started = -1;
}

/* ---- its network
 *
 * An agent that is cut off runs its jobs on until their leases end, and tells what has happened to them when
 * it is connected again. */
static void give_up_all(struct run *r, struct place *p)
{
        for (const struct attempt *t = p->attempts; t; t = t->next) {
                attempt_lost(r, t);
                r->m->revoked++;
        }
        place_drop_all(r, p);
        p->free_cpus = p->cluster->cpus;
        p->free_memory_mib = p->cluster->memory_mib;
}

static void cut_begins(struct run *r, struct place *p)
{
        int64_t lease_ends = p->renewed + run_lease(r);

        p->cut_until =
                run_now(r) + 1 + (int64_t)sim_random_exponential(&r->random, (double)p->cluster->cut_for_ms);
        core_agent_away(sim_world_core(r->world), p->name);
        run_timer_set(r, &p->cut, p->cut_until < lease_ends ? p->cut_until : lease_ends);
}

static void cut_ends(struct run *r, struct place *p)
{
        struct core *core = sim_world_core(r->world);
        size_t n = 0, count = 0;
        struct core_attempts *has;
        struct set *members;

        for (const struct attempt *t = p->attempts; t; t = t->next)
                n++;
        has = mem_zalloc((n + 1) * sizeof(*has));
        members = mem_zalloc((n + 1) * sizeof(*members));
        for (const struct attempt *t = p->attempts; t; t = t->next, count++) {
                set_add(&members[count], t->member);
                has[count] = (struct core_attempts){t->request, t->fence, &members[count]};
        }
        p->cut_until = 0;
        p->session++;
        p->renewed = run_now(r);
        core_agent_connected(core, p->name);
        core_inventory(core, p->name, has, count, NULL, NULL);
        run_place_tell_links(r, p);
        p->came_count = p->went_count = 0;
        cache_policy_each(&p->cache, note_held, p);
        core_cache_delta(core, p->name, p->came, p->came_count, NULL, 0, true);
        p->came_count = 0;
        p->offer_wanted = true;
        make_dirty(r, p);
        for (size_t i = 0; i < count; i++)
                set_deinit(&members[i]);
        free(members);
        free(has);
        next_cut(r, p);
}

void run_cut_timer(struct run *r, struct place *p)
{
        if (!p->up)
                return; /* run_place_start sets the next one */
        if (!p->cut_until) {
                cut_begins(r, p);
        } else if (run_now(r) < p->cut_until) {
                give_up_all(r, p);
                run_timer_set(r, &p->cut, p->cut_until);
        } else {
                cut_ends(r, p);
        }
}

static void place_fail(struct run *r, struct place *p)
{
        p->up = false;
        for (const struct attempt *t = p->attempts; t; t = t->next)
                attempt_lost(r, t);
        place_drop_all(r, p);
        core_agent_away(sim_world_core(r->world), p->name);
        if (run_place_is_cloud(p)) {
                r->m->nodes_interrupted++;
                run_cloud_retire(r, p, "it was interrupted");
                return;
        }
        run_timer_set(r, &p->timer,
                      run_now(r) + 1 +
                              (int64_t)sim_random_exponential(&r->random, (double)p->cluster->repair_ms));
}

void run_place_timer(struct run *r, struct place *p)
{
        if (p->up)
                place_fail(r, p);
        else
                run_place_start(r, p);
}

/* ---- times when a cluster, or one of its agents, is away */
void run_outages_make(struct run *r, int64_t start_ms)
{
        size_t n = 0;

        for (size_t k = 0; k < r->site->count; k++)
                n += r->site->clusters[k].outage_count;
        r->outages = mem_zalloc((n + 1) * sizeof(*r->outages));
        for (size_t k = 0; k < r->site->count; k++)
                for (size_t i = 0; i < r->site->clusters[k].outage_count; i++) {
                        const struct sim_outage *from = &r->site->clusters[k].outages[i];
                        struct outage *o = &r->outages[r->outage_count++];

                        o->timer.kind = TIMER_OUTAGE;
                        o->cluster_index = (uint32_t)k;
                        o->agent = from->agent;
                        o->to_ms = start_ms + from->to_ms;
                        run_timer_set(r, &o->timer, start_ms + from->from_ms);
                }
}

/* An agent that is away already comes back no sooner than the outage ends. */
void run_outage_timer(struct run *r, struct outage *o)
{
        if (o->on) {
                o->on = false;
                r->outages_on--;
                return;
        }
        o->on = true;
        r->outages_on++;
        run_timer_set(r, &o->timer, o->to_ms);
        for (size_t i = 0; i < r->place_count; i++) {
                struct place *p = &r->places[i];
                bool was_up = p->up;

                if (p->cluster_index != o->cluster_index ||
                    (o->agent != SIM_ALL_AGENTS && o->agent != p->number))
                        continue;
                if (was_up)
                        place_fail(r, p);
                if (was_up || p->timer.at_ms < o->to_ms)
                        run_timer_set(r, &p->timer, o->to_ms);
        }
}

/* ---- messages from an agent */
static void run_place_offer(struct run *r, struct place *p)
{
        char ad[320];
        const struct sim_cluster *c = p->cluster;
        struct core_offer o = {
                .agent = p->name, .queue = "default", .serial = ++p->serial, .jobs_max = p->free_cpus};
        int n = snprintf(ad, sizeof(ad),
                         "[ Cpus = %u; Memory = %" PRIu64
                         "; Disk = 1000000000; TotalCpus = %u; TotalMemory = %" PRIu64
                         "; Speed = %g; Requirements = TARGET.RequestCpus <= MY.TotalCpus ]",
                         p->free_cpus, p->free_memory_mib, c->cpus, c->memory_mib, c->speed);
        struct err err;

        o.ad = str_make(ad, (size_t)n);
        p->offer_wanted = false;
        if (core_offer(sim_world_core(r->world), &o, &err))
                sim_world_violation(r->world, "an offer was refused: %s", err.text);
}

void run_places_tell(struct run *r)
{
        for (size_t i = 0; i < r->dirty_count; i++) {
                struct place *p = r->dirty[i];

                p->dirty = false;
                if (!p->up || p->cut_until)
                        continue;
                if (p->came_count || p->went_count)
                        core_cache_delta(sim_world_core(r->world), p->name, p->came, p->came_count, p->went,
                                         p->went_count, false);
                p->came_count = p->went_count = 0;
                if (p->offer_wanted)
                        run_place_offer(r, p);
        }
        r->dirty_count = 0;
}

static void note_gone(void *arg, uint64_t file, uint64_t bytes)
{
        struct place *p = arg;

        (void)bytes;
        for (size_t i = 0; i < p->came_count; i++)
                if (p->came[i].id == file) { /* it came and went between two words with the core */
                        p->came[i] = p->came[--p->came_count];
                        return;
                }
        MEM_GROW(p->went, p->went_cap, p->went_count + 1);
        p->went[p->went_count++] = file;
}

static void cache_put(struct run *r, struct place *p, uint32_t file)
{
        uint64_t id = r->file_ids[file], bytes = r->w->files[file].bytes;
        bool had = cache_policy_has(&p->cache, id);

        if (!cache_policy_put(&p->cache, id, bytes, note_gone, p) || had)
                return;
        note_held(p, id, bytes);
        make_dirty(r, p);
}

/* ---- attempts */
static struct run_pipe *pipe_to(struct run *r, const struct place *p, uint32_t store)
{
        return &r->pipes[p->cluster_index * r->site->count + store];
}

static void pipe_changed(struct run *r, struct run_pipe *p)
{
        int64_t next = sim_pipe_next(&p->pipe);

        if (next == SIM_NEVER)
                run_timer_stop(r, &p->timer);
        else
                run_timer_set(r, &p->timer, next);
}

static void attempt_run(struct run *r, struct attempt *t)
{
        const struct sim_job *j = &r->w->jobs[t->job];
        struct set one = {0};
        struct core_attempts at = {t->request, t->fence, &one};
        double ms = (double)j->run_ms / t->place->cluster->speed;

        t->state = ATTEMPT_RUNNING;
        t->run_from = run_now(r);
        t->run_to = t->run_from + (ms < 1 ? 1 : (int64_t)ms);
        r->times[t->job].started = t->run_from;
        if (r->lost_at[t->job]) {
                r->m->recovery_s += (double)(run_now(r) - r->lost_at[t->job]) / 1000;
                r->m->recovered++;
                r->lost_at[t->job] = 0;
        }
        if (r->guesses)
                sim_guess_started(r->guesses, t->job, t->place->cluster_index, &r->times[t->job]);
        r->waiting--;
        run_timer_set(r, &t->timer, t->run_to);
        set_add(&one, t->member);
        core_started(sim_world_core(r->world), t->place->name, &at, t->run_from);
        set_deinit(&one);
}

static void fetch_begin(struct run *r, struct attempt *t, uint32_t file)
{
        struct place *p = t->place;
        struct fetch *f = idmap_get(p->fetches, file);
        uint32_t store = r->w->files[file].cluster;

        if (!f) {
                struct run_pipe *pipe = pipe_to(r, p, store);

                f = mem_new(struct fetch);
                f->place = p;
                f->file = file;
                idmap_put(p->fetches, file, f);
                sim_pipe_add(&pipe->pipe, &f->flow, r->w->files[file].bytes, run_now(r));
                pipe_changed(r, pipe);
                r->m->bytes_in += r->w->files[file].bytes;
                if (store != p->cluster_index)
                        r->m->bytes_far += r->w->files[file].bytes;
                t->bytes_in += r->w->files[file].bytes;
        }
        MEM_GROW(f->waiters, f->cap, f->count + 1);
        f->waiters[f->count++] = t;
        t->fetches++;
}

static void attempt_fetch(struct run *r, struct attempt *t)
{
        const struct sim_job *j = &r->w->jobs[t->job];

        t->state = ATTEMPT_FETCHING;
        for (uint32_t i = 0; i < j->inputs.count; i++) {
                uint32_t file = r->w->refs[j->inputs.first + i];

                if (cache_policy_pin(&t->place->cache, r->file_ids[file]))
                        r->m->bytes_cached += r->w->files[file].bytes;
                else
                        fetch_begin(r, t, file);
        }
        if (t->fetches == 0)
                attempt_run(r, t);
}

/* Puts off a report of an agent that is cut off until it is connected again. Returns whether it was put off.
 */
static bool waits_for_network(struct run *r, struct attempt *t)
{
        if (!t->place->cut_until)
                return false;
        run_timer_set(r, &t->timer, t->place->cut_until + 1);
        return true;
}

static void fetch_ended(struct run *r, struct fetch *f)
{
        struct place *p = f->place;

        cache_put(r, p, f->file);
        for (uint32_t i = 0; i < f->count; i++) {
                struct attempt *t = f->waiters[i];

                cache_policy_pin(&p->cache, r->file_ids[f->file]);
                if (--t->fetches == 0 && !waits_for_network(r, t))
                        attempt_run(r, t);
        }
        fetch_free(r, f);
}

static void attempt_report(struct run *r, struct attempt *t)
{
        const struct sim_job *j = &r->w->jobs[t->job];
        struct place *p = t->place;
        uint64_t out = 0;
        uint32_t job = t->job;
        struct core_result result = {.request = t->request,
                                     .member = t->member,
                                     .fence = t->fence,
                                     .outcome = CORE_EXITED,
                                     .started_ms = t->run_from,
                                     .ended_ms = t->run_to,
                                     .cpu_user_ms = j->cpus * (t->run_to - t->run_from),
                                     .bytes_in = t->bytes_in};

        for (uint32_t i = 0; i < j->outputs.count; i++) {
                uint32_t file = r->w->refs[j->outputs.first + i];

                out += r->w->files[file].bytes;
                cache_put(r, p, file);
        }
        for (uint32_t i = 0; i < j->inputs.count; i++)
                cache_policy_unpin(&p->cache, r->file_ids[r->w->refs[j->inputs.first + i]]);
        result.bytes_out = out;
        attempt_takes_energy(r, t, t->run_to);
        r->used_cpu_s += (double)j->cpus * (double)(t->run_to - t->run_from) / 1000;
        p->free_cpus += j->cpus;
        p->free_memory_mib += j->memory_mib;
        p->offer_wanted = true;
        make_dirty(r, p);
        attempt_free(r, t);
        if (core_result(sim_world_core(r->world), p->name, &result)) {
                r->times[job].ended = run_now(r);
                r->times[job].cluster = p->cluster_index;
                r->times[job].bytes_in = result.bytes_in;
                if (r->guesses)
                        sim_guess_ended(r->guesses, job, r->times[job].ended - r->times[job].started);
                run_job_ended(r, job);
        } else {
                r->waiting++;
        }
}

static void attempt_send(struct run *r, struct attempt *t)
{
        const struct sim_job *j = &r->w->jobs[t->job];
        struct run_pipe *pipe = pipe_to(r, t->place, j->home);
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < j->outputs.count; i++)
                bytes += r->w->files[r->w->refs[j->outputs.first + i]].bytes;
        if (bytes == 0) {
                attempt_report(r, t);
                return;
        }
        t->state = ATTEMPT_SENDING;
        sim_pipe_add(&pipe->pipe, &t->sending, bytes, run_now(r));
        pipe_changed(r, pipe);
        r->m->bytes_out += bytes;
        if (j->home != t->place->cluster_index)
                r->m->bytes_far += bytes;
}

void run_attempt_timer(struct run *r, struct attempt *t)
{
        if (waits_for_network(r, t))
                return;
        switch (t->state) {
        case ATTEMPT_DELAYED: attempt_fetch(r, t); break;
        case ATTEMPT_FETCHING: attempt_run(r, t); break;
        case ATTEMPT_SENDING: attempt_report(r, t); break;
        default: attempt_send(r, t); break;
        }
}

static void sent(struct run *r, struct attempt *t)
{
        if (!waits_for_network(r, t))
                attempt_report(r, t);
}

void run_pipe_timer(struct run *r, struct run_pipe *p)
{
        struct sim_flow *f;

        while ((f = sim_pipe_ended(&p->pipe, run_now(r))))
                if (f->sends)
                        sent(r, container_of(f, struct attempt, sending));
                else
                        fetch_ended(r, container_of(f, struct fetch, flow));
        pipe_changed(r, p);
}

/* ---- messages to an agent */
static void attempt_begin(struct run *r, struct attempt *t)
{
        const struct place *p = t->place;

        t->state = ATTEMPT_DELAYED;
        if (p->cluster->start_delay_ms)
                run_timer_set(r, &t->timer,
                              run_now(r) + (int64_t)sim_random_exponential(
                                                   &r->random, (double)p->cluster->start_delay_ms));
        else
                attempt_fetch(r, t);
}

static struct attempt *attempt_new(struct run *r, struct place *p, const struct sim_action *a,
                                   uint32_t member)
{
        struct attempt *t = mem_new(struct attempt);
        const struct sim_job *j;

        *t = (struct attempt){.timer = {.kind = TIMER_ATTEMPT},
                              .sending = {.sends = true},
                              .place = p,
                              .request = a->request,
                              .member = member,
                              .fence = a->fence,
                              .job = r->first_of[a->request] + member,
                              .next = p->attempts};
        if (p->attempts)
                p->attempts->prev = t;
        p->attempts = t;
        r->held++;
        j = &r->w->jobs[t->job];
        if (j->cpus > p->free_cpus || j->memory_mib > p->free_memory_mib)
                sim_world_violation(r->world, "%s was given more than it has", p->name);
        p->free_cpus -= j->cpus;
        p->free_memory_mib -= j->memory_mib;
        r->m->decisions++;
        run_gangs_given(r, t->job);
        return t;
}

/* The rest of its gang has stopped, or will never start. */
static void attempt_vacate(struct run *r, struct attempt *t)
{
        const struct sim_job *j = &r->w->jobs[t->job];
        struct place *p = t->place;
        const struct core_result result = {
                .request = t->request, .member = t->member, .fence = t->fence, .outcome = CORE_KILLED};
        void *value;

        for (size_t at = 0; idmap_next(p->fetches, &at, NULL, &value);) {
                struct fetch *f = value;

                for (uint32_t i = 0; i < f->count; i++)
                        if (f->waiters[i] == t)
                                f->waiters[i--] = f->waiters[--f->count];
        }
        attempt_lost(r, t);
        p->free_cpus += j->cpus;
        p->free_memory_mib += j->memory_mib;
        p->offer_wanted = true;
        make_dirty(r, p);
        attempt_free(r, t);
        core_result(sim_world_core(r->world), p->name, &result);
        r->again = true;
}

static void go_or_stop(struct run *r, struct place *p, const struct sim_action *a)
{
        for (struct attempt *t = p->attempts, *next; t; t = next) {
                next = t->next;
                if (t->request != a->request || t->fence != a->fence || !set_has(&a->members, t->member))
                        continue;
                if (a->kind == SIM_CONTROL) {
                        attempt_vacate(r, t);
                } else if (t->state == ATTEMPT_WAITING) {
                        run_gangs_start(r, t->request, t->member);
                        attempt_begin(r, t);
                }
        }
}

void run_place_take(struct run *r, struct place *p, const struct sim_action *a)
{
        struct core_attempts at = {a->request, a->fence, &a->members};

        if (!p->up || p->cut_until || a->session != p->session)
                return;
        if (a->kind == SIM_GO ||
            (a->kind == SIM_CONTROL && (a->control <= CORE_VACATE || a->control == CORE_END)))
                go_or_stop(r, p, a);
        if (a->kind != SIM_ASSIGN)
                return;
        core_accepted(sim_world_core(r->world), p->name, &at);
        r->again |= a->gang_size > 0;
        SET_FOREACH (&a->members, m) {
                struct attempt *t = attempt_new(r, p, a, (uint32_t)m);

                if (a->gang_size == 0)
                        attempt_begin(r, t);
        }
}
