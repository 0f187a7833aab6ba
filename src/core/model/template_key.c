#include "core/model/template_key.h"

#include <assert.h>

#include "base/map.h"
#include "base/pack.h"

#define OWN_MARK '\2' /* no whole key begins with it */

static char mark_of(const struct submission_attribute *a)
{
        return a->late ? '~' : '=';
}

static void add_variables(struct buf *out, const struct submission_part *p)
{
        for (size_t i = 0; i < p->variable_count; i++) {
                buf_char(out, '\1');
                buf_str(out, p->variables[i]);
        }
}

void template_key_whole(struct buf *out, const struct submission_part *p)
{
        for (size_t i = 0; i < p->attribute_count; i++) {
                buf_str(out, p->attributes[i].name);
                buf_char(out, mark_of(&p->attributes[i]));
                buf_str(out, p->attributes[i].text);
                buf_char(out, '\0');
        }
        add_variables(out, p);
}

uint64_t template_key_shape(struct str owner, const struct submission_part *p)
{
        BUF_CLEANUP struct buf shape = {0};

        buf_str(&shape, owner);
        for (size_t i = 0; i < p->attribute_count; i++) {
                buf_char(&shape, '\0');
                buf_str(&shape, p->attributes[i].name);
                buf_char(&shape, mark_of(&p->attributes[i]));
        }
        add_variables(&shape, p);
        return map_hash(shape.p, shape.n);
}

/* Takes the next attribute from a whole key. Returns false where its variables begin. */
static bool next_attribute(struct str *key, struct submission_attribute *ret)
{
        struct str entry;
        size_t n = 0;

        if (!key->n || key->p[0] == '\1' || !str_cut(key, '\0', &entry))
                return false;
        while (n < entry.n && entry.p[n] != '=' && entry.p[n] != '~')
                n++;
        *ret = (struct submission_attribute){str_head(entry, n), str_skip(entry, n + 1),
                                             n < entry.n && entry.p[n] == '~'};
        return true;
}

bool template_key_compare(struct str whole, const struct submission_part *p, struct template_own *ret)
{
        BUF_CLEANUP struct buf variables = {0};
        struct submission_attribute a;
        size_t at = 0;

        *ret = (struct template_own){0};
        for (; next_attribute(&whole, &a); at++) {
                const struct submission_attribute *b = &p->attributes[at];

                if (at == p->attribute_count || a.late != b->late || !str_eq(a.name, b->name))
                        return false;
                if (str_eq(a.text, b->text))
                        continue;
                if (ret->count == TEMPLATE_OWN_MAX)
                        return false;
                ret->at[ret->count++] = at;
                ret->bytes += b->text.n;
        }
        add_variables(&variables, p);
        return at == p->attribute_count && str_eq(whole, buf_view(&variables));
}

void template_key_own(struct buf *out, const struct job_template *from, const struct submission_part *p,
                      const struct template_own *own)
{
        buf_char(out, OWN_MARK);
        pack_u64(out, (uintptr_t)from);
        for (size_t i = 0; i < own->count; i++) {
                pack_u64(out, own->at[i]);
                pack_str(out, p->attributes[own->at[i]].text);
        }
}

void template_key_read(struct str whole, struct str own, struct submission_part *p)
{
        struct submission_attribute a;
        struct str name;

        while (next_attribute(&whole, &a))
                submission_add_attribute(p, a.name, a.text, a.late);
        for (whole = str_skip(whole, 1); whole.n && str_cut(&whole, '\1', &name);)
                submission_add_variable(p, name);
        if (!own.n)
                return;
        struct unpack u = unpack_from(str_skip(own, 1));
        unpack_u64(&u); /* whose key `whole` is */
        while (!unpack_done(&u)) {
                uint64_t at = unpack_u64(&u);

                assert(at < p->attribute_count);
                p->attributes[at].text = unpack_str(&u);
        }
}
