/* drover sim: the simulator's command. It is a program of its own, drover-sim, so that `drover` stays
 * small and starts quickly; both read their arguments by the same row of the table of commands. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "cli/command/commands.h"
#include "cli/sim/study.h"
#include "cli/terminal/human.h"
#include "sim/game.h"

#define REPEATS_MAX 10000

/* ---- simulations with faults */
static int play_games(struct cli *cli, const struct options *o)
{
        int64_t seeds = options_number(o, "seeds", 1), steps = options_number(o, "steps", 700);
        struct sim_game_options game = {.seed = (uint64_t)options_number(o, "seed", 1),
                                        .trace = options_flag(o, "verbose") ? stdout : NULL};

        if (o->word_count)
                return cli_error(CLI_USAGE, "--faults plays games of its own: it takes no trace");
        if (options_text(o, "repeats"))
                return cli_error(CLI_USAGE, "--repeats is for workloads; several games are --seeds");
        if (seeds < 1 || steps < 1 || steps > 1000000)
                return cli_error(CLI_USAGE, "--seeds must be above 0, and --steps from 1 to 1000000");
        game.steps = (unsigned)steps;
        for (int64_t i = 0; i < seeds; i++, game.seed++) {
                struct sim_game_counts n;
                struct err err;

                if (sim_game_play(&game, &n, &err))
                        return cli_error(CLI_FAILED,
                                         "%s; `drover sim --faults --seed %" PRIu64
                                         " --steps %u` plays it again",
                                         err.text, game.seed, game.steps);
                if (!cli->json)
                        printf("seed %" PRIu64 ": %" PRIu64 " jobs, %" PRIu64
                               " restarts of the server, %" PRIu64 " agents lost, %" PRIu64
                               " results refused as old: all invariants hold\n",
                               game.seed, n.ended, n.restarts, n.losses, n.refused_old);
                fflush(stdout);
        }
        if (cli->json)
                printf("{\"seeds\":%" PRId64 ",\"first\":%" PRId64 ",\"steps\":%u,\"violations\":0}\n", seeds,
                       options_number(o, "seed", 1), game.steps);
        return CLI_OK;
}

/* ---- studies */
struct shown {
        const char *policy;
        bool terminal, any;
};

static void show_progress(void *arg, const struct sim_progress *p)
{
        struct shown *s = arg;
        struct buf line BUF_CLEANUP = {0};

        if (!s->terminal)
                return;
        buf_printf(&line, "\r\033[K%s: %" PRIu64 " of %" PRIu64 " jobs ended, %" PRIu64 " wait, after ",
                   s->policy, p->ended, p->jobs, p->waiting);
        human_duration(&line, p->now_ms);
        fwrite(line.p, 1, line.n, stderr);
        fflush(stderr);
        s->any = true;
}

static int run_one(const struct study *s, const struct study_policy *p, struct shown *shown,
                   struct study_result *ret, struct err *err)
{
        struct sim_reference_options re = {.site = &s->site,
                                           .workload = &s->workload,
                                           .scheduler = p->reference,
                                           .times = ret->times,
                                           .progress = show_progress,
                                           .arg = shown};
        struct sim_run_options ro = {.site = &s->site,
                                     .workload = &s->workload,
                                     .placement = p->placement,
                                     .seed = s->seed,
                                     .lease_ms = s->lease_ms,
                                     .better_wait_ms = s->better_wait_ms,
                                     .reserve_after_ms = s->reserve_after_ms,
                                     .reserve_idle = s->reserve_idle,
                                     .guesses = s->guesses,
                                     .times = ret->times,
                                     .progress = show_progress,
                                     .arg = shown};

        return p->is_reference ? sim_reference_run(&re, &ret->m, err) : sim_run(&ro, &ret->m, err);
}

static int run_all(struct study *s, bool times)
{
        for (size_t i = 0; i < s->policy_count; i++) {
                struct shown shown = {s->policies[i]->name, isatty(STDERR_FILENO) == 1, false};
                struct study_result *result = &s->results[s->result_count];
                struct err err;
                int r;

                if (times)
                        result->times = mem_array(NULL, s->workload.job_count + 1, sizeof(*result->times));
                r = run_one(s, s->policies[i], &shown, result, &err);
                if (shown.any)
                        fputs("\r\033[K", stderr);
                if (r)
                        return cli_error(r < 0 ? CLI_USAGE : CLI_FAILED, "%s: %s", shown.policy, err.text);
                result->policy = shown.policy;
                s->result_count++;
        }
        return CLI_OK;
}

/* Runs the same study with several seeds: other jobs if they are generated, otherwise other files and
 * failures. */
static int repeat_study(struct cli *cli, const struct options *o)
{
        static const char *const of_one[] = {"plot", "write-jobs", "gantt", "eta"};
        int64_t repeats = options_number(o, "repeats", 0);
        struct study_repeats *all;
        int code = CLI_OK;

        if (repeats < 2 || repeats > REPEATS_MAX)
                return cli_error(CLI_USAGE, "--repeats must be from 2 to %d", REPEATS_MAX);
        for (size_t i = 0; i < sizeof(of_one) / sizeof(of_one[0]); i++)
                if (options_text(o, of_one[i]) || options_flag(o, of_one[i]))
                        return cli_error(CLI_USAGE, "--%s is for one run: it goes without --repeats",
                                         of_one[i]);
        all = study_repeats_new();
        for (uint32_t i = 0; i < repeats && code == CLI_OK; i++) {
                struct study s = {.repeat = i};

                code = study_read(&s, o);
                if (code == CLI_OK)
                        code = run_all(&s, false);
                if (code == CLI_OK)
                        study_repeats_add(all, &s);
                study_deinit(&s);
        }
        if (code == CLI_OK && cli->json)
                study_repeats_print_json(all);
        else if (code == CLI_OK)
                study_repeats_print_table(cli, all);
        study_repeats_free(all);
        return code;
}

int cmd_sim_run(struct cli *cli, const struct options *o)
{
        const char *plot = options_text(o, "plot"), *jobs = options_text(o, "write-jobs"),
                   *gantt = options_text(o, "gantt");
        struct study s = {.seed = 1};
        int code;

        map_fix_order(); /* the same seed gives the same decisions */
        if (options_flag(o, "faults"))
                return play_games(cli, o);
        if (options_text(o, "repeats"))
                return repeat_study(cli, o);
        code = study_read(&s, o);
        if (code == CLI_OK && plot)
                code = study_file_check(plot);
        if (code == CLI_OK && jobs)
                code = study_file_check(jobs);
        if (code == CLI_OK && gantt)
                code = study_file_check(gantt);
        if (code == CLI_OK)
                code = run_all(&s, jobs || gantt);
        if (code == CLI_OK) {
                if (cli->json)
                        study_print_json(&s);
                else
                        study_print_table(cli, &s);
                if (plot)
                        code = study_plot(&s, plot);
                if (code == CLI_OK && jobs)
                        code = study_write_jobs(&s, jobs);
                if (code == CLI_OK && gantt)
                        code = study_gantt(&s, gantt);
        }
        study_deinit(&s);
        return code;
}
