#include "run/call/answer.h"

#define WORDS_SHOWN 400

size_t answer_json_values(struct str text)
{
        size_t values = 1;
        bool quoted = false;

        for (size_t i = 0; i < text.n; i++)
                if (text.p[i] == '"')
                        quoted = !quoted;
                else if (quoted)
                        i += text.p[i] == '\\';
                else
                        values += text.p[i] == ',' || text.p[i] == '[' || text.p[i] == '{';
        return values;
}

void answer_make_utf8(struct str s)
{
        char *p = (char *)(uintptr_t)s.p;

        for (size_t i = 0, n; i < s.n; i += n ? n : 1) {
                n = str_utf8(str_skip(s, i));
                if (n == 0 || p[i] == 127 ||
                    (n == 2 && (unsigned char)p[i] == 0xc2 && (unsigned char)p[i + 1] < 0xa0))
                        memset(p + i, '?', n ? n : 1);
        }
}

/* Returns the length of the common prefix of two lines that ends in a colon and a blank, as in "sbatch:
 * error: ". */
static size_t same_head(struct str line, struct str other)
{
        size_t head = 0;

        for (size_t i = 0; i < line.n && i < other.n && line.p[i] == other.p[i]; i++)
                if (i > 1 && line.p[i] == ' ' && line.p[i - 1] == ':')
                        head = i + 1;
        return head;
}

void answer_clean(struct buf *out, struct str words)
{
        struct str line, before = STR_NONE;
        size_t from = out->n;

        words = str_head(words, words.n < WORDS_SHOWN ? words.n : WORDS_SHOWN);
        while (str_cut(&words, '\n', &line)) {
                size_t head = same_head(line, before);

                if (before.p)
                        buf_addz(out, head ? "; " : " ");
                for (size_t i = head; i < line.n; i++)
                        buf_char(out, (unsigned char)line.p[i] < ' ' ? ' ' : line.p[i]);
                before = line;
        }
        answer_make_utf8(str_skip(buf_view(out), from));
}
