/* Attributes are stored as they were given and interpreted when jobs are submitted, because paths may name
 * the working directory and times are relative to the time of the submit (GFD.133, 3.2.3). */
#include "cli/drmaa/template.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/mem.h"
#include "cli/drmaa/drmaa.h"
#include "jdl/script/script.h"

#define INCR_MACRO    "$(drmaa_incr)"
#define NOTHING_MACRO "$(drmaa_nothing:)" /* not defined, and empty then */

enum attribute {
        REMOTE_COMMAND,
        JS_STATE,
        WD,
        JOB_CATEGORY,
        NATIVE_SPECIFICATION,
        BLOCK_EMAIL,
        START_TIME,
        JOB_NAME,
        INPUT_PATH,
        OUTPUT_PATH,
        ERROR_PATH,
        JOIN_FILES,
        DEADLINE_TIME,
        WCT_HLIMIT,
        DURATION_HLIMIT,
        ATTRIBUTES,
};
static const char *const attribute_names[ATTRIBUTES] = {DRMAA_REMOTE_COMMAND,
                                                        DRMAA_JS_STATE,
                                                        DRMAA_WD,
                                                        DRMAA_JOB_CATEGORY,
                                                        DRMAA_NATIVE_SPECIFICATION,
                                                        DRMAA_BLOCK_EMAIL,
                                                        DRMAA_START_TIME,
                                                        DRMAA_JOB_NAME,
                                                        DRMAA_INPUT_PATH,
                                                        DRMAA_OUTPUT_PATH,
                                                        DRMAA_ERROR_PATH,
                                                        DRMAA_JOIN_FILES,
                                                        DRMAA_DEADLINE_TIME,
                                                        DRMAA_WCT_HLIMIT,
                                                        DRMAA_DURATION_HLIMIT};

enum vector { ARGV, ENV, EMAIL, VECTORS };
static const char *const vector_names[VECTORS] = {DRMAA_V_ARGV, DRMAA_V_ENV, DRMAA_V_EMAIL};

struct job_template {
        char *values[ATTRIBUTES]; /* NULL: not set */
        struct list *vectors[VECTORS];
};

struct job_template *job_template_new(void)
{
        return mem_zalloc(sizeof(struct job_template));
}

void job_template_free(struct job_template *t)
{
        if (!t)
                return;
        for (size_t i = 0; i < ATTRIBUTES; i++)
                free(t->values[i]);
        for (size_t i = 0; i < VECTORS; i++)
                list_free(t->vectors[i]);
        free(t);
}

void job_template_names(bool several, struct list *ret)
{
        for (size_t i = 0; i < (several ? (size_t)VECTORS : (size_t)ATTRIBUTES); i++)
                list_add(ret, several ? vector_names[i] : attribute_names[i]);
}

/* ---- values */

static int find_attribute(const char *const *names, size_t count, const char *name, size_t *ret,
                          struct err *err)
{
        for (*ret = 0; *ret < count; ++*ret)
                if (strcmp(names[*ret], name) == 0)
                        return DRMAA_ERRNO_SUCCESS;
        return err_set(err, DRMAA_ERRNO_INVALID_ARGUMENT,
                       "%.100s is no attribute of this kind that Drover has", name);
}

/* The day at the beginning of *p, if there is one: how much of it was named, 1 (the day of a month) to 3. */
static int read_day(const char **p, struct tm *tm)
{
        int n = 0, year, month, day, parts = 0;

        if (sscanf(*p, "%4d/%2d/%2d %n", &year, &month, &day, &n) == 3 && n) {
                tm->tm_year = year < 100 ? tm->tm_year - tm->tm_year % 100 + year : year - 1900;
                parts = 3;
        } else if (sscanf(*p, "%2d/%2d %n", &month, &day, &n) == 2 && n) {
                parts = 2;
        } else if (sscanf(*p, "%2d %n", &day, &n) == 1 && n && (*p)[n - 1] == ' ') {
                parts = 1;
        }
        if (parts == 0)
                return 0;
        if (parts > 1)
                tm->tm_mon = month - 1;
        tm->tm_mday = day;
        *p += n;
        return tm->tm_mon >= 0 && tm->tm_mon < 12 && day >= 1 && day <= 31 ? parts : -1;
}

static bool read_hours(const char **p, struct tm *tm)
{
        int n = 0;

        tm->tm_sec = 0;
        if (sscanf(*p, "%2d:%2d%n", &tm->tm_hour, &tm->tm_min, &n) != 2)
                return false;
        *p += n;
        n = 0;
        if (**p == ':' && (sscanf(*p, ":%2d%n", &tm->tm_sec, &n) != 1 || n == 0))
                return false;
        *p += n;
        return tm->tm_hour >= 0 && tm->tm_hour < 24 && tm->tm_min >= 0 && tm->tm_min < 60 &&
               tm->tm_sec >= 0 && tm->tm_sec <= 60;
}

bool job_template_time(const char *text, int64_t now_s, int64_t *ret)
{
        int day, n = 0, zone_hours, zone_minutes, east_s = 0;
        time_t t = (time_t)now_s;
        const char *p = text;
        bool zone = false;
        struct tm tm;
        char sign;

        localtime_r(&t, &tm);
        day = read_day(&p, &tm);
        if (day < 0 || !read_hours(&p, &tm))
                return false;
        if (sscanf(p, " %c%2d:%2d%n", &sign, &zone_hours, &zone_minutes, &n) == 3 && n &&
            strchr("+-", sign)) {
                zone = true;
                east_s = (sign == '-' ? -60 : 60) * (zone_hours * 60 + zone_minutes);
                p += n;
        }
        if (p[strspn(p, " ")])
                return false;
        tm.tm_isdst = -1;
        /* Parts of the day that were left out are the first ones to come: a later day, month or year. */
        for (int carry = 0; carry < 2; carry++) {
                struct tm copy = tm;

                t = zone ? timegm(&copy) - east_s : mktime(&copy);
                if (day == 3 || t >= now_s)
                        break;
                tm.tm_mday += day == 0;
                tm.tm_mon += day == 1;
                tm.tm_year += day == 2;
        }
        *ret = t;
        return true;
}

bool job_template_duration(const char *text, int64_t *ret)
{
        struct str rest = str_of(text), part;
        uint64_t n;
        int parts = 0;

        *ret = 0;
        while (str_cut(&rest, ':', &part)) {
                if (++parts > 3 || str_to_u64(part, &n) != 0 || n > 1000000000)
                        return false;
                *ret = *ret * 60 + (int64_t)n;
        }
        return parts > 0;
}

static int wrong(const char *name, const char *value, const char *want, struct err *err)
{
        return err_set(err, DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT, "%s cannot be \"%.200s\": it is %s", name,
                       value, want);
}

static int check_value(enum attribute a, const char *value, struct err *err)
{
        const char *name = attribute_names[a];
        int64_t n;

        switch (a) {
        case JS_STATE:
                if (strcmp(value, DRMAA_SUBMISSION_STATE_ACTIVE) != 0 &&
                    strcmp(value, DRMAA_SUBMISSION_STATE_HOLD) != 0)
                        return err_set(err, DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE,
                                       "%s is %s or %s, not \"%.200s\"", name, DRMAA_SUBMISSION_STATE_ACTIVE,
                                       DRMAA_SUBMISSION_STATE_HOLD, value);
                return 0;
        case JOIN_FILES:
                return strcmp(value, "y") == 0 || strcmp(value, "n") == 0
                               ? 0
                               : err_set(err, DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE,
                                         "%s is y or n, not \"%.200s\"", name, value);
        case BLOCK_EMAIL:
                return strcmp(value, "1") == 0 || strcmp(value, "0") == 0
                               ? 0
                               : err_set(err, DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE,
                                         "%s is 1 or 0, not \"%.200s\"", name, value);
        case START_TIME:
        case DEADLINE_TIME:
                return job_template_time(value, 0, &n)
                               ? 0
                               : wrong(name, value, "[[[[CC]YY/]MM/]DD] hh:mm[:ss] [{-|+}UU:uu]", err);
        case WCT_HLIMIT:
        case DURATION_HLIMIT:
                return job_template_duration(value, &n) && n > 0 ? 0 : wrong(name, value, "[[h:]m:]s", err);
        case INPUT_PATH:
        case OUTPUT_PATH:
        case ERROR_PATH: return strchr(value, ':') ? 0 : wrong(name, value, "[HOST]:PATH", err);
        default: return 0;
        }
}

int job_template_set(struct job_template *t, const char *name, const char *value, struct err *err)
{
        size_t i;
        int rc = find_attribute(attribute_names, ATTRIBUTES, name, &i, err);

        if (rc == 0 && *value)
                rc = check_value((enum attribute)i, value, err);
        if (rc == 0 && strchr(value, '\n') && i != NATIVE_SPECIFICATION)
                rc = err_set(err, DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT, "%s has one line", name);
        if (rc != 0)
                return rc;
        free(t->values[i]);
        t->values[i] = *value ? mem_dupz(value) : NULL;
        return 0;
}

int job_template_set_all(struct job_template *t, const char *name, const char *const *values, struct err *err)
{
        size_t i;
        int rc = find_attribute(vector_names, VECTORS, name, &i, err);

        if (rc != 0)
                return rc;
        for (const char *const *v = values; i == ENV && *v; v++)
                if (!strchr(*v, '=') || **v == '=')
                        return wrong(name, *v, "NAME=VALUE", err);
        list_free(t->vectors[i]);
        t->vectors[i] = list_new();
        for (; *values; values++)
                list_add(t->vectors[i], *values);
        return 0;
}

int job_template_get(const struct job_template *t, const char *name, const char **ret, struct err *err)
{
        size_t i;
        int rc = find_attribute(attribute_names, ATTRIBUTES, name, &i, err);

        if (rc == 0)
                *ret = t->values[i];
        return rc;
}

int job_template_get_all(const struct job_template *t, const char *name, const struct list **ret,
                         struct err *err)
{
        size_t i;
        int rc = find_attribute(vector_names, VECTORS, name, &i, err);

        if (rc == 0)
                *ret = t->vectors[i];
        return rc;
}

/* ---- the submit file */

struct writing {
        const struct job_template *t;
        const struct bulk *bulk;
        int64_t now_s;
        char wd[4096]; /* working directory, absolute */
        struct buf *out;
        struct err *err;
};

/* Appends a value with DRMAA's placeholders; all other characters are literal to the reader. `quoted`:
 * between double quotes. */
static int add_value(struct writing *w, const char *text, bool quoted)
{
        static const char *const names[] = {DRMAA_PLACEHOLDER_INCR, DRMAA_PLACEHOLDER_HD,
                                            DRMAA_PLACEHOLDER_WD};
        const char *home = getenv("HOME");

        while (*text) {
                size_t which = 0, n = 1;

                while (which < 3 && strncmp(text, names[which], strlen(names[which])) != 0)
                        which++;
                if (which == 0) {
                        if (w->bulk->one)
                                return err_set(w->err, DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE,
                                               DRMAA_PLACEHOLDER_INCR
                                               " stands for the number of a bulk job, and this is none");
                        buf_addz(w->out, INCR_MACRO);
                } else if (which == 1 && home) {
                        script_value(w->out, str_of(home));
                } else if (which == 2) {
                        int rc = add_value(w, w->wd, quoted); /* the number of a bulk job may stand in it */

                        if (rc != 0)
                                return rc;
                } else if (*text == '\n') {
                        buf_addz(w->out, "$(NEWLINE)");
                } else if (quoted && *text == '"') {
                        buf_addz(w->out, "\"\"");
                } else {
                        while (text[n] && !strchr("$\n\"", text[n]))
                                n++;
                        script_value(w->out, (struct str){text, n});
                }
                text += which < 3 ? strlen(names[which]) : n;
        }
        return 0;
}

/* A backslash at the end would join the next line, which may be a limit: an empty macro follows it. */
static int add_line(struct writing *w, const char *keyword, const char *value)
{
        int rc;

        buf_printf(w->out, "%s = ", keyword);
        rc = add_value(w, value, false);
        if (w->out->p[w->out->n - 1] == '\\')
                buf_addz(w->out, NOTHING_MACRO);
        buf_char(w->out, '\n');
        return rc;
}

/* Words as the reader of submit files takes them in new syntax: in double quotes, each with blanks or quotes
 * in single ones. */
static int add_words(struct writing *w, const char *keyword, const struct list *words)
{
        struct args args ARGS_CLEANUP = {0};
        struct buf raw BUF_CLEANUP = {0};
        int rc;

        if (!words || words->n == 0)
                return 0;
        for (size_t i = 0; i < words->n; i++)
                args_add(&args, str_of(words->texts[i]));
        args_join_v2(&raw, &args);
        buf_printf(w->out, "%s = \"", keyword);
        rc = add_value(w, buf_z(&raw), true);
        buf_addz(w->out, "\"\n");
        return rc;
}

static int add_folder(struct writing *w)
{
        const char *wd = w->t->values[WD], *home = getenv("HOME");

        if (!getcwd(w->wd, sizeof(w->wd)))
                return err_set(w->err, DRMAA_ERRNO_INTERNAL_ERROR, "the current directory has no name");
        if (!wd && strstr(w->wd, DRMAA_PLACEHOLDER_WD)) /* it would stand for itself */
                return err_set(w->err, DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE,
                               "the current directory has " DRMAA_PLACEHOLDER_WD " in its name");
        if (!wd)
                return add_line(w, "initialdir", w->wd);
        /* The home directory begins a path; the number of a bulk job may stand anywhere in it. */
        if (strncmp(wd, DRMAA_PLACEHOLDER_HD, strlen(DRMAA_PLACEHOLDER_HD)) == 0)
                snprintf(w->wd, sizeof(w->wd), "%s%s", home ? home : "", wd + strlen(DRMAA_PLACEHOLDER_HD));
        else
                snprintf(w->wd, sizeof(w->wd), "%s", wd);
        if (w->wd[0] != '/' || strstr(w->wd, DRMAA_PLACEHOLDER_WD))
                return err_set(w->err, DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE,
                               DRMAA_WD " is an absolute path, not \"%.200s\"", wd);
        return add_line(w, "initialdir", w->wd);
}

/* Adds the program; a name without a slash is a file of the working directory, else a program of the PATH.
 */
static int add_program(struct writing *w)
{
        const char *command = w->t->values[REMOTE_COMMAND];
        struct str path = str_of(getenv("PATH")), folder;
        struct buf name BUF_CLEANUP = {0};
        bool found;

        if (!command)
                return err_set(w->err, DRMAA_ERRNO_DENIED_BY_DRM,
                               "the template has no " DRMAA_REMOTE_COMMAND);
        if (command[0] != '/')
                buf_printf(&name, "%s/", w->wd);
        buf_addz(&name, command);
        found = access(buf_z(&name), F_OK) == 0;
        while (!found && !strchr(command, '/') && str_cut(&path, ':', &folder)) {
                buf_reset(&name);
                buf_printf(&name, STR_FMT "/%s", STR_ARG(folder), command);
                found = folder.n && folder.p[0] == '/' && access(buf_z(&name), X_OK) == 0;
        }
        if (!found && !strchr(command, '/'))
                return err_set(w->err, DRMAA_ERRNO_DENIED_BY_DRM,
                               "there is no program %.200s in %.200s or in the PATH", command, w->wd);
        return add_line(w, "executable", buf_z(&name));
}

/* [HOST]:PATH: the host is where the file is seen from, which the place of the job decides. */
static int add_path(struct writing *w, const char *keyword, enum attribute a)
{
        const char *value = w->t->values[a];

        return value ? add_line(w, keyword, strchr(value, ':') + 1) : 0;
}

static int add_streams(struct writing *w)
{
        bool join = w->t->values[JOIN_FILES] && strcmp(w->t->values[JOIN_FILES], "y") == 0;
        int rc = add_path(w, "input", INPUT_PATH);

        if (rc == 0)
                rc = add_path(w, "output", OUTPUT_PATH);
        return rc ? rc : add_path(w, "error", join ? OUTPUT_PATH : ERROR_PATH);
}

static void add_limits(struct writing *w)
{
        int64_t least = INT64_MAX, n;

        for (enum attribute a = WCT_HLIMIT; a <= DURATION_HLIMIT; a++)
                if (w->t->values[a] && job_template_duration(w->t->values[a], &n) && n < least)
                        least = n;
        if (least < INT64_MAX)
                buf_printf(w->out, "allowed_execute_duration = %" PRId64 "\n", least);
        if (w->t->values[START_TIME] && job_template_time(w->t->values[START_TIME], w->now_s, &n))
                buf_printf(w->out, "deferral_time = %" PRId64 "\ndeferral_window = 315360000\n", n);
        if (w->t->values[DEADLINE_TIME] && job_template_time(w->t->values[DEADLINE_TIME], w->now_s, &n))
                buf_printf(w->out, "periodic_remove = time() >= %" PRId64 "\n", n);
}

static int add_mail(struct writing *w)
{
        const struct list *to = w->t->vectors[EMAIL];
        const char *block = w->t->values[BLOCK_EMAIL];
        struct buf names BUF_CLEANUP = {0};

        if (!to || to->n == 0 || (block && *block == '1'))
                return 0;
        for (size_t i = 0; i < to->n; i++)
                buf_printf(&names, "%s%s", i ? "," : "", to->texts[i]);
        buf_addz(w->out, "notification = complete\n");
        return add_line(w, "notify_user", buf_z(&names));
}

/* Commands of a submit file, as they are, parted by line ends or by semicolons outside of quotes. */
static void add_native(struct writing *w)
{
        const char *text = w->t->values[NATIVE_SPECIFICATION];
        bool quotes = false;

        for (; text && *text; text++) {
                quotes ^= *text == '"';
                buf_char(w->out, *text == ';' && !quotes ? '\n' : *text);
        }
        buf_char(w->out, '\n');
}

int job_template_write(const struct job_template *t, const struct bulk *bulk, int64_t now_s, struct buf *out,
                       struct err *err)
{
        struct writing w = {.t = t, .bulk = bulk, .now_s = now_s, .out = out, .err = err};
        int rc = add_folder(&w);

        if (rc == 0)
                rc = add_program(&w);
        if (rc == 0)
                rc = add_words(&w, "arguments", t->vectors[ARGV]);
        if (rc == 0)
                rc = add_words(&w, "environment", t->vectors[ENV]);
        if (rc == 0)
                rc = add_streams(&w);
        if (rc == 0 && t->values[JOB_NAME])
                rc = add_line(&w, "batch_name", t->values[JOB_NAME]);
        if (rc == 0 && t->values[JOB_CATEGORY]) {
                buf_addz(out, "+JobCategory = \"");
                rc = add_value(&w, t->values[JOB_CATEGORY], true);
                buf_addz(out, "\"\n");
        }
        if (rc == 0)
                rc = add_mail(&w);
        if (rc != 0)
                return rc;
        if (t->values[JS_STATE] && strcmp(t->values[JS_STATE], DRMAA_SUBMISSION_STATE_HOLD) == 0)
                buf_addz(out, "hold = true\n");
        add_limits(&w);
        add_native(&w);
        if (bulk->one) {
                buf_addz(out, "queue\n");
                return 0;
        }
        buf_addz(out, "queue drmaa_incr in (");
        for (uint32_t i = 0; i < bulk->count; i++)
                buf_printf(out, "%s%" PRId64, i ? " " : "", bulk->first + (int64_t)i * bulk->step);
        buf_addz(out, ")\n");
        return 0;
}
