#include "server/agents/templates_place.h"

#define COUNT_MAX 100000

static bool starts(struct str s, const char *with)
{
        struct str head = str_head(s, strlen(with));
        return s.n > head.n && str_ieqz(head, with);
}

/* How many, or 0 when that is none of our names or no number. */
static uint32_t resource(struct eval *e, const struct ad *ad, symbol name, struct str text)
{
        int64_t n = 0;
        struct str what = str_skip(text, 7);
        if (!starts(text, "Request") || str_ieqz(what, "Cpus") || str_ieqz(what, "Memory") ||
            str_ieqz(what, "Disk") || !eval_integer(e, ad, NULL, name, &n))
                return 0;
        return n > 0 && n <= COUNT_MAX ? (uint32_t)n : 0;
}

static bool is_word(struct str text)
{
        static const char *const firsts[] = {"Batch",    "Slurm", "GridEngine", "Pbs",
                                             "Htcondor", "Lsf",   "Exec"};
        for (size_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++)
                if (starts(text, firsts[i]))
                        return true;
        return str_ieqz(text, "JobBatchName");
}

static char *word(struct message *m, struct eval *e, const struct ad *ad, symbol name)
{
        BUF_CLEANUP struct buf b = {0};
        struct str s;
        int64_t n;
        if (eval_string(e, ad, NULL, name, &s))
                return message_text(m, s);
        if (!eval_integer(e, ad, NULL, name, &n))
                return NULL;
        buf_printf(&b, "%lld", (long long)n);
        return message_text(m, buf_view(&b));
}

static void add_resource(struct message *m, Drover__Template *t, struct str name, uint32_t count)
{
        Drover__Resource *r = message_alloc(m, sizeof(*r));
        drover__resource__init(r);
        r->name = message_text(m, name);
        r->count = count;
        t->resources[t->n_resources++] = r;
}

static void add_attribute(struct message *m, Drover__Template *t, struct str name, char *value)
{
        Drover__Attribute *a = message_alloc(m, sizeof(*a));
        drover__attribute__init(a);
        a->name = message_text(m, name);
        a->value = value;
        t->attributes[t->n_attributes++] = a;
}

void templates_place(struct message *m, struct eval *e, const struct ad *ad, Drover__Template *t)
{
        size_t most = 0;
        for (const struct ad *p = ad; p; p = ad_parent(p))
                most += ad_count(p);
        t->resources = message_alloc(m, (most + 1) * sizeof(*t->resources));
        t->attributes = message_alloc(m, (most + 1) * sizeof(*t->attributes));
        for (const struct ad *p = ad; p; p = ad_parent(p)) {
                uint32_t at = 0;
                symbol name;
                const struct expr *x;
                while (ad_next(p, &at, &name, &x)) {
                        struct str text = symbols_name(ad_symbols(ad), name);
                        if (p != ad && ad_find_own(ad, name))
                                continue; /* the nearer one counts */
                        uint32_t count = resource(e, ad, name, text);
                        char *value = is_word(text) ? word(m, e, ad, name) : NULL;
                        if (count)
                                add_resource(m, t, str_skip(text, 7), count);
                        if (value)
                                add_attribute(m, t, text, value);
                }
        }
}
