/* The screen is made anew from the server's answers each time. A server that does not answer is a
 * line on the screen: the user may wait for it to come back. Everything that others have written goes through
 * tables or human_safe. */
#include "cli/top/top.h"

#include <locale.h>
#include <ncurses.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/terminal/human.h"

#define LOOK_MS      2000
#define REQUESTS_MAX 1000
#define HELD_NAMED   5
#define CONTROL_L    12 /* draws all of the screen again */

static const struct table_column request_columns[] = {
        {"ID", true, false},   {"OWNER", false, true}, {"JOBS", true, false},
        {"IDLE", true, false}, {"RUN", true, false},   {"HELD", true, false},
        {"DONE", true, false}, {"FAIL", true, false},  {"COMMAND", false, true}};
static const struct table_column place_columns[] = {{"AGENT", false, true},
                                                    {"QUEUE", false, true},
                                                    {"STATE", false, false},
                                                    {"CPUS", true, false},
                                                    {"RUN", true, false}};

struct top {
        struct cli *cli;
        struct table requests, places;
        uint64_t ids[REQUESTS_MAX];
        int64_t jobs[REQUESTS_MAX];
        size_t count, selected;
        struct buf problems; /* a line each */
        struct buf message;  /* what the last key did, or what went wrong */
        int64_t idle, running, held;
};

static void message_show(struct top *t, const char *text)
{
        buf_reset(&t->message);
        human_safe(&t->message, str_of(text));
}

static bool ask_server(struct top *t, const char *path, struct api_answer *ret)
{
        struct err err = {""};

        if (api_call(t->cli, &(struct api_request){.path = path, .timeout_ms = 10000}, ret, &err) == 0)
                return true;
        message_show(t, err.text);
        return false;
}

static void add_problem(struct top *t, struct view name, const char *words, struct view why)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(name, &text);
        buf_addz(&text, words);
        view_text(why, &text);
        human_safe(&t->problems, buf_view(&text));
        buf_char(&t->problems, '\n');
}

static void add_request(struct top *t, struct view r)
{
        struct buf text BUF_CLEANUP = {0};
        struct request_row row;

        request_read(r, &row);
        t->ids[t->count] = (uint64_t)view_integer(row.id, 0);
        t->jobs[t->count++] = view_integer(row.jobs, 0);
        t->idle += view_integer(row.idle, 0);
        t->running += view_integer(row.running, 0);
        t->held += view_integer(row.held, 0);
        table_view(&t->requests, row.id);
        table_view(&t->requests, row.owner);
        table_view(&t->requests, row.jobs);
        table_view(&t->requests, row.idle);
        table_view(&t->requests, row.running);
        table_view(&t->requests, row.held);
        table_view(&t->requests, row.completed);
        table_view(&t->requests, row.failed);
        request_name(&row, &text);
        table_text(&t->requests, buf_view(&text));
}

/* Requests are shown in this order: those with running jobs, others with held ones, the rest. */
static unsigned request_rank(struct view r)
{
        if (view_integer(view_get(r, "running"), 0) > 0)
                return 0;
        return view_integer(view_get(r, "held"), 0) > 0 ? 1 : 2;
}

/* One line for the held jobs of all requests, which the first ones stand for. */
static void add_held(struct top *t, struct view requests)
{
        struct buf ids BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        unsigned count = 0;
        struct view r;
        size_t at = 0;

        while (view_next(requests, &at, &r)) {
                if (view_integer(view_get(r, "held"), 0) <= 0 || count++ >= HELD_NAMED)
                        continue;
                buf_addz(&ids, count > 1 ? ", " : "");
                view_text(view_get(r, "id"), &ids);
        }
        if (count == 0)
                return;
        human_count(&text, t->held, "job", "jobs");
        buf_printf(&text, " held (" STR_FMT "%s): w tells why, r releases them\n", STR_ARG(buf_view(&ids)),
                   count > HELD_NAMED ? ", …" : "");
        buf_str(&t->problems, buf_view(&text));
}

static const char *state_of(struct view agent, struct view queue)
{
        if (view_there(view_get(agent, "drained")))
                return "drained";
        if (!view_is(view_get(agent, "state"), "connected"))
                return "away";
        if (view_there(view_get(queue, "unreachable")))
                return "unreachable";
        return view_there(view_get(queue, "closed")) ? "closed" : "open";
}

static void add_queue(struct top *t, struct view agent, struct view queue)
{
        struct buf text BUF_CLEANUP = {0};
        const char *state = state_of(agent, queue);

        table_view(&t->places, view_get(agent, "name"));
        table_view(&t->places, view_get(queue, "name"));
        table_text(&t->places, str_of(state));
        if (view_integer(view_get(view_get(queue, "total"), "cpus"), 0) > 0) {
                view_text(view_get(view_get(queue, "free"), "cpus"), &text);
                buf_char(&text, '/');
                view_text(view_get(view_get(queue, "total"), "cpus"), &text);
        }
        table_text(&t->places, buf_view(&text));
        table_view(&t->places, view_get(queue, "running"));
        if (str_eqz(str_of(state), "away"))
                add_problem(t, view_get(agent, "name"), " is not connected", (struct view){STR_NONE});
        else if (str_eqz(str_of(state), "drained"))
                add_problem(t, view_get(agent, "name"), ": ", view_get(agent, "drained"));
        else if (!str_eqz(str_of(state), "open"))
                add_problem(t, view_get(agent, "name"), ": ", view_get(queue, state));
}

static void tables_init(struct top *t)
{
        table_init(&t->requests, request_columns, sizeof(request_columns) / sizeof(request_columns[0]));
        table_init(&t->places, place_columns, sizeof(place_columns) / sizeof(place_columns[0]));
}

static void tables_deinit(struct top *t)
{
        table_deinit(&t->requests);
        table_deinit(&t->places);
}

/* The rows of before stay when the server does not answer. */
static void look_at_server(struct top *t)
{
        struct api_answer requests API_ANSWER_CLEANUP = {0}, agents API_ANSWER_CLEANUP = {0};
        uint64_t was = t->count ? t->ids[t->selected] : 0;
        struct view list, item, queue;
        size_t at = 0, inner;

        if (!ask_server(t, "/v1/requests?limit=1000", &requests) || !ask_server(t, "/v1/agents", &agents))
                return;
        list = view_get(requests.root, "requests");
        tables_deinit(t);
        tables_init(t);
        buf_reset(&t->problems);
        t->idle = t->running = t->held = 0;
        t->count = t->selected = 0;
        for (unsigned rank = 0; rank <= 2; rank++, at = 0)
                while (t->count < REQUESTS_MAX && view_next(list, &at, &item)) {
                        if (request_rank(item) != rank)
                                continue;
                        add_request(t, item);
                        if (t->ids[t->count - 1] == was)
                                t->selected = t->count - 1;
                }
        add_held(t, list);
        for (at = 0; view_next(view_get(agents.root, "agents"), &at, &item);)
                for (inner = 0; view_next(view_get(item, "queues"), &inner, &queue);)
                        add_queue(t, item, queue);
}

/* ---- drawing */

static void draw_line(int y, struct str line, int how)
{
        move(y, 0);
        clrtoeol();
        attron(how);
        addnstr(line.p ? line.p : "", (int)line.n);
        attroff(how);
}

/* The lines of a table from y on, its titles first, `first` rows left out; at most `lines`. Returns the next
 * y. */
static int draw_table(const struct table *table, int y, int lines, size_t first, size_t marked)
{
        struct buf text BUF_CLEANUP = {0};
        struct table copy = *table;
        struct str rest, line;

        copy.width = COLS > 0 ? (unsigned)COLS : 80;
        table_print(&copy, &text);
        rest = buf_view(&text);
        for (size_t row = 0; lines > 0 && rest.n && str_cut(&rest, '\n', &line); row++) {
                if (row > 0 && row <= first)
                        continue;
                draw_line(y++, line, row == 0 ? A_BOLD : row == marked + 1 ? A_REVERSE : A_NORMAL);
                lines--;
        }
        return y;
}

static int draw_problems(struct top *t, int y, int end)
{
        struct str rest = buf_view(&t->problems), line;

        if (rest.n == 0)
                return y;
        draw_line(y++, STR("PROBLEMS"), A_BOLD);
        while (y < end && rest.n && str_cut(&rest, '\n', &line))
                draw_line(y++, line, A_NORMAL);
        return y;
}

static void draw(struct top *t)
{
        struct buf head BUF_CLEANUP = {0};
        int rows = LINES - 4, places = rows / 3, y = 2;
        int list = rows - places - (t->problems.n ? rows / 4 : 0);
        size_t page = list > 2 ? (size_t)list - 1 : 1,
               first = t->selected >= page ? t->selected - page + 1 : 0;

        erase();
        buf_addz(&head, "drover: ");
        human_count(&head, (int64_t)t->count, "request, ", "requests, ");
        human_count(&head, t->idle, "job idle", "jobs idle");
        buf_printf(&head, ", %lld running, %lld held", (long long)t->running, (long long)t->held);
        draw_line(0, buf_view(&head), A_BOLD);
        y = draw_table(&t->requests, y, list, first, t->selected) + 1;
        y = draw_table(&t->places, y, places, 0, SIZE_MAX - 1) + 1;
        draw_problems(t, y, LINES - 2);
        draw_line(LINES - 2, buf_view(&t->message), A_NORMAL);
        draw_line(LINES - 1, STR("up, down  h hold  r release  d rm  w why  q quit"), A_DIM);
        refresh();
}

/* ---- keys */

static void act_on_request(struct top *t, const char *action, const char *done)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        struct err err = {""};
        uint64_t id = t->ids[t->selected];
        struct view error = {STR_NONE};

        buf_printf(&body, "{\"action\":\"%s\",\"ids\":[\"%llu\"]}", action, (unsigned long long)id);
        if (api_call(t->cli,
                     &(struct api_request){.method = "POST", .path = "/v1/actions", .body = buf_view(&body)},
                     &answer, &err) != 0) {
                message_show(t, err.text);
                return;
        }
        buf_printf(&text, "request %llu: ", (unsigned long long)id);
        human_count(&text, view_integer(view_get(answer.root, "affected"), 0), "job ", "jobs ");
        buf_addz(&text, done);
        if (view_next(view_get(answer.root, "errors"), &(size_t){0}, &error)) {
                buf_addz(&text, "; ");
                view_text(view_get(error, "message"), &text);
        }
        message_show(t, buf_z(&text));
        look_at_server(t);
}

static void remove_selected(struct top *t)
{
        struct buf text BUF_CLEANUP = {0};
        int key;

        buf_printf(&text, "Remove request %llu and all of its jobs (%lld)? y/n",
                   (unsigned long long)t->ids[t->selected], (long long)t->jobs[t->selected]);
        message_show(t, buf_z(&text));
        draw(t);
        timeout(-1);
        key = getch();
        timeout(LOOK_MS);
        message_show(t, "");
        if (key == 'y' || key == 'Y')
                act_on_request(t, "remove", "removed");
}

/* Why the first job of the request that waits does so, over the screen until a key. */
static void show_why(struct top *t)
{
        struct api_answer jobs API_ANSWER_CLEANUP = {0}, why API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        struct view job, line;
        size_t at = 0;
        int y = 1;

        buf_printf(&path, "/v1/jobs?id=%llu&state=idle,held&limit=1",
                   (unsigned long long)t->ids[t->selected]);
        if (!ask_server(t, buf_z(&path), &jobs))
                return;
        if (!view_next(view_get(jobs.root, "jobs"), &at, &job)) {
                message_show(t, "none of its jobs waits");
                return;
        }
        buf_reset(&path);
        buf_addz(&path, "/v1/jobs/");
        view_text(view_get(job, "id"), &path);
        buf_addz(&path, "/why");
        if (!ask_server(t, buf_z(&path), &why))
                return;
        clear();
        view_text(view_get(job, "id"), &text);
        draw_line(0, buf_view(&text), A_BOLD);
        for (at = 0; y < LINES - 1 && view_next(view_get(why.root, "text"), &at, &line); y++) {
                struct buf raw BUF_CLEANUP = {0};

                view_text(line, &raw);
                buf_reset(&text);
                human_safe(&text, buf_view(&raw));
                draw_line(y, buf_view(&text), A_NORMAL);
                y = getcury(stdscr);
        }
        draw_line(LINES - 1, STR("any key goes back"), A_DIM);
        refresh();
        timeout(-1);
        getch();
        timeout(LOOK_MS);
        clearok(stdscr, TRUE);
}

/* False: the user leaves. */
static bool take_key(struct top *t, int key)
{
        if (key == 'q')
                return false;
        if (key == ERR || key == KEY_RESIZE)
                return true;
        if (key == CONTROL_L) {
                clearok(stdscr, TRUE);
                return true;
        }
        message_show(t, "");
        if ((key == KEY_DOWN || key == 'j') && t->selected + 1 < t->count)
                t->selected++;
        else if ((key == KEY_UP || key == 'k') && t->selected > 0)
                t->selected--;
        else if (t->count == 0)
                return true;
        else if (key == 'h')
                act_on_request(t, "hold", "held");
        else if (key == 'r')
                act_on_request(t, "release", "released");
        else if (key == 'd')
                remove_selected(t);
        else if (key == 'w')
                show_why(t);
        return true;
}

int top_run(struct cli *cli)
{
        struct top *t = mem_new(struct top);
        int64_t due_ms = 0;

        t->cli = cli;
        tables_init(t);
        setlocale(LC_CTYPE, "");
        if (!newterm(NULL, stdout, stdin)) {
                tables_deinit(t);
                free(t);
                return cli_error(CLI_FAILED,
                                 "this terminal is not known: set TERM, or use `drover queue --watch`");
        }
        cbreak();
        noecho();
        keypad(stdscr, TRUE);
        curs_set(0);
        timeout(LOOK_MS);
        do {
                if (clock_boot_ms() >= due_ms) {
                        look_at_server(t);
                        due_ms = clock_boot_ms() + LOOK_MS;
                }
                draw(t);
        } while (take_key(t, getch()));
        endwin();
        tables_deinit(t);
        buf_deinit(&t->problems);
        buf_deinit(&t->message);
        free(t);
        return CLI_OK;
}
