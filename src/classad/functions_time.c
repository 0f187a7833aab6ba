/* Functions on time. The time is that of the evaluation (eval.now_s), and the local zone is Greenwich: there
 * is no clock and no zone file here, so that a server and its simulation agree. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "classad/functions.h"
#include "classad/print_private.h"

#define OFFSET_MAX 86400 /* seconds from Greenwich, either way */

void function_time(const struct call *c, struct value *ret)
{
        *ret = value_integer(c->run->ev->now_s);
}

void function_timeZoneOffset(const struct call *c, struct value *ret)
{
        (void)c;
        *ret = (struct value){.type = VALUE_RELTIME, .real = 0};
}

void function_dayTime(const struct call *c, struct value *ret)
{
        int64_t s = c->run->ev->now_s % 86400;

        *ret = (struct value){.type = VALUE_RELTIME, .real = (double)(s < 0 ? s + 86400 : s)};
}

/* The calendar at a time, in its own zone. False when the year doesn't fit. */
static bool calendar(const struct value *v, struct tm *ret)
{
        time_t t;

        return !__builtin_add_overflow(v->integer, (int64_t)v->offset, &t) && gmtime_r(&t, ret) != NULL;
}

enum field { YEAR, MONTH, DAY_OF_YEAR, DAY_OF_MONTH, DAY_OF_WEEK, DAYS, HOURS, MINUTES, SECONDS };

static int calendar_field(const struct tm *tm, enum field field)
{
        switch (field) {
        case YEAR: return tm->tm_year + 1900;
        case MONTH: return tm->tm_mon + 1;
        case DAY_OF_YEAR: return tm->tm_yday;
        case DAY_OF_MONTH: return tm->tm_mday;
        case DAY_OF_WEEK: return tm->tm_wday;
        case HOURS: return tm->tm_hour;
        case MINUTES: return tm->tm_min;
        default: return tm->tm_sec;
        }
}

/* Returns the days, hours, minutes or seconds of a duration; all parts of a negative duration are negative.
 */
static int64_t duration_field(double seconds, enum field field)
{
        int64_t s = (int64_t)seconds;

        switch (field) {
        case DAYS: return s / 86400;
        case HOURS: return s % 86400 / 3600;
        case MINUTES: return s % 3600 / 60;
        default: return s % 60;
        }
}

static void get_field(const struct call *c, enum field field, struct value *ret)
{
        struct value v;
        struct tm tm;

        v = c->args[0]; /* anything but a time is an error, undefined too */
        if (v.type == VALUE_RELTIME && field >= DAYS && fabs(v.real) < 9e18)
                *ret = value_integer(duration_field(v.real, field));
        else if (v.type == VALUE_ABSTIME && field != DAYS && calendar(&v, &tm))
                *ret = value_integer(calendar_field(&tm, field));
}

#define GET_FIELD(name, field)                                                                               \
        void function_##name(const struct call *c, struct value *ret)                                        \
        {                                                                                                    \
                get_field(c, field, ret);                                                                    \
        }
GET_FIELD(getYear, YEAR)
GET_FIELD(getMonth, MONTH)
GET_FIELD(getDayOfYear, DAY_OF_YEAR)
GET_FIELD(getDayOfMonth, DAY_OF_MONTH)
GET_FIELD(getDayOfWeek, DAY_OF_WEEK)
GET_FIELD(getDays, DAYS)
GET_FIELD(getHours, HOURS)
GET_FIELD(getMinutes, MINUTES)
GET_FIELD(getSeconds, SECONDS)

/* ---- times from text */

struct reader {
        const char *p, *end;
};

/* Exactly n digits. */
static bool read_digits(struct reader *r, int n, int *ret)
{
        int v = 0;

        if (r->end - r->p < n)
                return false;
        for (int i = 0; i < n; i++) {
                if (r->p[i] < '0' || r->p[i] > '9')
                        return false;
                v = v * 10 + (r->p[i] - '0');
        }
        r->p += n;
        *ret = v;
        return true;
}

static bool read_char(struct reader *r, char c)
{
        if (r->p >= r->end || *r->p != c)
                return false;
        r->p++;
        return true;
}

/* Takes Z, +hhmm, -hh:mm or +hh off the end, if there is one of them. */
static bool cut_zone(struct reader *r, int *ret)
{
        struct reader at = {r->end, r->end};
        size_t n = (size_t)(r->end - r->p);
        bool minus;
        int h, m = 0;

        *ret = 0;
        if (n && (r->end[-1] == 'Z' || r->end[-1] == 'z')) {
                r->end--;
                return true;
        }
        if (n > 5 && (r->end[-5] == '+' || r->end[-5] == '-'))
                at.p = r->end - 5;
        else if (n > 6 && (r->end[-6] == '+' || r->end[-6] == '-') && r->end[-3] == ':')
                at.p = r->end - 6;
        else if (n > 3 && r->end[-3] == '+')
                at.p = r->end - 3;
        else
                return true;
        r->end = at.p;
        minus = *at.p++ == '-';
        if (!read_digits(&at, 2, &h))
                return false;
        read_char(&at, ':');
        if (at.p < at.end && !read_digits(&at, 2, &m))
                return false;
        *ret = (minus ? -1 : 1) * (h * 3600 + m * 60);
        return h < 24 && m < 60;
}

/* Reads a time as HTCondor's library does: four digits of the year and two each of month, day, hour, minute
 * and second, with any non-digits between them; the parts behind the day may be missing. */
static bool read_abstime(struct str s, struct value *ret)
{
        struct reader r = {s.p, s.p + s.n};
        int fields[6] = {0}, count = 0, offset;
        struct tm tm;

        if (!cut_zone(&r, &offset))
                return false;
        for (;; count++) {
                while (r.p < r.end && (*r.p < '0' || *r.p > '9'))
                        r.p++;
                if (r.p == r.end)
                        break;
                if (count == 6 || !read_digits(&r, count ? 2 : 4, &fields[count]))
                        return false;
        }
        if (count < 3 || fields[1] < 1 || fields[1] > 12 || fields[2] < 1 || fields[2] > 31 ||
            fields[3] > 23 || fields[4] > 59 || fields[5] > 60)
                return false;
        tm = (struct tm){.tm_year = fields[0] - 1900,
                         .tm_mon = fields[1] - 1,
                         .tm_mday = fields[2],
                         .tm_hour = fields[3],
                         .tm_min = fields[4],
                         .tm_sec = fields[5]};
        *ret = (struct value){
                .type = VALUE_ABSTIME, .offset = offset, .integer = (int64_t)timegm(&tm) - offset};
        return true;
}

static void skip_back(struct reader *r)
{
        while (r->end > r->p && (r->end[-1] == ' ' || r->end[-1] == '\t'))
                r->end--;
}

static bool take_back(struct reader *r, const char *any)
{
        skip_back(r);
        if (r->end == r->p || !strchr(any, r->end[-1]))
                return false;
        r->end--;
        return true;
}

/* The digits that stand at the end. */
static double number_back(struct reader *r)
{
        double v = 0, scale = 1;

        skip_back(r);
        for (; r->end > r->p && r->end[-1] >= '0' && r->end[-1] <= '9'; scale *= 10)
                v += (*--r->end - '0') * scale;
        return v;
}

/* [-][days(+|d)][hours(:|h)][minutes(:|m)]seconds[.fff][s], each of them left out or not; read from the end,
 * as the library does it. */
static bool read_reltime(struct str s, double *ret)
{
        struct reader r = {s.p, s.p + s.n};
        const char *digits;
        double total;

        take_back(&r, "sS");
        skip_back(&r);
        digits = r.end;
        total = number_back(&r);
        if (r.end > r.p && r.end[-1] == '.') {
                for (ptrdiff_t n = digits - r.end; n > 0; n--)
                        total /= 10;
                r.end--;
                total += number_back(&r);
        }
        if (take_back(&r, "mM:"))
                total += 60 * number_back(&r);
        if (take_back(&r, "hH:"))
                total += 3600 * number_back(&r);
        if (take_back(&r, "dD+"))
                total += 86400 * number_back(&r);
        if (take_back(&r, "-"))
                total = -total;
        skip_back(&r);
        *ret = total;
        return r.end == r.p && s.n > 0;
}

static bool is_seconds(const struct value *v)
{
        return v->type == VALUE_INTEGER || v->type == VALUE_REAL || v->type == VALUE_RELTIME;
}

void function_absTime(const struct call *c, struct value *ret)
{
        struct value v = {.type = VALUE_ABSTIME, .integer = c->run->ev->now_s};
        int64_t offset = 0;

        if (c->argc == 2 && !is_seconds(&c->args[1]))
                return;
        if (call_strict(c, ret))
                return;
        if (c->argc >= 1 && c->args[0].type == VALUE_STRING) {
                if (c->argc == 1 && read_abstime(str_trim(c->args[0].string), &v))
                        *ret = v;
                return;
        }
        if (c->argc >= 1 && c->args[0].type == VALUE_ABSTIME)
                v = c->args[0];
        else if (c->argc >= 1 &&
                 (!is_seconds(&c->args[0]) || !value_convert_integer(&c->args[0], &v.integer)))
                return;
        if (c->argc == 2) {
                if (!value_convert_integer(&c->args[1], &offset) || offset > OFFSET_MAX ||
                    offset < -OFFSET_MAX)
                        return;
                v.offset = (int32_t)offset;
        }
        *ret = v;
}

void function_relTime(const struct call *c, struct value *ret)
{
        const struct value *v = &c->args[0];
        double seconds;

        if (call_strict(c, ret))
                return;
        if (v->type == VALUE_STRING ? read_reltime(str_trim(v->string), &seconds)
                                    : v->type != VALUE_BOOLEAN && value_convert_real(v, &seconds))
                *ret = (struct value){.type = VALUE_RELTIME, .real = seconds};
}

/* ---- times as text */

/* interval(): leading parts that are zero are left out. Past an hour the parts have two digits, the first one
 * too behind days. */
void function_interval(const struct call *c, struct value *ret)
{
        char text[64];
        unsigned hours, minutes, seconds;
        uint64_t s;
        int64_t n;
        const char *minus;
        int length;

        if (!value_convert_integer(&c->args[0], &n))
                return;
        minus = n < 0 ? "-" : "";
        s = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
        hours = (unsigned)(s / 3600 % 24);
        minutes = (unsigned)(s / 60 % 60);
        seconds = (unsigned)(s % 60);
        if (s >= 86400)
                length = snprintf(text, sizeof(text), "%s%llu+%02u:%02u:%02u", minus,
                                  (unsigned long long)(s / 86400), hours, minutes, seconds);
        else if (hours)
                length = snprintf(text, sizeof(text), "%s%u:%02u:%02u", minus, hours, minutes, seconds);
        else if (minutes)
                length = snprintf(text, sizeof(text), "%s%u:%02u", minus, minutes, seconds);
        else
                length = snprintf(text, sizeof(text), "%s%u", minus, seconds);
        run_text(c->run, str_make(text, (size_t)length), ret);
}

/* Converts an argument of formatTime or splitTime to a time. */
static bool time_argument(const struct call *c, unsigned i, struct value *ret)
{
        *ret = (struct value){.type = VALUE_ABSTIME, .integer = c->run->ev->now_s};
        if (c->argc <= i)
                return true;
        if (c->args[i].type == VALUE_ABSTIME) {
                *ret = c->args[i];
                return true;
        }
        return (c->args[i].type == VALUE_INTEGER || c->args[i].type == VALUE_REAL) &&
               value_to_integer(&c->args[i], &ret->integer);
}

/* A member of an ad like splitTime's; 0 when it has none. */
static int member_number(const struct call *c, const char *name)
{
        symbol y = symbols_find(c->run->symbols, str_of(name));
        struct value v = value_undefined();
        int64_t n = 0;

        if (y)
                run_select(c->run, &c->args[0], y, &v);
        if (!value_to_integer(&v, &n) || n > 9999 || n < -9999)
                n = 0;
        return (int)n;
}

static bool time_to_format(const struct call *c, struct tm *ret)
{
        struct value when;

        if (c->argc == 0 || c->args[0].type != VALUE_AD)
                return time_argument(c, 0, &when) && calendar(&when, ret);
        if (!c->run->symbols)
                return false;
        *ret = (struct tm){.tm_year = member_number(c, "Year") - 1900,
                           .tm_mon = member_number(c, "Month") - 1,
                           .tm_mday = member_number(c, "Day"),
                           .tm_hour = member_number(c, "Hours"),
                           .tm_min = member_number(c, "Minutes"),
                           .tm_sec = member_number(c, "Seconds")};
        timegm(ret); /* the day of the week and of the year */
        return true;
}

void function_formatTime(const struct call *c, struct value *ret)
{
        struct tm tm;
        char format[256] = "%c", text[1024];
        size_t n;

        if (!time_to_format(c, &tm))
                return;
        if (c->argc == 2) {
                if (c->args[1].type != VALUE_STRING || c->args[1].string.n >= sizeof(format) ||
                    !run_steps(c->run, c->args[1].string.n / 2))
                        return;
                if (c->args[1].string.n)
                        memcpy(format, c->args[1].string.p, c->args[1].string.n);
                format[c->args[1].string.n] = '\0';
        }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        n = strftime(text, sizeof(text), format, &tm);
#pragma GCC diagnostic pop
        if (n > 0 || format[0] == '\0')
                run_text(c->run, str_make(text, n), ret);
}

/* An ad that evaluation makes, all in one piece. The name of its type is longer than a node holds. */
struct made {
        struct ad ad;
        struct entry entries[8];
        struct node nodes[8];
        char type[16];
};

static struct node *made_add(struct made *m, const struct call *c, const char *name)
{
        uint32_t i = m->ad.count++;

        m->entries[i] = (struct entry){symbols_intern((struct symbols *)c->run->symbols, str_of(name)),
                                       (int32_t)(i * sizeof(struct node)), 0};
        m->nodes[i] = (struct node){.op = OP_INTEGER};
        return &m->nodes[i];
}

static struct made *made_new(const struct call *c, const char *type)
{
        struct made *m = c->run->symbols ? run_alloc(c->run, sizeof(*m)) : NULL;
        struct node *nd;

        if (!m)
                return NULL;
        m->ad = (struct ad){.magic = AD_MAGIC, .symbols = (struct symbols *)c->run->symbols};
        m->ad.entries = m->entries;
        m->ad.code = (char *)m->nodes;
        nd = made_add(m, c, "Type");
        *nd = (struct node){.op = OP_TEXT, .a = (uint32_t)strlen(type)};
        nd->kid[0] = (int32_t)((char *)m->type - (char *)nd);
        assert(nd->a < sizeof(m->type));
        memcpy(m->type, type, nd->a + 1);
        return m;
}

/* Of what is negative only the first part that is not zero is. */
static void add_duration(struct made *m, const struct call *c, double s)
{
        static const char *const names[] = {"Days", "Hours", "Minutes"};
        static const enum field fields[] = {DAYS, HOURS, MINUTES};
        int64_t sign = s < 0 ? -1 : 1;

        s = fabs(s);
        for (unsigned i = 0; i < 3; i++) {
                int64_t n = duration_field(s, fields[i]);

                made_add(m, c, names[i])->integer = sign * n;
                sign = n ? 1 : sign;
        }
        *made_add(m, c, "Seconds") = (struct node){.op = OP_REAL, .real = (double)sign * fmod(s, 60)};
}

void function_splitTime(const struct call *c, struct value *ret)
{
        struct value when;
        struct made *m;
        struct tm tm;
        bool relative;

        if (call_strict(c, ret))
                return;
        relative = c->args[0].type == VALUE_RELTIME;
        if (relative ? !(fabs(c->args[0].real) < 9e18) : !time_argument(c, 0, &when) || !calendar(&when, &tm))
                return;
        m = made_new(c, relative ? "RelativeTime" : "AbsoluteTime");
        if (!m)
                return;
        if (relative) {
                add_duration(m, c, c->args[0].real);
        } else {
                made_add(m, c, "Year")->integer = tm.tm_year + 1900;
                made_add(m, c, "Month")->integer = tm.tm_mon + 1;
                made_add(m, c, "Day")->integer = tm.tm_mday;
                made_add(m, c, "Hours")->integer = tm.tm_hour;
                made_add(m, c, "Minutes")->integer = tm.tm_min;
                made_add(m, c, "Seconds")->integer = tm.tm_sec;
                made_add(m, c, "Offset")->integer = when.offset;
        }
        *ret = (struct value){.type = VALUE_AD, .ad = &m->ad};
}
