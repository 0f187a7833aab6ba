#include "base/job/path_parts.h"

bool path_parts_read(struct str letters, struct path_parts *p)
{
        for (size_t i = 0; i < letters.n; i++) {
                switch (letters.p[i] | 0x20) {
                case 'x': p->parts |= PATH_EXTENSION; break;
                case 'n': p->parts |= PATH_NAME; break;
                case 'p': p->parts |= PATH_PATH; break;
                case 'd':
                        p->parts |= PATH_LAST_DIRS;
                        p->dirs++;
                        break;
                case 'f': p->full = true; break;
                case 'b': p->bare = true; break;
                case 'q': p->quote = true; break;
                case 'a': p->argument_quote = true; break;
                case 'u': p->separator = '/'; break;
                case 'w': p->separator = '\\'; break;
                default: return false;
                }
        }
        return true;
}

/* Returns the index at which the last `dirs` directories before `base` begin. */
static size_t last_directories(struct str path, size_t base, unsigned dirs, char separator)
{
        size_t at = base;

        for (; dirs && at > 0; dirs--) {
                at--; /* the separator itself */
                while (at > 0 && path.p[at - 1] != separator)
                        at--;
        }
        return at;
}

/* The cases are those of HTCondor's evaluate_macro_func. */
struct str path_parts_select(const struct path_parts *p, struct str path)
{
        char separator = p->separator ? p->separator : '/';
        ptrdiff_t slash = str_rfind(path, separator), dot = str_rfind(path, '.');
        size_t base = (size_t)(slash + 1);
        size_t extension = dot > (ptrdiff_t)base ? (size_t)dot : path.n;
        size_t directory_end = p->bare && base > 0 ? base - 1 : base;
        unsigned parts = p->parts, names = parts & (PATH_EXTENSION | PATH_NAME);
        size_t from = 0, to = path.n;

        if (base == 0 && names)
                parts = names;
        if (parts & PATH_LAST_DIRS) {
                if (base == 0)
                        return str_make(path.p, 0);
                from = last_directories(path, base, p->dirs, separator);
                if (names == PATH_NAME)
                        to = extension;
                else if (!names)
                        to = directory_end > from ? directory_end : from;
        } else if (parts & PATH_PATH) {
                to = names == PATH_NAME ? extension : names ? path.n : directory_end;
        } else if (names == PATH_EXTENSION) {
                from = extension + (p->bare && extension < path.n ? 1 : 0);
        } else if (names) {
                from = base;
                to = names == PATH_NAME ? extension : path.n;
        }
        return str_make(path.p + from, to - from);
}
