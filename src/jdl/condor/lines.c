/* Lines are read as by HTCondor: a backslash at the end of a line joins the next one, whose leading white
 * space is dropped; a comment line ends with its line, and one inside a joined line is skipped. */
#include <errno.h>

#include "jdl/condor/reader.h"

static bool physical(struct source *s, struct str *ret)
{
        if (!str_cut(&s->rest, '\n', ret) || (!s->rest.p && ret->n == 0))
                return false;
        s->next++;
        if (str_ends(*ret, STR("\r")))
                ret->n--;
        return true;
}

static void source_pop(struct reader *r)
{
        struct source *s = &r->sources[--r->depth];

        buf_deinit(&s->text);
}

const char *lines_keep_name(struct reader *r, struct str name)
{
        r->files = mem_array(r->files, r->file_count + 1, sizeof(*r->files));
        r->files[r->file_count] = str_dupz(name);
        return r->files[r->file_count++];
}

int lines_open(struct reader *r, struct str name, struct buf *text, struct place from)
{
        struct source *s;

        if (r->depth == CONDOR_INCLUDE_MAX)
                return reader_fail(r, from, "files include each other more than %d deep", CONDOR_INCLUDE_MAX);
        s = &r->sources[r->depth++];
        *s = (struct source){.at.file = lines_keep_name(r, name), .text = *text, .next = 1};
        *text = (struct buf){0};
        s->rest = s->text.p ? buf_view(&s->text) : STR("");
        if (str_starts(s->rest, STR("\xef\xbb\xbf"))) /* what some editors put before UTF-8 */
                s->rest = str_skip(s->rest, 3);
        s->if_depth = r->branch_count;
        return 0;
}

void lines_close(struct reader *r)
{
        while (r->depth)
                source_pop(r);
        for (size_t i = 0; i < r->file_count; i++)
                free(r->files[i]);
        free(r->files);
        buf_deinit(&r->line);
}

/* Reads the lines that a backslash joins into r->line. */
static void join(struct reader *r, struct source *s, struct str first)
{
        struct str more;

        buf_reset(&r->line);
        buf_add(&r->line, first.p, first.n - 1);
        while (physical(s, &more)) {
                bool again;

                more = str_trim_left(more);
                if (str_starts(more, STR("#")))
                        continue;
                more = str_trim(more);
                again = str_ends(more, STR("\\"));
                buf_add(&r->line, more.p, more.n - (again ? 1 : 0));
                if (!again)
                        break;
        }
}

int lines_next(struct reader *r, struct str *ret, struct place *at)
{
        while (r->depth) {
                struct source *s = &r->sources[r->depth - 1];
                struct str line;

                if (!physical(s, &line)) {
                        if (r->branch_count > s->if_depth)
                                return reader_fail(r, r->branches[r->branch_count - 1].at,
                                                   "this `if` has no `endif`");
                        if (r->depth == 1)
                                return 0;
                        source_pop(r);
                        continue;
                }
                line = str_trim(line);
                if (line.n == 0 || line.p[0] == '#')
                        continue;
                s->at.line = s->next - 1;
                *at = s->at;
                if (str_ends(line, STR("\\"))) {
                        join(r, s, line);
                        line = str_trim(buf_view(&r->line));
                        if (line.n == 0)
                                continue;
                }
                if (memchr(line.p, '\0', line.n) || memchr(line.p, '\x1f', line.n))
                        return reader_fail(r, *at, "there is a control character in this line");
                *ret = line;
                return 1;
        }
        return 0;
}

bool lines_item(struct reader *r, struct str *ret, struct place *at)
{
        if (!lines_raw(r, ret, at))
                return false;
        if (!str_starts(*ret, STR("#")) && str_ends(*ret, STR("\\"))) {
                join(r, &r->sources[r->depth - 1], *ret);
                *ret = str_trim(buf_view(&r->line));
        }
        return true;
}

bool lines_raw(struct reader *r, struct str *ret, struct place *at)
{
        struct source *s = &r->sources[r->depth - 1];

        if (!physical(s, ret))
                return false;
        *ret = str_trim(*ret);
        *at = (struct place){s->at.file, s->next - 1};
        return true;
}
