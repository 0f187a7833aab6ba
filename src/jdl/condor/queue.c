/* queue [COUNT] [VARIABLES] [in|from|matching [files|dirs|any] [SLICE] LIST]
 *
 * The list is first gathered as lines of text, then sliced and split into the columns of the part's items.
 * HTCondor's rules: `in` and `matching` lists are words parted by blanks and commas; `from` has a row a line,
 * whose last column takes all that is left. Macros in an item are expanded when the columns are known; those
 * of the row's own variables and of the job stay in the item, and each job expands them. */
#include <errno.h>

#include "base/job/arith.h"
#include "jdl/condor/reader.h"

enum mode { MODE_PLAIN, MODE_IN, MODE_FROM, MODE_MATCHING };

struct slice {
        bool given, has_from, has_to;
        int64_t from, to, step;
};

struct queue {
        struct reader *reader;
        struct place at;
        enum mode mode;
        char want; /* kind of files for matching: 'a', 'f', 'd' */
        struct slice slice;
        uint64_t count;
        struct str variables; /* variables as written */
        struct buf lines;     /* the list: one item a line */
        uint64_t line_count;
        struct map *seen; /* paths matched so far */
        uint64_t repeated;
};

bool queue_is_statement(struct str line, struct str *ret_rest)
{
        if (!str_istarts(line, STR("queue")))
                return false;
        line = str_skip(line, 5);
        if (line.n && line.p[0] != ' ' && line.p[0] != '\t' && line.p[0] != '=' && line.p[0] != '(')
                return false;
        *ret_rest = str_trim(line);
        return true;
}

static bool separates(char c)
{
        return c == ' ' || c == '\t' || c == ',';
}

bool queue_word(struct str *rest, struct str *ret)
{
        size_t n = 0;

        while (rest->n && (separates(rest->p[0]) || rest->p[0] == '\n'))
                *rest = str_skip(*rest, 1);
        while (n < rest->n && !separates(rest->p[n]) && rest->p[n] != '\n')
                n++;
        *ret = str_head(*rest, n);
        *rest = str_skip(*rest, n);
        return n > 0;
}

/* Returns whether the word at s is `word`, followed by a blank, a '(' or '[', or the end. */
static bool keyword_at(struct str s, const char *word)
{
        struct str w = str_of(word);

        return str_istarts(s, w) && (s.n == w.n || memchr(" \t([", s.p[w.n], 4));
}

/* Finds in, from or matching as a word of its own. Returns where it stands, or -1. */
static ptrdiff_t find_mode(struct str s, enum mode *ret_mode, size_t *ret_length)
{
        static const struct {
                const char *word;
                enum mode mode;
        } modes[] = {{"in", MODE_IN}, {"from", MODE_FROM}, {"matching", MODE_MATCHING}};

        for (size_t i = 0; i < s.n; i++) {
                if (i && !separates(s.p[i - 1]) && s.p[i - 1] != ')')
                        continue;
                for (size_t m = 0; m < 3; m++) {
                        if (keyword_at(str_skip(s, i), modes[m].word)) {
                                *ret_mode = modes[m].mode;
                                *ret_length = strlen(modes[m].word);
                                return (ptrdiff_t)i;
                        }
                }
        }
        return -1;
}

/* [from:to:step], each part optional; [from] is [from:], as in HTCondor. */
static int read_slice(struct queue *q, struct str inner)
{
        struct str rest, part;
        BUF_CLEANUP struct buf text = {.max = CONDOR_VALUE_MAX};
        struct slice *s = &q->slice;
        unsigned n = 0;
        int64_t v;
        int rc = settings_expand(q->reader, inner, q->at, &text, NULL);

        if (rc)
                return rc;
        rest = inner = buf_view(&text);
        *s = (struct slice){.given = true, .step = 1};
        while (str_cut(&rest, ':', &part)) {
                part = str_trim(part);
                if (n++ >= 3 || (part.n && str_to_i64(part, &v)))
                        return reader_fail(q->reader, q->at,
                                           "'[" STR_FMT "]' is no slice; write [from:to] or [from:to:step]",
                                           STR_ARG(inner));
                if (!part.n)
                        continue;
                if (n == 1)
                        s->has_from = true, s->from = v;
                else if (n == 2)
                        s->has_to = true, s->to = v;
                else
                        s->step = v;
        }
        if (s->step < 1)
                return reader_fail(q->reader, q->at, "the step of a slice must be at least 1");
        return 0;
}

static bool in_slice(const struct slice *s, uint64_t index, uint64_t count)
{
        int64_t n = (int64_t)count, i = (int64_t)index;
        int64_t from = s->has_from ? s->from : 0, to = s->has_to ? s->to : n;

        if (!s->given)
                return true;
        if (from < 0)
                from = from + n < 0 ? 0 : from + n;
        if (to < 0)
                to += n;
        return i >= from && i < to && (i - from) % s->step == 0;
}

static int queue_read_count(struct queue *q, struct str text)
{
        struct arith v;
        struct err err = {{0}};

        q->count = 1;
        if (str_starts(text, STR("=")))
                return reader_fail(q->reader, q->at, "write 'queue 5', without '='");
        if (text.n == 0)
                return 0;
        if (arith_eval(text, &v, &err) || v.is_real || v.integer < 0)
                return reader_fail(q->reader, q->at,
                                   "'" STR_FMT "' is no number of jobs; write 'queue N', or 'queue VARIABLE "
                                   "in (…)', 'from', 'matching'",
                                   STR_ARG(str_head(text, 60)));
        if ((uint64_t)v.integer > FORM_MEMBERS_MAX)
                return reader_fail(q->reader, q->at, "a request can't have more than %u jobs",
                                   FORM_MEMBERS_MAX);
        q->count = (uint64_t)v.integer;
        return 0;
}

/* Splits what stands before in/from/matching: a count, which doesn't begin with a letter, then names. */
static int read_head(struct queue *q, struct str head)
{
        struct str rest = head, word;
        const char *first = NULL;

        while (queue_word(&rest, &word)) {
                bool name = macro_is_name(word) && !(word.p[0] >= '0' && word.p[0] <= '9');

                if (name && !first)
                        first = word.p;
                else if (!name)
                        first = NULL;
        }
        if (!first)
                first = head.p + head.n;
        q->variables = str_make(first, (size_t)(head.p + head.n - first));
        head = str_make(head.p, (size_t)(first - head.p));
        while (head.n && separates(head.p[head.n - 1]))
                head.n--;
        return queue_read_count(q, str_trim(head));
}

static void add_line(struct queue *q, struct str line)
{
        buf_str(&q->lines, line);
        buf_char(&q->lines, '\n');
        q->line_count++;
}

static void add_words(struct queue *q, struct str text)
{
        struct str word;

        while (queue_word(&text, &word))
                add_line(q, word);
}

static void add_text(struct queue *q, struct str text)
{
        text = str_trim(text);
        if (text.n == 0)
                return;
        if (q->mode == MODE_FROM)
                add_line(q, text);
        else
                add_words(q, text);
}

/* The lines of a list up to the one that begins with ')'. */
static int read_inline(struct queue *q)
{
        struct reader *r = q->reader;
        struct place at = q->at;
        struct str line;

        while (lines_item(r, &line, &at)) {
                BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
                int rc;

                if (str_starts(line, STR(")")))
                        return 0;
                if (line.n == 0 || line.p[0] == '#')
                        continue;
                if (q->mode != MODE_MATCHING || !macro_present(line)) {
                        add_text(q, line);
                        continue;
                }
                rc = settings_expand(r, line, at, &value, NULL);
                if (rc)
                        return rc;
                add_text(q, buf_view(&value));
        }
        return reader_fail(
                r, q->at,
                "the list that begins with '(' is never closed; put ')' on a line of its own behind it");
}

/* from FILE, or from COMMAND | */
static int read_outside(struct queue *q, struct str what)
{
        struct reader *r = q->reader;
        BUF_CLEANUP struct buf text = {.max = FORM_TEXT_MAX};
        bool command = str_ends(what, STR("|"));
        MEM_CLEANUP char *z = NULL;
        struct str rest, line;
        int rc;

        z = str_dupz(command ? str_trim(str_head(what, what.n - 1)) : what);
        if (!z[0])
                return reader_fail(
                        r, q->at,
                        "`from` needs a file, a command with '|' behind it, or a list in parentheses");
        rc = command ? r->world->run(r->world->arg, z, &text) : r->world->read_file(r->world->arg, z, &text);
        if (rc) {
                reader_fail(r, q->at, command ? "the command '%s' failed: %s" : "'%s' can't be read: %s", z,
                            reader_reason(rc));
                return rc;
        }
        if (buf_check(&text))
                return reader_fail(r, q->at, "'%s' gives more than %u MiB", z, FORM_TEXT_MAX >> 20);
        rest = buf_view(&text);
        while (str_cut(&rest, '\n', &line))
                add_text(q, line);
        return 0;
}

static void add_match(void *to, struct str path)
{
        struct queue *q = to;

        if (str_find(path, '\n') >= 0 || str_find(path, '\x1f') >= 0)
                return;
        if (map_put(q->seen, path, q))
                q->repeated++;
        else
                add_line(q, path);
}

/* Puts what the patterns match in their place. */
static int read_matches(struct queue *q)
{
        struct buf patterns = q->lines;
        struct str rest = buf_view(&patterns), pattern;
        int rc = 0;

        q->lines = (struct buf){.max = FORM_TEXT_MAX};
        q->line_count = 0;
        q->seen = map_new();
        while (!rc && str_cut(&rest, '\n', &pattern) && pattern.n) {
                MEM_CLEANUP char *z = str_dupz(pattern);
                uint64_t before = q->line_count + q->repeated;

                rc = q->reader->world->glob(q->reader->world->arg, z, q->want, add_match, q);
                if (rc)
                        reader_fail(q->reader, q->at, "'%s' can't be looked for: %s", z, reader_reason(rc));
                else if (q->line_count + q->repeated == before)
                        reader_warn(q->reader, q->at, "'%s' matches nothing", z);
        }
        map_free(q->seen);
        buf_deinit(&patterns);
        return rc;
}

static int read_qualifiers(struct queue *q, struct str *list)
{
        for (;;) {
                struct str s = *list = str_trim_left(*list);
                bool any = keyword_at(s, "any"), files = keyword_at(s, "files"), dirs = keyword_at(s, "dirs");

                if (q->mode == MODE_MATCHING && (any || files || dirs)) {
                        q->want = any ? 'a' : files ? 'f' : 'd';
                        *list = str_skip(s, any ? 3 : files ? 5 : 4);
                } else if (q->mode == MODE_FROM && keyword_at(s, "table")) {
                        return reader_fail(q->reader, q->at,
                                           "`from table` is not supported; part the columns with commas");
                } else if (str_starts(s, STR("["))) {
                        ptrdiff_t end = str_find(s, ']');
                        int rc;

                        if (end < 0)
                                return reader_fail(q->reader, q->at, "the slice is not closed with ']'");
                        rc = read_slice(q, str_make(s.p + 1, (size_t)end - 1));
                        if (rc)
                                return rc;
                        *list = str_skip(s, (size_t)end + 1);
                } else {
                        return 0;
                }
        }
}

static int add_variables(struct queue *q)
{
        static const char *const reserved[] = {"Process", "ProcId", "Cluster",  "ClusterId",
                                               "Step",    "Row",    "ItemIndex"};
        struct form_part *p = q->reader->part;
        struct str rest = q->variables, name;

        while (queue_word(&rest, &name)) {
                for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
                        if (str_ieqz(name, reserved[i]))
                                return reader_fail(q->reader, q->at,
                                                   "'" STR_FMT
                                                   "' has its own meaning; call the variable something else",
                                                   STR_ARG(name));
                for (size_t i = 0; i < p->variable_count; i++)
                        if (str_ieqz(name, p->variables[i]))
                                return reader_fail(q->reader, q->at,
                                                   "the variable '" STR_FMT "' is there twice",
                                                   STR_ARG(name));
                if (p->variable_count >= READER_VARIABLES_MAX - 4)
                        return reader_fail(q->reader, q->at, "there can't be more than %d variables",
                                           READER_VARIABLES_MAX - 4);
                form_add_variable(p, name);
        }
        if (p->variable_count == 0)
                form_add_variable(p, STR("Item"));
        return 0;
}

/* `list`: what stands behind the word of the mode, as written. Names of the part's variables stay in the
 * items. */
static int read_list(struct queue *q, struct str list)
{
        BUF_CLEANUP struct buf text = {.max = CONDOR_VALUE_MAX};
        bool items;
        int rc = read_qualifiers(q, &list);

        items = q->mode == MODE_IN || (q->mode == MODE_FROM && str_starts(list, STR("(")));
        if (!rc)
                rc = items ? settings_expand_item(q->reader, list, q->at, &text)
                           : settings_expand(q->reader, list, q->at, &text, NULL);
        if (rc)
                return rc;
        list = str_trim(buf_view(&text));
        if (str_starts(list, STR("(")) && str_ends(list, STR(")"))) {
                add_text(q, str_make(list.p + 1, list.n - 2));
        } else if (str_starts(list, STR("("))) {
                add_text(q, str_skip(list, 1));
                rc = read_inline(q);
        } else if (q->mode == MODE_FROM) {
                rc = read_outside(q, list);
        } else {
                add_words(q, list);
        }
        if (!rc && q->line_count == 0)
                rc = reader_fail(q->reader, q->at, "the list is empty, so there are no jobs");
        if (!rc && q->mode == MODE_MATCHING)
                rc = read_matches(q);
        if (!rc && buf_check(&q->lines))
                rc = reader_fail(q->reader, q->at, "the list is larger than %u MiB", FORM_TEXT_MAX >> 20);
        return rc;
}

/* Takes the first column of *row, which ends at a comma or blanks or both. */
static struct str cut_column(struct str *row)
{
        struct str s = *row, head;
        size_t n = 0;

        while (n < s.n && !separates(s.p[n]))
                n++;
        head = str_head(s, n);
        s = str_trim(str_skip(s, n));
        if (str_starts(s, STR(",")))
                s = str_trim(str_skip(s, 1));
        *row = s;
        return head;
}

/* Adds an item to the part's, with all that is known by now filled in. */
static int add_value(struct queue *q, struct str value)
{
        BUF_CLEANUP struct buf expanded = {.max = CONDOR_VALUE_MAX};
        int rc;

        if (!macro_present(value))
                return buf_str(&q->reader->part->items, value), 0;
        rc = settings_expand_item(q->reader, value, q->at, &expanded);
        for (size_t i = 0; i < expanded.n; i++)
                if (expanded.p[i] == '\n' || expanded.p[i] == '\x1f')
                        expanded.p[i] = ' ';
        buf_str(&q->reader->part->items, str_trim(buf_view(&expanded)));
        return rc;
}

static int add_row(struct queue *q, struct str line, uint64_t index)
{
        struct form_part *p = q->reader->part;
        size_t columns = p->variable_count - (q->reader->slice ? 1 : 0);
        bool separated = str_find(line, '\x1f') >= 0;
        int rc = 0;

        for (size_t i = 0; i < columns && !rc; i++) {
                struct str value = line;

                if (separated)
                        value = str_cut(&line, '\x1f', &value) ? str_trim(value) : STR_NONE;
                else if (i + 1 < columns)
                        value = cut_column(&line);
                if (i)
                        buf_char(&p->items, '\x1f');
                rc = add_value(q, value);
        }
        if (q->reader->slice)
                buf_printf(&p->items, "\x1f%llu", (unsigned long long)index);
        buf_char(&p->items, '\n');
        p->rows++;
        return rc;
}

/* Items from outside: of each row all columns are there. */
static int give_items(struct queue *q)
{
        const struct condor_items *given = q->reader->options->items;
        struct str rest = given->rows, line;
        int rc = 0;

        for (size_t i = 0; i < given->variable_count; i++)
                form_add_variable(q->reader->part, str_of(given->variables[i]));
        q->reader->part->rows = 0;
        for (uint64_t i = 0; i < given->row_count && str_cut(&rest, '\n', &line) && !rc; i++)
                rc = add_row(q, line, i);
        if (!rc && buf_check(&q->reader->part->items))
                return reader_fail(q->reader, q->at, "the nodes' variables are larger than %u MiB",
                                   FORM_TEXT_MAX >> 20);
        return rc;
}

static int fill_items(struct queue *q)
{
        struct str rest = buf_view(&q->lines), line;
        struct form_part *p = q->reader->part;
        int rc = 0;

        if (q->slice.given) {
                q->reader->slice = true;
                form_add_variable(p, STR("DroverRow"));
        }
        p->rows = 0;
        for (uint64_t i = 0; i < q->line_count && str_cut(&rest, '\n', &line) && !rc; i++)
                if (in_slice(&q->slice, i, q->line_count))
                        rc = add_row(q, line, i);
        if (rc)
                return rc;
        if (buf_check(&p->items))
                return reader_fail(q->reader, q->at, "the list is larger than %u MiB", FORM_TEXT_MAX >> 20);
        return 0;
}

static int check_members(struct queue *q)
{
        struct reader *r = q->reader;
        uint64_t members = 0;

        if (r->part->rows && q->count > FORM_MEMBERS_MAX / r->part->rows)
                members = FORM_MEMBERS_MAX + 1;
        r->part->steps = q->count;
        if (members == 0)
                members = r->first_member + r->part->rows * q->count;
        if (members > FORM_MEMBERS_MAX)
                return reader_fail(r, q->at, "a request can't have more than %u jobs", FORM_MEMBERS_MAX);
        if (members == r->first_member)
                reader_warn(r, q->at, "this queue statement makes no jobs");
        return 0;
}

int queue_read(struct reader *r, struct str rest, struct place at)
{
        BUF_CLEANUP struct buf text = {.max = CONDOR_VALUE_MAX}, head = {.max = CONDOR_VALUE_MAX};
        struct queue q = {.reader = r, .at = at, .want = 'a', .lines.max = FORM_TEXT_MAX};
        size_t length = 0;
        ptrdiff_t mode = find_mode(rest, &q.mode, &length);
        int rc = 0;

        if (mode < 0) { /* a macro may hold all of it */
                rc = settings_expand(r, rest, at, &text, NULL);
                rest = str_trim(buf_view(&text));
                mode = find_mode(rest, &q.mode, &length);
        }
        r->first_member = form_members(r->form);
        if (!rc)
                rc = settings_expand(r, mode < 0 ? rest : str_head(rest, (size_t)mode), at, &head, NULL);
        if (!rc)
                rc = mode < 0 ? queue_read_count(&q, str_trim(buf_view(&head)))
                              : read_head(&q, str_trim(buf_view(&head)));
        if (!rc && mode >= 0 && r->options->items)
                rc = reader_fail(r, at, "the queue statement has items of its own");
        if (!rc) {
                r->part = form_add_part(r->form, at.line);
                if (r->options->items)
                        rc = give_items(&q);
                if (!rc && mode >= 0)
                        rc = add_variables(&q);
                if (!rc && mode >= 0)
                        rc = read_list(&q, str_skip(rest, (size_t)mode + length));
                if (!rc && mode >= 0)
                        rc = fill_items(&q);
        }
        if (!rc)
                rc = check_members(&q);
        buf_deinit(&q.lines);
        return rc;
}
