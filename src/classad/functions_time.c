/* Functions on time. The time is what the evaluation was told, and the local zone is Greenwich: there is no
 * clock and no zone file here, so that a server and its simulation agree. */
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

/* Durations have days, hours, minutes and seconds; what is negative in all is negative in each. */
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

        v = c->args[0]; /* what is no time is an error, undefined too */
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

/* Z, +hh:mm, -hhmm, or nothing. */
static bool read_zone(struct reader *r, int *ret)
{
        int h, m = 0, sign;

        *ret = 0;
        if (r->p == r->end)
                return true;
        if (read_char(r, 'Z') || read_char(r, 'z'))
                return r->p == r->end;
        sign = *r->p == '-' ? -1 : 1;
        if (!read_char(r, '+') && !read_char(r, '-'))
                return false;
        if (!read_digits(r, 2, &h))
                return false;
        read_char(r, ':');
        if (r->p < r->end && !read_digits(r, 2, &m))
                return false;
        *ret = sign * (h * 3600 + m * 60);
        return r->p == r->end && h < 24 && m < 60;
}

/* yyyy-mm-dd[Thh:mm[:ss]][zone]; dashes and colons may be left out, a space may stand for the T. */
static bool read_abstime(struct str s, struct value *ret)
{
        struct reader r = {s.p, s.p + s.n};
        struct tm tm = {0};
        int year, month, offset;

        if (!read_digits(&r, 4, &year) || (read_char(&r, '-'), !read_digits(&r, 2, &month)) ||
            (read_char(&r, '-'), !read_digits(&r, 2, &tm.tm_mday)))
                return false;
        if (read_char(&r, 'T') || read_char(&r, 't') || read_char(&r, ' ')) {
                if (!read_digits(&r, 2, &tm.tm_hour) || (read_char(&r, ':'), !read_digits(&r, 2, &tm.tm_min)))
                        return false;
                if (read_char(&r, ':') || (r.p < r.end && *r.p >= '0' && *r.p <= '9'))
                        if (!read_digits(&r, 2, &tm.tm_sec))
                                return false;
        }
        if (!read_zone(&r, &offset) || month < 1 || month > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
            tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
                return false;
        tm.tm_year = year - 1900;
        tm.tm_mon = month - 1;
        *ret = (struct value){
                .type = VALUE_ABSTIME, .offset = offset, .integer = (int64_t)timegm(&tm) - offset};
        return true;
}

/* [-][days+][[hh:]mm:]ss[.fff] */
static bool read_reltime(struct str s, double *ret)
{
        struct reader r = {s.p, s.p + s.n};
        bool minus = read_char(&r, '-');
        double total = 0, part = 0, scale = 1;
        bool digits = false;
        int colons = 0;

        for (; r.p < r.end; r.p++) {
                if (*r.p >= '0' && *r.p <= '9') {
                        part = part * 10 + (*r.p - '0');
                        digits = true;
                } else if (*r.p == '+' && digits && colons == 0 && total == 0) {
                        total = part * 24;
                        part = 0;
                        digits = false;
                        colons = -1; /* days were given: the next is hours */
                } else if (*r.p == ':' && digits && colons < 2) {
                        total = (total + part) * 60;
                        part = 0;
                        digits = false;
                        colons = colons < 0 ? 1 : colons + 1;
                } else if (*r.p == '.' && digits) {
                        for (r.p++; r.p < r.end; r.p++) {
                                if (*r.p < '0' || *r.p > '9')
                                        return false;
                                scale /= 10;
                                part += (*r.p - '0') * scale;
                        }
                        break;
                } else {
                        return false;
                }
        }
        if (colons == -1) { /* "1+" or "1+05": hours may be missing */
                total = (total + part) * 3600;
        } else {
                if (!digits)
                        return false;
                total += part;
        }
        *ret = minus ? -total : total;
        return true;
}

void function_absTime(const struct call *c, struct value *ret)
{
        struct value v = {.type = VALUE_ABSTIME, .integer = c->run->ev->now_s};
        int64_t offset = 0;

        if (call_strict(c, ret))
                return;
        if (c->argc >= 1 && c->args[0].type == VALUE_STRING) {
                if (c->argc == 1 && read_abstime(str_trim(c->args[0].string), &v))
                        *ret = v;
                return;
        }
        if (c->argc >= 1 && c->args[0].type == VALUE_ABSTIME)
                v = c->args[0];
        else if (c->argc >= 1 && !value_convert_integer(&c->args[0], &v.integer))
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
                                    : v->type != VALUE_ABSTIME && value_convert_real(v, &seconds))
                *ret = (struct value){.type = VALUE_RELTIME, .real = seconds};
}

/* ---- times as text */

void function_interval(const struct call *c, struct value *ret)
{
        char text[64];
        uint64_t s;
        int64_t n;
        const char *minus;
        int length;

        if (call_strict(c, ret) || !value_convert_integer(&c->args[0], &n))
                return;
        minus = n < 0 ? "-" : "";
        s = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
        if (s >= 86400)
                length = snprintf(text, sizeof(text), "%s%llu+%u:%02u:%02u", minus,
                                  (unsigned long long)(s / 86400), (unsigned)(s / 3600 % 24),
                                  (unsigned)(s / 60 % 60), (unsigned)(s % 60));
        else if (s >= 3600)
                length = snprintf(text, sizeof(text), "%s%u:%02u:%02u", minus, (unsigned)(s / 3600),
                                  (unsigned)(s / 60 % 60), (unsigned)(s % 60));
        else
                length = snprintf(text, sizeof(text), "%s%u:%02u", minus, (unsigned)(s / 60),
                                  (unsigned)(s % 60));
        run_text(c->run, str_make(text, (size_t)length), ret);
}

/* A time from what formatTime and splitTime take. */
static bool time_argument(const struct call *c, unsigned i, struct value *ret)
{
        *ret = (struct value){.type = VALUE_ABSTIME, .integer = c->run->ev->now_s};
        if (c->argc <= i)
                return true;
        if (c->args[i].type == VALUE_ABSTIME) {
                *ret = c->args[i];
                return true;
        }
        return value_to_integer(&c->args[i], &ret->integer) && c->args[i].type != VALUE_RELTIME;
}

void function_formatTime(const struct call *c, struct value *ret)
{
        struct value when;
        struct tm tm;
        char format[256] = "%c", text[1024];
        size_t n;

        if (call_strict(c, ret) || !time_argument(c, 0, &when) || !calendar(&when, &tm))
                return;
        if (c->argc == 2) {
                if (c->args[1].type != VALUE_STRING || c->args[1].string.n >= sizeof(format))
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

        m->entries[i].name = symbols_intern((struct symbols *)c->run->symbols, str_of(name));
        m->entries[i].at = (int32_t)(i * sizeof(struct node));
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
                double s = c->args[0].real;

                made_add(m, c, "Days")->integer = duration_field(s, DAYS);
                made_add(m, c, "Hours")->integer = duration_field(s, HOURS);
                made_add(m, c, "Minutes")->integer = duration_field(s, MINUTES);
                *made_add(m, c, "Seconds") = (struct node){.op = OP_REAL, .real = fmod(s, 60)};
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
