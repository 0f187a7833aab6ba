#include "core/model/changes.h"

#include "base/pack.h"
#include "core/model/submission.h"

void changes_add(struct buf *out, struct str name, bool late, struct str text)
{
        pack_str(out, name);
        pack_u64(out, late);
        pack_str(out, text);
}

bool changes_next(struct str *rest, struct submission_attribute *ret)
{
        struct unpack u = unpack_from(*rest);

        if (rest->n == 0)
                return false;
        *ret = (struct submission_attribute){.name = unpack_str(&u)};
        ret->late = unpack_max(&u, 1);
        ret->text = unpack_str(&u);
        *rest = str_make((const char *)u.p, (size_t)(u.end - u.p));
        return !u.bad;
}

bool changes_ok(struct str changes)
{
        struct submission_attribute a;
        size_t n = 0;

        while (changes.n) {
                if (!changes_next(&changes, &a) || a.name.n == 0)
                        return false;
                n++;
        }
        return n > 0;
}

static bool changes_have(struct str changes, struct str name)
{
        struct submission_attribute a;

        while (changes_next(&changes, &a))
                if (str_ieq(a.name, name))
                        return true;
        return false;
}

void changes_merge(struct buf *out, struct str old, struct str new)
{
        struct submission_attribute a;

        while (changes_next(&old, &a))
                if (!changes_have(new, a.name))
                        changes_add(out, a.name, a.late, a.text);
        buf_str(out, new);
}
