#include "server/config/bank.h"

#include <errno.h>

#include "bank/bank.h"
#include "base/format/doc.h"
#include "base/mem.h"
#include "classad/expr.h"

#define RATES_MAX 1000u

void config_bank_deinit(struct config_bank *b)
{
        for (size_t i = 0; i < b->rate_count; i++) {
                free(b->rates[i].place);
                free(b->rates[i].account);
                free(b->rates[i].charge);
        }
        free(b->rates);
        *b = (struct config_bank){.on = false};
}

static int bank_refuse_setting(const struct doc *d, struct err *err, const char *why)
{
        err_set(err, -EINVAL, "%s", why);
        return doc_where(err, -EINVAL, d);
}

/* Reads one of two words, or nothing. */
static int bank_read_choice(const struct doc *map, const char *key, const char *no, const char *yes,
                            bool *ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        struct str word;
        int r = d ? doc_text(d, &word, err) : 0;

        if (r != 0 || !d)
                return r;
        *ret = str_eqz(word, yes);
        if (*ret || str_eqz(word, no))
                return 0;
        err_set(err, -EINVAL, "%s must be %s or %s", key, no, yes);
        return doc_where(err, -EINVAL, d);
}

static int read_empty(const struct doc *map, struct core_bank *ret, struct err *err)
{
        const struct doc *d = doc_get(map, "empty");
        struct str word = STR("hold");
        int r = d ? doc_text(d, &word, err) : 0;

        ret->refuse = str_eqz(word, "refuse");
        ret->hold = ret->refuse || str_eqz(word, "hold");
        if (r == 0 && !ret->hold && !str_eqz(word, "wait"))
                r = bank_refuse_setting(d, err, "empty must be hold, refuse or wait");
        return r;
}

static int bank_take_text(const struct doc *map, const char *key, char **ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        struct str text = STR_NONE;
        int r = d ? doc_text(d, &text, err) : 0;

        if (r == 0 && d)
                *ret = str_dupz(text);
        return r;
}

/* Checks that the expression is valid here, where its line is known. */
static int check_charge(const struct doc *d, const char *text, struct err *err)
{
        struct symbols *symbols = symbols_new();
        struct expr *x = NULL;
        struct err why;
        int r = expr_parse(symbols, str_of(text), &x, &why);

        if (r != 0) {
                err_set(err, -EINVAL, "charge: %s", why.text);
                r = doc_where(err, -EINVAL, d);
        }
        expr_free(x);
        symbols_free(symbols);
        return r;
}

static int bank_read_rate(struct config_bank *b, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"place", "account", "charge", NULL};
        struct config_bank_rate *x;
        int r = doc_only(d, keys, err);

        if (r != 0)
                return r;
        if (!doc_get(d, "charge"))
                return bank_refuse_setting(d, err, "a rate needs 'charge', an expression");
        b->rates = mem_array(b->rates, b->rate_count + 1, sizeof(*b->rates));
        x = &b->rates[b->rate_count++];
        *x = (struct config_bank_rate){.place = NULL};
        r = bank_take_text(d, "place", &x->place, err);
        if (r == 0)
                r = bank_take_text(d, "account", &x->account, err);
        if (r == 0)
                r = bank_take_text(d, "charge", &x->charge, err);
        return r ? r : check_charge(doc_get(d, "charge"), x->charge, err);
}

int config_bank_read(void *place, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"empty", "running",  "without_account", "lost",
                                           "lien",  "reserved", "rates",           NULL};
        struct config_bank *b = place;
        const struct doc *rates = doc_get(d, "rates"), *lien = doc_get(d, "lien");
        uint64_t ms = 0;
        int r = doc_only(d, keys, err);

        config_bank_deinit(b);
        b->on = true;
        if (r == 0)
                r = read_empty(d, &b->core, err);
        if (r == 0)
                r = bank_read_choice(d, "running", "continue", "hold", &b->core.stop, err);
        if (r == 0)
                r = bank_read_choice(d, "without_account", "refuse", "free", &b->core.others_free, err);
        if (r == 0)
                r = bank_read_choice(d, "lost", "free", "charge", &b->core.charge_lost, err);
        if (r == 0)
                r = bank_read_choice(d, "reserved", "used", "all", &b->core.charge_reserved, err);
        if (r == 0 && lien)
                r = doc_duration(lien, &ms, err);
        if (r == 0 && lien && ms == 0)
                r = bank_refuse_setting(lien, err, "lien must be longer than that");
        b->core.lien_ms = (int64_t)ms;
        if (r == 0 && rates && (rates->kind != DOC_LIST || rates->count > RATES_MAX))
                r = bank_refuse_setting(rates, err, "rates must be a list of at most 1000 rates");
        for (const struct doc *one = r == 0 && rates ? rates->first : NULL; one && r == 0; one = one->next)
                r = bank_read_rate(b, one, err);
        return r;
}

int config_bank_apply(const struct config_bank *b, struct core *c, struct err *err)
{
        struct core_bank settings = b->core;
        MEM_CLEANUP struct core_bank_rate *rates = mem_array(NULL, b->rate_count + 1, sizeof(*rates));

        if (!b->on)
                return 0;
        for (size_t i = 0; i < b->rate_count; i++)
                rates[i] = (struct core_bank_rate){.place = str_of(b->rates[i].place),
                                                   .account = str_of(b->rates[i].account),
                                                   .charge = str_of(b->rates[i].charge)};
        settings.rates = rates;
        settings.rate_count = b->rate_count;
        return core_bank_set(c, &settings, err);
}

void config_bank_unknown_places(const struct config_bank *b, const struct core *c,
                                void (*fn)(const char *place))
{
        const struct registry *machines = bank_machines(core_bank(c));

        for (size_t i = 0; i < b->rate_count; i++)
                if (b->rates[i].place &&
                    registry_ask_place(machines, str_of(b->rates[i].place)) == REGISTRY_UNKNOWN)
                        fn(b->rates[i].place);
}
