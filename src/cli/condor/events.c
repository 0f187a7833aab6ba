#include "cli/condor/events.h"

#include <errno.h>

static bool number(struct str *rest, char end, int64_t *ret)
{
        struct str word;

        return str_find(*rest, end) > 0 && str_cut(rest, end, &word) && str_to_i64(word, ret) == 0 &&
               *ret >= 0;
}

/* "005 (0007.000.000) …" */
static int read_head(struct str line, struct event *ret)
{
        int64_t what;

        if (!number(&line, ' ', &what) || what > 999 || line.n == 0 || line.p[0] != '(')
                return -EINVAL;
        line = str_skip(line, 1);
        if (!number(&line, '.', &ret->cluster) || !number(&line, '.', &ret->proc) ||
            !number(&line, ')', &ret->subproc))
                return -EINVAL;
        ret->number = (int)what;
        return 0;
}

int event_next(struct str *text, struct event *ret, struct err *err)
{
        struct str rest = *text, line, head = STR_NONE;
        const char *begin = NULL;

        while (str_find(rest, '\n') >= 0 && str_cut(&rest, '\n', &line)) {
                if (str_eqz(str_trim(line), "...") && begin) {
                        ret->text = str_make(begin, (size_t)(line.p - begin));
                        if (read_head(head, ret) != 0)
                                return err_set(err, -EINVAL,
                                               "\"" STR_FMT
                                               "\" does not begin an event of a job's log in text",
                                               STR_ARG(str_head(head, 80)));
                        *text = rest.p ? rest : str_make(text->p + text->n, 0);
                        return 1;
                }
                if (!begin && str_trim(line).n) {
                        begin = line.p;
                        head = line;
                }
        }
        /* Logs in XML or JSON have no such line at all. */
        if (begin && head.n && (head.p[0] == '<' || head.p[0] == '{'))
                return err_set(err, -EINVAL, "logs in XML and JSON are not read, only those in text");
        return 0;
}
