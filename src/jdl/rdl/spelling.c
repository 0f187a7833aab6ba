#include "jdl/rdl/spelling.h"

#include <errno.h>

#include "base/format/doc.h"
#include "base/mem.h"

struct spelling {
        const struct schema *schema;
        const char *file; /* the root's */
        unsigned nodes;
        size_t bytes; /* of texts; an alias of YAML counts as often as it is used */
        struct err *err;
};

#define BYTES_MAX (8u << 20)

static int refuse(const struct spelling *s, const struct doc *d, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static int refuse(const struct spelling *s, const struct doc *d, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        err_vset(s->err, -EINVAL, fmt, ap);
        va_end(ap);
        return doc_where(s->err, -EINVAL, d);
}

static bool has_attribute(const struct sums_element *e, struct str name)
{
        const struct sums_attribute *a = e->attributes;

        while (a->name && !str_eqz(name, a->name))
                a++;
        return a->name != NULL;
}

static int read_element(struct spelling *s, const struct doc *d, const struct sums_element *e,
                        struct xml **ret);

/* Appends the elements that a key stands for. */
static int read_elements(struct spelling *s, const struct doc *d, const struct sums_element *e,
                         struct xml ***end)
{
        const struct doc *i = d->kind == DOC_LIST ? d->first : d;
        int rc = 0;

        if (d->kind == DOC_LIST && d->count == 0)
                return refuse(s, d, "%s has an empty list", e->name);
        for (; i && rc == 0; i = d->kind == DOC_LIST ? i->next : NULL) {
                rc = i->kind == DOC_LIST ? refuse(s, i, "%s has a list within a list", e->name)
                                         : read_element(s, i, e, *end);
                if (**end)
                        *end = &(**end)->next;
        }
        return rc;
}

static int read_attribute(struct spelling *s, const struct doc *d, struct xml *x)
{
        if (d->kind != DOC_WORD)
                return refuse(s, d, "<%s> " STR_FMT ": a word is expected", x->name, STR_ARG(d->key));
        s->bytes += d->text.n;
        MEM_GROW(x->attributes, x->attribute_cap, x->attribute_count + 1);
        x->attributes[x->attribute_count++] = (struct xml_attribute){str_dupz(d->key), str_dupz(d->text)};
        return 0;
}

static int read_text(struct spelling *s, const struct doc *d, struct xml *x)
{
        if (d->kind != DOC_WORD)
                return refuse(s, d, "<%s> text: a word is expected", x->name);
        s->bytes += d->text.n;
        free(x->text);
        x->text = str_dupz(d->text);
        return 0;
}

/* Returns where the next element goes. */
static struct xml **add_empty(const struct spelling *s, const struct doc *d, const char *name,
                              struct xml **end)
{
        *end = mem_new(struct xml);
        **end = (struct xml){.name = mem_dupz(name), .text = mem_dupz(""), .line = d->line, .file = s->file};
        return &(*end)->next;
}

static int read_element(struct spelling *s, const struct doc *d, const struct sums_element *e,
                        struct xml **ret)
{
        struct xml *x, **end;
        int rc = 0;

        add_empty(s, d, e->name, ret);
        x = *ret;
        end = &x->first;
        if (++s->nodes > XML_NODES_MAX || s->bytes > BYTES_MAX)
                return refuse(s, d, "the file holds too much: at most %u elements and %u MiB", XML_NODES_MAX,
                              BYTES_MAX >> 20);
        if (d->kind == DOC_WORD)
                return d->empty ? 0 : read_text(s, d, x);
        for (const struct doc *i = d->first; i && rc == 0; i = i->next) {
                MEM_CLEANUP char *key = str_dupz(i->key);
                const struct sums_element *in = schema_element(s->schema, key, e->name);

                if (in)
                        rc = read_elements(s, i, in, &end);
                else if (e->has_text && str_eqz(i->key, "text"))
                        rc = read_text(s, i, x);
                else if (i->kind == DOC_WORD || has_attribute(e, i->key))
                        rc = read_attribute(s, i, x); /* the table says whether there is such a one */
                else                                  /* refused by the table as well */
                        end = add_empty(s, i, key, end);
        }
        return rc;
}

int spelling_read(const struct schema *schema, const char *name, struct str text, struct xml **ret,
                  struct err *err)
{
        struct spelling s = {.schema = schema, .err = err};
        const struct sums_element *e = schema->elements;
        struct xml *root = NULL;
        struct doc *doc = NULL;
        int rc = doc_parse(name, text, &doc, err);

        if (rc != 0)
                return rc;
        if (!doc_get(doc, e->name) || doc->count != 1) {
                rc = err_set(err, -EINVAL, "%s:%u: the file is to have the one key %s", name,
                             doc ? doc->line : 1, e->name);
        } else {
                char *file = mem_dupz(name);

                s.file = file;
                rc = read_element(&s, doc_get(doc, e->name), e, &root);
                root->file = file; /* the root's own, as xml_free has it */
        }
        doc_free(doc);
        if (rc == 0)
                *ret = root;
        else
                xml_free(root);
        return rc;
}
