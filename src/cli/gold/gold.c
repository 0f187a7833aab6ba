#include "cli/gold/gold.h"

#include <fnmatch.h>
#include <stdio.h>
#include <time.h>

#include "base/format/url.h"
#include "cli/terminal/human.h"

#define LOOKS_LIKE "2.2.0.5" /* version of Gold whose options and columns are imitated */
#define HOUR       3600

void gold_version_print(void)
{
        printf("Gold version " LOOKS_LIKE " (Drover " DROVER_VERSION ")\n");
}

void gold_say(const struct words *w, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {0};
        va_list ap;

        if (words_has(w, "quiet"))
                return;
        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        buf_char(&text, '\n');
        cli_print(&text);
}

int gold_time(const struct words *w, const char *option, int64_t *ret_ms)
{
        const char *text = words_text(w, option);
        struct err err = {""};

        if (!text)
                return 0;
        if (str_ieqz(str_of(text), "-infinity"))
                *ret_ms = 0;
        else if (str_ieqz(str_of(text), "infinity"))
                *ret_ms = INT64_MAX;
        else if (human_to_time(text, (int64_t)time(NULL) * 1000, ret_ms, &err) != 0)
                return cli_error(1, "--%s: %s", option, err.text);
        return 0;
}

static bool in_hours(const struct words *w)
{
        for (size_t i = 0; w->tool->rows[i].name || w->tool->rows[i].letter; i++)
                if (w->tool->rows[i].letter == 'h')
                        return words_has(w, "hours");
        return false;
}

int gold_amount(const struct words *w, const char *text, int64_t *ret)
{
        double hours;

        if (in_hours(w) && str_to_double(str_of(text), &hours) == 0 && hours >= 0 && hours < 1e14)
                *ret = (int64_t)(hours * HOUR + 0.5);
        else if (in_hours(w) || str_to_i64(str_of(text), ret) != 0 || *ret < 0)
                return cli_error(1, "'%s' is not an amount: it must be a whole number of credits%s", text,
                                 in_hours(w) ? ", or a number of hours" : "");
        return 0;
}

int gold_user(struct cli *cli, const char *name, struct buf *ret)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        int code = 0;

        buf_addz(ret, name);
        if (strchr(name, '@') || strcmp(name, "*") == 0)
                return 0;
        code = api_get(cli, "/v1/server", &answer);
        if (code != 0)
                return 1;
        buf_char(ret, '@');
        view_text(view_get(answer.root, "domain"), ret);
        return 0;
}

static const char *option_if_there(const struct words *w, const char *name)
{
        for (size_t i = 0; w->tool->rows[i].name || w->tool->rows[i].letter; i++)
                if (w->tool->rows[i].name && strcmp(w->tool->rows[i].name, name) == 0)
                        return words_text(w, name);
        return NULL;
}

const char *gold_account(const struct words *w)
{
        const char *name = option_if_there(w, "account");

        if (!name)
                name = option_if_there(w, "project");
        return name ? name : w->word_count ? w->words[0] : NULL;
}

void gold_order(struct gold_order *o, const char *op)
{
        *o = (struct gold_order){.j.out = &o->body};
        json_open(&o->j, '{');
        json_kstrz(&o->j, "op", op);
}

void gold_order_text(struct gold_order *o, const char *key, const char *text)
{
        if (text)
                json_kstrz(&o->j, key, text);
}

int gold_order_send(struct cli *cli, struct gold_order *o, struct api_answer *ret)
{
        int code;

        json_close(&o->j, '}');
        code = api_post(cli, "/v1/bank/orders", buf_view(&o->body), ret);
        buf_deinit(&o->body);
        return code ? 1 : 0;
}

int gold_table(const struct words *w, struct table *t, const struct table_column *columns, unsigned count)
{
        const char *show = words_text(w, "show");
        struct table_form form = {
                .columns = show, .bare = words_has(w, "quiet"), .ruled = true, .raw = words_has(w, "raw")};
        struct err err = {""};

        table_init(t, columns, count);
        return table_set_form(t, &form, &err) == 0 ? 0 : cli_error(1, "--show: %s", err.text);
}

void gold_table_print(struct cli *cli, struct table *t)
{
        BUF_CLEANUP struct buf out = {0};

        (void)cli;
        table_print(t, &out);
        cli_print(&out);
        table_deinit(t);
}

void gold_date(struct table *t, int64_t ms, const char *otherwise)
{
        time_t s = (time_t)(ms / 1000);
        char text[40];
        struct tm tm;

        if (ms == 0 || !localtime_r(&s, &tm) || strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) == 0)
                table_text(t, str_of(otherwise));
        else
                table_text(t, str_of(text));
}

void gold_units(const struct words *w, struct table *t, int64_t amount)
{
        if (in_hours(w))
                table_format(t, "%.2f", (double)amount / HOUR);
        else
                table_format(t, "%lld", (long long)amount);
}

bool gold_matches_text(const char *pattern, const char *text)
{
        return !pattern || fnmatch(pattern, text, 0) == 0;
}

bool gold_matches(const char *pattern, struct view text)
{
        BUF_CLEANUP struct buf name = {0};

        view_text(text, &name);
        return gold_matches_text(pattern, buf_z(&name));
}

int gold_movements(struct cli *cli, struct str account, int64_t from_ms, int64_t to_ms,
                   int (*fn)(void *arg, struct view movement), void *arg)
{
        BUF_CLEANUP struct buf path = {0};
        char number[24];
        int code;

        buf_addz(&path, "/v1/bank/accounts/");
        url_escape(&path, account);
        buf_addz(&path, "/statement");
        if (from_ms > 0) {
                snprintf(number, sizeof(number), "%lld", (long long)from_ms);
                api_query(&path, "from_ms", str_of(number));
        }
        if (to_ms > 0 && to_ms < INT64_MAX) {
                snprintf(number, sizeof(number), "%lld", (long long)to_ms);
                api_query(&path, "to_ms", str_of(number));
        }
        code = api_list(
                cli, &(struct api_list){
                             .path = &path, .array = "movements", .cursor = "after", .each = fn, .arg = arg});
        return code ? 1 : 0;
}

int gold_lien(struct cli *cli, const char *job, const char *account, const char *user, int64_t *ret)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf principal = {0};
        unsigned found = 0, own = 0;
        struct view list, lien;
        int64_t any = 0;
        int code = user ? gold_user(cli, user, &principal) : 0;

        *ret = 0;
        if (code == 0)
                code = api_get(cli, "/v1/bank/reserved", &answer);
        if (code != 0)
                return 1;
        list = view_get(answer.root, "liens");
        for (size_t at = 0; view_next(list, &at, &lien);) {
                BUF_CLEANUP struct buf its = {0}, name = {0}, whose = {0};

                if (view_there(view_get(lien, "request")))
                        continue; /* of a job of Drover's */
                view_text(view_get(lien, "job_name"), &its);
                view_text(view_get(lien, "account"), &name);
                view_text(view_get(lien, "user"), &whose);
                if (!str_eqz(buf_view(&its), job) || (account && !str_eqz(buf_view(&name), account)))
                        continue;
                found++;
                any = view_integer(view_get(lien, "id"), 0);
                if (user && str_eq(buf_view(&whose), buf_view(&principal))) {
                        own++;
                        *ret = any;
                }
        }
        if (found < 2)
                *ret = any;
        else if (own != 1)
                return cli_error(1,
                                 "%u reservations are for a job %s: give the number of one with -r, or its "
                                 "user with -u",
                                 found, job);
        return 0;
}
