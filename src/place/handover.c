#include "place/handover.h"

#include <errno.h>

#include "classad/expr.h"
#include "classad/print.h"

/* Attributes that every queue's ad has. Another server's places have other values. */
static const char *const own_names[] = {"AgentName",        "QueueName",    "Name",         "Machine",
                                        "Runner",           "DroverServer", "QueueType",    "Tags",
                                        "SearchOrder",      "Price",        "PullPolicy",   "EnforcedLimits",
                                        "FileSystemDomain", "UidDomain",    "CondorVersion"};

struct looks {
        const struct ad *own;
        bool stays;
};

static bool is_own(const struct looks *l, struct symbols *symbols, symbol name)
{
        for (size_t i = 0; i < sizeof(own_names) / sizeof(*own_names); i++)
                if (str_ieqz(symbols_name(symbols, name), own_names[i]))
                        return true;
        return l->own && ad_find(l->own, name);
}

struct asking {
        struct looks looks;
        struct symbols *symbols;
};

static void on_reference(void *arg, symbol name, bool target)
{
        struct asking *a = arg;

        a->looks.stays |= target && is_own(&a->looks, a->symbols, name);
}

static struct ad *job_ad(struct symbols *symbols, const struct handover_attribute *v, size_t count)
{
        struct ad *ad = ad_new(symbols);

        for (size_t i = 0; i < count; i++) {
                symbol name = symbols_intern(symbols, str_of(v[i].name));

                if (ad_set_text(ad, name, str_of(v[i].value), NULL) != 0)
                        ad_set_undefined(ad, name);
        }
        return ad;
}

int handover_requirements(const char *requirements, const struct handover_attribute *attributes, size_t count,
                          const char *own, struct buf *out, struct err *err)
{
        struct symbols *symbols = symbols_new();
        BUF_CLEANUP struct buf text = {0};
        struct asking a = {.symbols = symbols};
        struct ad *own_ad = NULL, *my = job_ad(symbols, attributes, count);
        struct expr *e = NULL;
        struct err why = {""};
        size_t before = out->n;
        int r = expr_parse(symbols, str_of(requirements), &e, &why);

        if (own) {
                buf_printf(&text, "[ %s ]", own);
                if (ad_parse(symbols, buf_view(&text), CLASSAD_NEW, &own_ad, NULL) == 0)
                        a.looks.own = own_ad;
        }
        for (unsigned n = 0; r == 0 && n < expr_clause_count(e); n++) {
                struct expr_uses uses;

                a.looks.stays = false;
                expr_clause_references(e, n, my, on_reference, &a, &uses);
                if (a.looks.stays)
                        continue;
                buf_addz(out, out->n > before ? " && (" : "(");
                expr_print_clause(out, e, n, symbols);
                buf_char(out, ')');
        }
        if (r == 0 && out->n == before)
                buf_addz(out, "true");
        expr_free(e);
        ad_free(own_ad);
        ad_free(my);
        symbols_free(symbols);
        return r ? err_set(err, -EINVAL, "the job's Requirements cannot be read: %s", why.text) : 0;
}
