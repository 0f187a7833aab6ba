/* Functions shared by the readers of answers. */
#include <ctype.h>

#include "base/u64.h"
#include "run/batch/batch.h"

#define WORD_MAX   256
#define NATIVE_MAX 128
/* Limits above any real machine, so that sums over an answer cannot overflow. */
#define NODE_CPUS_MAX  100000u
#define NODE_BYTES_MAX (1ull << 50)
#define NODES_MAX      1000000u

void batch_word_add(struct batch_call *c, const char *word)
{
        args_add(&c->argv, str_of(word));
}

void batch_call_deinit(struct batch_call *c)
{
        args_deinit(&c->argv);
        args_deinit(&c->paths);
        buf_deinit(&c->input);
}

void batch_node_add(struct run_capacity *c, const struct batch_node *n, uint64_t task_cpus)
{
        uint64_t cpus = u64_min(n->cpus, NODE_CPUS_MAX), memory = u64_min(n->memory_bytes, NODE_BYTES_MAX),
                 gpus = u64_min(n->gpus, NODE_CPUS_MAX);

        if (c->nodes >= NODES_MAX)
                return;
        c->nodes++;
        c->cpus_milli += cpus * 1000;
        c->idle_cpus_milli += u64_min(n->idle_cpus, cpus) * 1000;
        c->memory_bytes += memory;
        c->idle_memory_bytes += u64_min(n->idle_memory_bytes, memory);
        c->gpus += gpus;
        c->idle_gpus += n->idle_cpus ? u64_min(n->idle_gpus, gpus) : 0;
        c->node_cpus_milli = u64_max(c->node_cpus_milli, u64_min(task_cpus, cpus) * 1000);
        c->node_memory_bytes = u64_max(c->node_memory_bytes, memory);
        c->node_gpus = u64_max(c->node_gpus, gpus);
}

bool batch_is_native(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 127 || strchr(",\"'\\", s.p[i]))
                        return false;
        return s.n > 0 && s.n <= NATIVE_MAX && s.p[0] != '-';
}

void batch_path_add(struct batch_call *c, const char *format, ...)
{
        BUF_CLEANUP struct buf path = {0};
        va_list ap;

        va_start(ap, format);
        buf_vprintf(&path, format, ap);
        va_end(ap);
        args_add(&c->paths, buf_view(&path));
}

void batch_words_add(struct batch_call *c, struct str words)
{
        struct str one;

        while (words.n && str_cut(&words, ' ', &one))
                if (one.n)
                        args_add(&c->argv, one);
}

bool batch_plain(const char *text)
{
        size_t n = strlen(text);

        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)text[i]) && !strchr("_.,:@+=&|()*[]/-", text[i]))
                        return false;
        return n > 0 && n <= WORD_MAX && text[0] != '-';
}

bool batch_contains(struct str text, const char *const *words)
{
        for (; *words; words++)
                if (str_search(text, str_of(*words)) >= 0)
                        return true;
        return false;
}

struct str batch_whole(const struct batch_system *s, struct str native)
{
        BUF_CLEANUP struct buf pattern = {0};

        if (s->native_of)
                s->native_of("", 0, &pattern); /* "_0", ".1", "[1]": shows the separator */
        ptrdiff_t at = pattern.n ? str_rfind(native, pattern.p[0]) : -1;
        return at < 0 ? native : str_head(native, (size_t)at);
}

struct str batch_last_line(struct str out)
{
        struct str line, last = STR("");

        while (out.n && str_cut(&out, '\n', &line))
                if (str_trim(line).n)
                        last = str_trim(line);
        return last;
}

/* Replaces entities in place; the text never grows. */
static struct str undo_entities(struct str s)
{
        static const struct {
                const char *entity;
                char c;
        } table[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
        char *to = (char *)(uintptr_t)s.p;
        size_t n = 0;

        for (size_t at = 0; at < s.n;) {
                size_t i = 0;

                while (i < sizeof(table) / sizeof(*table) &&
                       !(s.p[at] == '&' && str_starts(str_skip(s, at), str_of(table[i].entity))))
                        i++;
                bool known = i < sizeof(table) / sizeof(*table);
                to[n++] = known ? table[i].c : s.p[at];
                at += known ? strlen(table[i].entity) : 1;
        }
        return str_make(s.p, n);
}

bool batch_next_tag(struct str *rest, struct str *ret_tag, struct str *ret_attributes, struct str *ret_text)
{
        ptrdiff_t open, close;

        if ((open = str_find(*rest, '<')) < 0 || (close = str_find(str_skip(*rest, (size_t)open), '>')) < 0)
                return false;
        struct str tag = str_make(rest->p + open + 1, (size_t)close - 1);
        size_t n = 0;
        while (n < tag.n && !isspace((unsigned char)tag.p[n]))
                n++;
        *rest = str_skip(*rest, (size_t)(open + close) + 1);
        ptrdiff_t next = str_find(*rest, '<');
        struct str text = str_head(*rest, next < 0 ? rest->n : (size_t)next);
        *rest = str_skip(*rest, text.n);
        *ret_tag = str_head(tag, n);
        *ret_attributes = str_trim(str_skip(tag, n));
        *ret_text = str_trim(text.n && memchr(text.p, '&', text.n) ? undo_entities(text) : text);
        return true;
}

bool batch_size(struct str text, uint64_t unit, uint64_t *ret_bytes)
{
        static const char letters[] = "kmgtp";
        size_t n = 0;
        double value;

        while (n < text.n && (isdigit((unsigned char)text.p[n]) || text.p[n] == '.'))
                n++;
        if (n == 0 || str_to_double(str_head(text, n), &value) != 0 || value < 0 || value > 1e18)
                return false;
        struct str end = str_skip(text, n);
        if (end.n) {
                const char *letter = strchr(letters, tolower((unsigned char)end.p[0]));

                if (tolower((unsigned char)end.p[0]) == 'b' && end.n == 1)
                        unit = 1;
                else if (letter && *letter &&
                         (end.n == 1 || (end.n == 2 && tolower((unsigned char)end.p[1]) == 'b')))
                        unit = 1ULL << (10 * (letter - letters + 1));
                else
                        return false;
        }
        value *= (double)unit;
        if (value > 1e18)
                return false;
        *ret_bytes = (uint64_t)value;
        return true;
}
