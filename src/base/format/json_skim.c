/* A machine that goes over bytes, with the brackets that are open on a stack. The path of a value is made of
 * the keys above it; lists add nothing to it, so what is in one has the list's. */
#include "base/format/json_skim.h"

#include <errno.h>

#include "base/format/json.h"

#define ROW_DEPTH      3 /* {"list": [{ */
#define PATH_MAX_BYTES 1024

enum {
        BEGIN,  /* of the document */
        VALUE,  /* one must come */
        FIRST,  /* a value, or the end of the list */
        KEY,    /* one must come */
        OPENED, /* a key, or the end of the object */
        COLON,
        AFTER, /* a value: a comma, or the end of the list or object, follows */
        TEXT,
        PLAIN, /* a number, true, false or null */
        DONE,
        BROKEN
};

void json_skim_init(struct json_skim *s, const struct json_skim_rows *rows, json_skim_fn *fn, void *arg)
{
        *s = (struct json_skim){.rows = rows,
                                .fn = fn,
                                .arg = arg,
                                .text = {.max = JSON_SKIM_VALUE},
                                .path = {.max = PATH_MAX_BYTES}};
        for (; rows->fields; rows++)
                if (!rows->list)
                        s->whole.rows = rows;
}

void json_skim_deinit(struct json_skim *s)
{
        for (size_t i = 0; i < JSON_SKIM_FIELDS; i++) {
                buf_deinit(&s->whole.values[i]);
                buf_deinit(&s->row.values[i]);
        }
        buf_deinit(&s->path);
        buf_deinit(&s->text);
}

bool json_skim_done(const struct json_skim *s)
{
        return s->state == DONE;
}

static void tell_row(struct json_skim *s, struct json_skim_row *r)
{
        struct str values[JSON_SKIM_FIELDS];

        for (size_t i = 0; i < JSON_SKIM_FIELDS; i++)
                values[i] = buf_view(&r->values[i]);
        if (r->rows)
                s->fn(s->arg, r->rows, values);
        for (size_t i = 0; i < JSON_SKIM_FIELDS; i++)
                buf_reset(&r->values[i]);
        r->rows = NULL;
}

/* Returns the buffer for the value that begins; NULL: the value is not wanted. */
static struct buf *wanted(struct json_skim *s)
{
        struct json_skim_row *r = s->row.rows ? &s->row : &s->whole;
        struct str path = str_skip(buf_view(&s->path), s->base);

        for (size_t i = 0; r->rows && i < JSON_SKIM_FIELDS && r->rows->fields[i]; i++)
                if (str_eqz(path, r->rows->fields[i]))
                        return &r->values[i];
        return NULL;
}

static void begin_state(struct json_skim *s, int state)
{
        s->state = state;
        s->escaped = false;
        buf_reset(&s->text);
        s->to = s->key ? NULL : wanted(s);
}

static void value_end(struct json_skim *s)
{
        bool plain = s->state == PLAIN;

        s->state = AFTER;
        if (!s->to || (plain && str_eqz(buf_view(&s->text), "null")))
                return;
        s->to->max = JSON_SKIM_VALUE;
        if (s->to->n)
                buf_char(s->to, ',');
        if (plain)
                buf_str(s->to, buf_view(&s->text));
        else
                json_unescape(s->to, buf_view(&s->text));
}

static void key_end(struct json_skim *s)
{
        buf_truncate(&s->path, s->path_at[s->depth - 1]);
        s->path.overflow = false; /* a longer one is no row's */
        if (s->path.n)
                buf_char(&s->path, '.');
        json_unescape(&s->path, buf_view(&s->text));
        s->key = false;
        s->state = COLON;
}

static int open_bracket(struct json_skim *s, char c)
{
        if (s->depth == JSON_SKIM_DEPTH || (s->depth == 0 && c != '{'))
                return BROKEN;
        s->path_at[s->depth] = s->path.n;
        s->stack[s->depth++] = c;
        for (const struct json_skim_rows *r = s->rows;
             s->depth == ROW_DEPTH && c == '{' && s->stack[1] == '[' && r->fields; r++)
                if (r->list && str_eqz(buf_view(&s->path), r->list)) {
                        s->row.rows = r;
                        s->base = s->path.n + 1;
                }
        return c == '{' ? OPENED : FIRST;
}

static int close_bracket(struct json_skim *s, char c)
{
        if (s->depth == 0 || s->stack[s->depth - 1] != (c == '}' ? '{' : '['))
                return BROKEN;
        if (s->depth == ROW_DEPTH && s->row.rows) {
                tell_row(s, &s->row);
                s->base = 0;
        }
        buf_truncate(&s->path, s->path_at[--s->depth]);
        if (s->depth)
                return AFTER;
        tell_row(s, &s->whole);
        return DONE;
}

static bool is_space(char c)
{
        return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Handles a character between values. */
static int between(struct json_skim *s, char c)
{
        bool value = s->state == VALUE || s->state == FIRST || (s->state == BEGIN && c == '{');

        if (is_space(c))
                return s->state;
        if (value && (c == '{' || c == '['))
                return open_bracket(s, c);
        if (c == '"' && (value || s->state == KEY || s->state == OPENED)) {
                s->key = !value;
                begin_state(s, TEXT);
                return TEXT;
        }
        if (value && (c == '-' || (c >= '0' && c <= '9') || c == 't' || c == 'f' || c == 'n')) {
                begin_state(s, PLAIN);
                buf_char(&s->text, c);
                return PLAIN;
        }
        if (c == ':' && s->state == COLON)
                return VALUE;
        if (c == ',' && s->state == AFTER)
                return s->stack[s->depth - 1] == '{' ? KEY : VALUE;
        if ((c == '}' && (s->state == AFTER || s->state == OPENED)) ||
            (c == ']' && (s->state == AFTER || s->state == FIRST)))
                return close_bracket(s, c);
        return BROKEN;
}

/* Takes as much of a string as the piece has; returns the number of bytes taken. */
static size_t take_text(struct json_skim *s, struct str part)
{
        size_t n = 0;

        for (; n < part.n && (s->escaped || part.p[n] != '"'); n++)
                s->escaped = !s->escaped && part.p[n] == '\\';
        if (s->key || s->to)
                buf_add(&s->text, part.p, n);
        if (n == part.n)
                return n;
        if (s->key)
                key_end(s);
        else
                value_end(s);
        return n + 1;
}

static size_t take_plain(struct json_skim *s, struct str part)
{
        size_t n = 0;

        while (n < part.n && part.p[n] != ',' && part.p[n] != '}' && part.p[n] != ']' && !is_space(part.p[n]))
                n++;
        buf_add(&s->text, part.p, n);
        if (n < part.n)
                value_end(s);
        return n;
}

int json_skim_take(struct json_skim *s, struct str part)
{
        while (part.n && s->state != BROKEN) {
                size_t n = 1;

                if (s->state == TEXT)
                        n = take_text(s, part);
                else if (s->state == PLAIN)
                        n = take_plain(s, part);
                else
                        s->state = between(s, part.p[0]);
                part = str_skip(part, n);
        }
        return s->state == BROKEN ? -EINVAL : 0;
}
