/* Accounts are records in a map by name, and stand in the tree as well; allocations stand in their account in
 * the order in which they are spent: the soonest end first, so that nothing expires which could have been
 * used. A lien notes what it holds of which allocation, and an allocation counts its liens; it stays as long
 * as it has any, so what was reserved in time can be charged after its end.
 *
 * Each operation is one function that looks first and then, if it is to be carried out, changes the books and
 * cannot fail any more: bank_check stops it in between (struct run, `only_check`). */
#include "bank/bank.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/map.h"
#include "base/pack.h"

struct bank {
        struct map *accounts;       /* by name */
        struct bank_account *roots; /* sorted by name, as children are */
        struct idmap *liens;        /* by number */
        struct map *job_liens;      /* the same that are of jobs, by struct job_key */
        struct map *named_liens;    /* the others that have a reason, by lien_name */
        struct bank_quote *quotes;  /* in the order of their numbers */
        size_t quote_count, quote_cap;
        size_t account_count, other_liens;
        int64_t issued, earned; /* the balances of the bank's own accounts */
        int64_t credits;        /* the sum of all credit limits */
        uint64_t last_id;       /* of allocations, liens and quotes */
        uint64_t serial;        /* of the last movement */
        uint64_t generation;
        struct heap by_end; /* liens that have an end */
        struct registry *machines, *users;
};

struct job_key {
        uint64_t request, member;
};

/* One call of bank_check or bank_apply. */
struct run {
        struct bank *bank;
        const struct bank_order *order;
        int64_t at_ms;
        bool only_check;
        bank_entry_fn *fn;
        void *arg;
        uint64_t id;
        struct err *err;
};

/* ---- looking */

static bool ends_first(const struct heap_node *a, const struct heap_node *b)
{
        const struct bank_lien *x = container_of(a, struct bank_lien, by_end);
        const struct bank_lien *y = container_of(b, struct bank_lien, by_end);

        return x->end_ms != y->end_ms ? x->end_ms < y->end_ms : x->id < y->id;
}

struct bank *bank_new(void)
{
        struct bank *b = mem_new(struct bank);

        b->accounts = map_new();
        b->liens = idmap_new();
        b->job_liens = map_new();
        b->named_liens = map_new();
        b->by_end.before = ends_first;
        b->machines = registry_new(REGISTRY_MACHINES);
        b->users = registry_new(REGISTRY_USERS);
        return b;
}

static void allocation_free(struct bank_allocation *x)
{
        free(x->places);
        free(x->users);
        free(x);
}

static void account_free(struct bank_account *a)
{
        for (uint32_t i = 0; i < a->allocation_count; i++)
                allocation_free(a->allocations[i]);
        for (uint32_t i = 0; i < a->member_count; i++)
                free(a->members[i].user);
        free(a->allocations);
        free(a->members);
        free(a->name);
        free(a->text);
        free(a);
}

static void lien_free(struct bank_lien *l)
{
        free(l->user);
        free(l->place);
        free(l->why);
        free(l->job);
        free(l->shares);
        free(l);
}

static void quote_deinit(struct bank_quote *q)
{
        free(q->user);
        free(q->place);
        free(q->qos);
        free(q->text);
}

void bank_free(struct bank *b)
{
        void *value;

        if (!b)
                return;
        for (size_t at = 0; map_next(b->accounts, &at, NULL, &value);)
                account_free(value);
        for (size_t at = 0; idmap_next(b->liens, &at, NULL, &value);)
                lien_free(value);
        for (size_t i = 0; i < b->quote_count; i++)
                quote_deinit(&b->quotes[i]);
        map_free(b->accounts);
        map_free(b->job_liens);
        map_free(b->named_liens);
        heap_deinit(&b->by_end);
        idmap_free(b->liens);
        registry_free(b->machines);
        registry_free(b->users);
        free(b->quotes);
        free(b);
}

struct bank_account *bank_account(const struct bank *b, struct str name)
{
        return name.n ? map_get(b->accounts, name) : NULL;
}

struct bank_account *bank_account_above(const struct bank *b, struct str name)
{
        struct bank_account *a = bank_account(b, name);

        while (!a && name.n && str_find(name, '@') < 0 && str_rfind(name, '.') > 0) {
                name = str_head(name, (size_t)str_rfind(name, '.'));
                a = bank_account(b, name);
        }
        return a;
}

/* ann@lab, *@lab, * */
static bool pattern_is_user(struct str pattern, struct str user)
{
        if (str_eqz(pattern, "*"))
                return user.n > 0;
        if (pattern.n > 1 && pattern.p[0] == '*' && pattern.p[1] == '@')
                return user.n >= pattern.n && str_ends(user, str_skip(pattern, 1));
        return str_eq(pattern, user);
}

bool bank_place_fits(struct str pattern, struct str place)
{
        ptrdiff_t slash = str_find(place, '/');

        return str_eqz(pattern, "*") || str_eq(pattern, place) ||
               (slash >= 0 && str_eq(pattern, str_head(place, (size_t)slash)));
}

static bool list_has(const char *list, struct str what, bool (*is)(struct str pattern, struct str what))
{
        struct str rest = str_of(list), one;

        if (!list)
                return true;
        while (str_cut(&rest, ',', &one))
                if (is(str_trim(one), what))
                        return true;
        return false;
}

static bool allocation_is_open(const struct bank_allocation *x, int64_t at_ms)
{
        return x->start_ms <= at_ms && (x->end_ms == 0 || at_ms < x->end_ms);
}

/* The part of the allocation that a lien or a charge could take. */
static int64_t allocation_room(const struct bank_allocation *x, struct str user, struct str place,
                               int64_t at_ms)
{
        if (!allocation_is_open(x, at_ms) || !list_has(x->users, user, pattern_is_user) ||
            !list_has(x->places, place, bank_place_fits))
                return 0;
        return x->amount - x->held > -x->credit ? x->amount - x->held + x->credit : 0;
}

/* The part that can be taken away: credit is not. */
static int64_t allocation_rest(const struct bank_allocation *x)
{
        return x->amount > x->held ? x->amount - x->held : 0;
}

int64_t bank_available(const struct bank_account *a, struct str user, struct str place, int64_t at_ms)
{
        int64_t sum = 0;

        for (uint32_t i = 0; !a->closed && i < a->allocation_count; i++)
                sum += allocation_room(a->allocations[i], user, place, at_ms);
        return sum;
}

int64_t bank_available_any(const struct bank_account *a, int64_t at_ms)
{
        int64_t sum = 0;

        for (uint32_t i = 0; !a->closed && i < a->allocation_count; i++) {
                const struct bank_allocation *x = a->allocations[i];

                if (allocation_is_open(x, at_ms) && x->amount - x->held > -x->credit)
                        sum += x->amount - x->held + x->credit;
        }
        return sum;
}

enum bank_role bank_role_of(const struct bank_account *a, struct str user)
{
        enum bank_role role = BANK_ROLE_NONE;

        for (; a; a = a->parent)
                for (uint32_t i = 0; i < a->member_count; i++)
                        if (a->members[i].role > role && pattern_is_user(str_of(a->members[i].user), user))
                                role = a->members[i].role;
        return role;
}

static struct bank_account *root_of(struct bank_account *a)
{
        while (a->parent)
                a = a->parent;
        return a;
}

/* Whether the quote's time is not over, at least for one job. */
static bool quote_is_open_to_any(const struct bank_quote *q, int64_t at_ms)
{
        return bank_quote_is_open(q, q->request, q->member, at_ms);
}

bool bank_share_is_left(const struct bank *b, enum bank_op op, struct str account, int64_t now_ms)
{
        ptrdiff_t dot = str_find(account, '@') < 0 ? str_find(account, '.') : -1;
        const struct bank_account *root = bank_account(b, dot < 0 ? account : str_head(account, (size_t)dot));
        size_t open = 0;

        if (!root)
                return true;
        if (op == BANK_OPEN)
                return root->tree_accounts < BANK_ACCOUNTS_MAX / BANK_SHARE;
        if (op == BANK_LIEN)
                return root->tree_liens < BANK_LIENS_MAX / BANK_SHARE;
        for (size_t i = 0; op == BANK_QUOTE && i < b->quote_count; i++)
                open += quote_is_open_to_any(&b->quotes[i], now_ms) && root_of(b->quotes[i].account) == root;
        return open < BANK_QUOTES_MAX / BANK_SHARE;
}

static struct str job_key(struct job_key *k, uint64_t request, uint32_t member)
{
        *k = (struct job_key){request, member};
        return str_make((const char *)k, sizeof(*k));
}

static struct bank_lien *lien_of(const struct bank *b, uint64_t request, uint32_t member)
{
        struct job_key k;

        return map_get(b->job_liens, job_key(&k, request, member));
}

const struct bank_lien *bank_lien(const struct bank *b, uint64_t id)
{
        return idmap_get(b->liens, id);
}

const struct bank_lien *bank_lien_of(const struct bank *b, uint64_t request, uint32_t member)
{
        return lien_of(b, request, member);
}

size_t bank_liens(const struct bank *b)
{
        return idmap_count(b->liens);
}

static struct bank_quote *quote_find(const struct bank *b, uint64_t id)
{
        for (size_t i = 0; id && i < b->quote_count; i++)
                if (b->quotes[i].id == id)
                        return &b->quotes[i];
        return NULL;
}

const struct bank_quote *bank_quote(const struct bank *b, uint64_t id)
{
        return quote_find(b, id);
}

bool bank_quote_is_open(const struct bank_quote *q, uint64_t request, uint32_t member, int64_t at_ms)
{
        return q->end_ms > at_ms ||
               (request && q->request == request && q->member == member && q->kept_ms > at_ms);
}

const struct registry *bank_machines(const struct bank *b)
{
        return b->machines;
}

const struct registry *bank_users(const struct bank *b)
{
        return b->users;
}

const struct bank_lien *bank_lien_over(const struct bank *b, int64_t at_ms)
{
        const struct heap_node *first = heap_first(&b->by_end);
        const struct bank_lien *l = first ? container_of(first, struct bank_lien, by_end) : NULL;

        return l && l->end_ms <= at_ms ? l : NULL;
}

uint64_t bank_generation(const struct bank *b)
{
        return b->generation;
}

int64_t bank_issued(const struct bank *b)
{
        return b->issued;
}

int64_t bank_earned(const struct bank *b)
{
        return b->earned;
}

static void account_each(const struct bank_account *a, void (*fn)(void *arg, const struct bank_account *a),
                         void *arg)
{
        for (; a; a = a->next) {
                fn(arg, a);
                account_each(a->children, fn, arg);
        }
}

void bank_accounts_each(const struct bank *b, void (*fn)(void *arg, const struct bank_account *a), void *arg)
{
        account_each(b->roots, fn, arg);
}

static int by_id(const void *x, const void *y)
{
        const struct bank_lien *a = *(struct bank_lien *const *)x, *b = *(struct bank_lien *const *)y;

        return (a->id > b->id) - (a->id < b->id);
}

void bank_liens_each(const struct bank *b, void (*fn)(void *arg, const struct bank_lien *l), void *arg)
{
        size_t n = idmap_count(b->liens), at = 0, i = 0;
        MEM_CLEANUP const struct bank_lien **all = mem_array(NULL, n + 1, sizeof(*all));
        void *value;

        while (idmap_next(b->liens, &at, NULL, &value))
                all[i++] = value;
        qsort(all, n, sizeof(*all), by_id);
        for (i = 0; i < n; i++)
                fn(arg, all[i]);
}

void bank_quotes_each(const struct bank *b, void (*fn)(void *arg, const struct bank_quote *q), void *arg)
{
        for (size_t i = 0; i < b->quote_count; i++)
                fn(arg, &b->quotes[i]);
}

/* ---- movements */

/* One end of a movement: an account with its allocation, or one of the bank's own. */
struct side {
        const char *own; /* BANK_ISSUED, BANK_EARNED */
        struct bank_account *account;
        struct bank_allocation *allocation;
};

static int64_t side_add(struct bank *b, const struct side *s, int64_t amount)
{
        if (s->account) {
                s->allocation->amount += amount;
                return s->account->balance += amount;
        }
        return *(strcmp(s->own, BANK_ISSUED) == 0 ? &b->issued : &b->earned) += amount;
}

static void amount_move(struct run *r, struct side from, struct side to, int64_t amount,
                        const struct bank_lien *l)
{
        const struct bank_order *o = r->order;
        struct bank_entry e = {
                .serial = ++r->bank->serial,
                .at_ms = r->at_ms,
                .op = o->op,
                .from = from.account ? from.account->name : from.own,
                .to = to.account ? to.account->name : to.own,
                .from_allocation = from.allocation ? from.allocation->id : 0,
                .to_allocation = to.allocation ? to.allocation->id : 0,
                .amount = amount,
                .request = l ? l->request : o->request,
                .lien = l ? l->id : 0,
                .member = l ? l->member : (uint32_t)(set_count(&o->members) ? set_first(&o->members) : 0),
                .fence = l ? l->fence : o->fence,
                .who = o->who,
                .user = o->user.n || !l ? o->user : str_of(l->user),
                .place = o->place.n || !l ? o->place : str_of(l->place),
                .why = o->why.n || !l ? o->why : str_of(l->why),
                .job = o->job.n || !l ? o->job : str_of(l->job),
        };

        assert(amount > 0);
        e.from_balance = side_add(r->bank, &from, -amount);
        e.to_balance = side_add(r->bank, &to, amount);
        if (r->fn)
                r->fn(r->arg, &e);
}

static const struct side issued = {.own = BANK_ISSUED}, earned = {.own = BANK_EARNED};

/* Ended, with nothing reserved: what is left in it is nobody's any more. A debt stays. */
static bool is_nobodys(const struct bank_allocation *x, int64_t at_ms)
{
        return x->end_ms != 0 && x->end_ms <= at_ms && x->liens == 0 && x->amount >= 0;
}

static void account_close_ended(struct run *r, struct bank_account *a)
{
        const struct bank_order ended = {
                .op = BANK_WITHDRAW, .who = r->order->who, .why = STR("the allocation has ended")};
        struct run closing = *r;

        closing.order = &ended;
        for (uint32_t i = 0; i < a->allocation_count;) {
                struct bank_allocation *x = a->allocations[i];

                if (!is_nobodys(x, r->at_ms)) {
                        i++;
                        continue;
                }
                if (x->amount > 0)
                        amount_move(&closing, (struct side){.account = a, .allocation = x}, issued, x->amount,
                                    NULL);
                r->bank->credits -= x->credit;
                memmove(a->allocations + i, a->allocations + i + 1,
                        (--a->allocation_count - i) * sizeof(*a->allocations));
                allocation_free(x);
        }
}

/* ---- accounts */

static bool name_is_account(struct str name)
{
        bool person = str_find(name, '@') >= 0;
        unsigned depth = 1;

        if (name.n == 0 || name.n > BANK_NAME_MAX || name.p[0] == '@' || name.p[0] == '.' ||
            name.p[name.n - 1] == '.')
                return false;
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];

                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.' || c == '@'))
                        return false;
                if (c == '.' && !person && (name.p[i - 1] == '.' || ++depth > BANK_DEPTH_MAX))
                        return false;
        }
        return true;
}

static void account_link(struct bank *b, struct bank_account *a)
{
        struct bank_account **at = a->parent ? &a->parent->children : &b->roots;

        while (*at && strcmp((*at)->name, a->name) < 0)
                at = &(*at)->next;
        a->next = *at;
        *at = a;
}

static struct bank_account *account_new(struct bank *b, struct str name, struct bank_account *parent)
{
        struct bank_account *a = mem_new(struct bank_account);

        a->name = str_dupz(name);
        a->parent = parent;
        account_link(b, a);
        map_put(b->accounts, name, a);
        b->account_count++;
        root_of(a)->tree_accounts++;
        return a;
}

static int need_account(struct run *r, struct str name, struct bank_account **ret)
{
        *ret = bank_account(r->bank, name);
        if (*ret)
                return 0;
        return err_set(r->err, BANK_UNKNOWN, "the bank has no account " STR_FMT,
                       STR_ARG(str_head(name, BANK_NAME_MAX)));
}

/* The same, and the account is not closed. */
static int need_open_account(struct run *r, struct str name, struct bank_account **ret)
{
        int e = need_account(r, name, ret);

        if (!e && (*ret)->closed)
                e = err_set(r->err, BANK_CONFLICT,
                            "the account %s is closed: drover bank account %s --new opens it again",
                            (*ret)->name, (*ret)->name);
        return e;
}

/* Replaces or removes a text, or leaves it as it is. */
static void text_set(char **text, struct str value, bool clears)
{
        if (!value.n && !clears)
                return;
        free(*text);
        *text = value.n ? str_dupz(value) : NULL;
}

static int run_open(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank_account *a = bank_account(r->bank, o->account), *parent = NULL;

        if (!name_is_account(o->account))
                return err_set(r->err, BANK_INVALID,
                               "the name of an account is letters, digits and -_, in at most %u parts with "
                               "dots between, "
                               "or a user as ann@domain",
                               BANK_DEPTH_MAX);
        if (!a && r->bank->account_count >= BANK_ACCOUNTS_MAX)
                return err_set(r->err, BANK_INVALID, "the bank has %u accounts already, and takes no more",
                               BANK_ACCOUNTS_MAX);
        if (!a && str_find(o->account, '@') < 0 && str_rfind(o->account, '.') > 0) {
                struct str above = str_head(o->account, (size_t)str_rfind(o->account, '.'));

                parent = bank_account(r->bank, above);
                if (!parent)
                        return err_set(r->err, BANK_UNKNOWN,
                                       "the account above, " STR_FMT ", is not there: open it first",
                                       STR_ARG(above));
        }
        if (a)
                parent = a->parent;
        if (parent && parent->closed)
                return err_set(r->err, BANK_CONFLICT, "the account above, %s, is closed: open it first",
                               parent->name);
        if (r->only_check)
                return 0;
        if (!a)
                a = account_new(r->bank, o->account, parent);
        a->closed = false;
        text_set(&a->text, o->why, o->clears & BANK_CLEARS_WHY);
        r->bank->generation++; /* jobs may wait for an account */
        return 0;
}

static int run_close(struct run *r)
{
        struct bank_account *a, *below;
        bool has_money = false;
        int e = need_open_account(r, r->order->account, &a);

        if (e)
                return e;
        for (uint32_t i = 0; i < a->allocation_count; i++)
                has_money |= (a->allocations[i]->amount != 0 && !is_nobodys(a->allocations[i], r->at_ms)) ||
                             a->allocations[i]->liens > 0;
        if (has_money)
                return err_set(r->err, BANK_CONFLICT,
                               "the account %s has a balance of %lld, and %lld that is reserved: withdraw or "
                               "transfer what is left, or deposit what it owes into the allocation that "
                               "owes it, before it is closed",
                               a->name, (long long)a->balance, (long long)a->held);
        for (below = a->children; below && below->closed; below = below->next)
                ;
        if (below)
                return err_set(r->err, BANK_CONFLICT,
                               "the account %s, below it, is open: close that one first", below->name);
        if (r->only_check)
                return 0;
        account_close_ended(r, a);
        a->closed = true;
        r->bank->generation++; /* what its jobs wait for has changed */
        return 0;
}

/* Changes an account that is there. */
static int run_account(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank_account *a;
        int e = need_account(r, o->account, &a);

        if (!e && !o->activity && !o->why.n && !(o->clears & BANK_CLEARS_WHY))
                e = err_set(r->err, BANK_INVALID,
                            "nothing is changed: give a description, or whether the account is active");
        if (!e && o->activity)
                e = o->activity == BANK_ACTIVE ? run_open(r) : run_close(r);
        if (!e && !r->only_check)
                text_set(&a->text, o->why, o->clears & BANK_CLEARS_WHY);
        return e;
}

static int run_member(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank_account *a;
        uint32_t i = 0;
        int e = need_account(r, o->account, &a);

        if (e)
                return e;
        if (o->user.n == 0 || o->user.n > BANK_NAME_MAX)
                return err_set(r->err, BANK_INVALID, "a member is a user as ann@domain, *@domain or *");
        while (i < a->member_count && !str_eqz(o->user, a->members[i].user))
                i++;
        if (i == a->member_count && o->role == BANK_ROLE_NONE)
                return err_set(r->err, BANK_UNKNOWN, STR_FMT " is no member of %s", STR_ARG(o->user),
                               a->name);
        if (i == BANK_MEMBERS_MAX)
                return err_set(r->err, BANK_INVALID,
                               "the account %s has %u members already, and takes no more", a->name,
                               BANK_MEMBERS_MAX);
        if (r->only_check)
                return 0;
        r->bank->generation++;
        if (i == a->member_count) {
                MEM_GROW(a->members, a->member_cap, i + 1);
                a->members[a->member_count++] = (struct bank_member){.user = str_dupz(o->user)};
        }
        a->members[i].role = o->role;
        if (o->role == BANK_ROLE_NONE) {
                free(a->members[i].user);
                memmove(a->members + i, a->members + i + 1, (--a->member_count - i) * sizeof(*a->members));
        }
        return 0;
}

/* ---- registers of machines and of users */

/* Returns the register that the order is about, and gives the name in it. */
static struct registry *registry_of(const struct run *r, struct str *ret_name)
{
        const struct bank_order *o = r->order;
        bool user = o->op == BANK_USER || (o->op != BANK_MACHINE && !o->place.n && o->user.n);

        *ret_name = user ? o->user : o->place;
        return user ? r->bank->users : r->bank->machines;
}

static int need_entry(struct run *r, struct registry **ret_registry, struct registry_entry **ret)
{
        struct str name;

        *ret_registry = registry_of(r, &name);
        *ret = registry_get(*ret_registry, name);
        if (*ret)
                return 0;
        return err_set(r->err, BANK_UNKNOWN, "the bank has no %s " STR_FMT, registry_word(*ret_registry),
                       STR_ARG(name));
}

static void entry_set(struct run *r, struct registry_entry *x)
{
        const struct bank_order *o = r->order;

        text_set(&x->text, o->why, o->clears & BANK_CLEARS_WHY);
        text_set(&x->arch, o->arch, o->clears & BANK_CLEARS_ARCH);
        text_set(&x->opsys, o->opsys, o->clears & BANK_CLEARS_OPSYS);
        if (o->activity)
                x->inactive = o->activity == BANK_INACTIVE;
        r->bank->generation++; /* jobs may wait for the machine or the user */
}

static int check_entry_texts(struct run *r)
{
        if (r->order->arch.n <= BANK_NAME_MAX && r->order->opsys.n <= BANK_NAME_MAX)
                return 0;
        return err_set(r->err, BANK_INVALID, "an architecture or operating system is longer than %u bytes",
                       BANK_NAME_MAX);
}

static int run_register(struct run *r)
{
        struct str name;
        struct registry *in = registry_of(r, &name);
        const char *word = registry_word(in);
        int e = check_entry_texts(r);

        if (!e && !registry_name_ok(in, name))
                e = err_set(r->err, BANK_INVALID,
                            "the name of a %s is %s, with at most %u bytes, and without spaces, commas and *",
                            word, registry_name_form(in), BANK_NAME_MAX);
        if (!e && registry_get(in, name))
                e = err_set(r->err, BANK_CONFLICT, "the bank has the %s " STR_FMT " already", word,
                            STR_ARG(name));
        if (!e && registry_count(in) >= REGISTRY_MAX)
                e = err_set(r->err, BANK_INVALID, "the bank has %u %ss already, and takes no more",
                            REGISTRY_MAX, word);
        if (!e && !r->only_check)
                entry_set(r, registry_add(in, name));
        return e;
}

/* Changes a machine or a user. */
static int run_entry(struct run *r)
{
        struct registry_entry *x;
        struct registry *in;
        int e = check_entry_texts(r);

        if (!e)
                e = need_entry(r, &in, &x);
        if (!e && !r->only_check)
                entry_set(r, x);
        return e;
}

static int run_unregister(struct run *r)
{
        struct registry_entry *x;
        struct registry *in;
        int e = need_entry(r, &in, &x);

        if (e || r->only_check)
                return e;
        registry_remove(in, x);
        r->bank->generation++;
        return 0;
}

/* Checks the user for whom money is promised or reserved. */
static int check_user(struct run *r, struct str user)
{
        if (!registry_is_inactive(r->bank->users, user))
                return 0;
        return err_set(r->err, BANK_CONFLICT, "the user " STR_FMT " is inactive in the bank", STR_ARG(user));
}

/* Checks a place that an order names: an empty one names none, and * names all. */
static int check_place(struct run *r, struct str place, bool used_later)
{
        enum registry_answer answer = place.n && !str_eqz(place, "*")
                                              ? registry_ask_place(r->bank->machines, place)
                                              : REGISTRY_ACTIVE;

        if (answer == REGISTRY_UNKNOWN)
                return err_set(r->err, BANK_UNKNOWN,
                               "the bank has no machine " STR_FMT
                               ": drover bank machines lists those that it has",
                               STR_ARG(place));
        if (answer == REGISTRY_INACTIVE && used_later)
                return err_set(r->err, BANK_CONFLICT, "the machine " STR_FMT " is inactive in the bank",
                               STR_ARG(place));
        return 0;
}

/* ---- allocations */

static bool ends_before(const struct bank_allocation *a, const struct bank_allocation *b)
{
        int64_t x = a->end_ms ? a->end_ms : INT64_MAX, y = b->end_ms ? b->end_ms : INT64_MAX;

        return x != y ? x < y : a->id < b->id;
}

static void allocation_place(struct bank_account *a, struct bank_allocation *x)
{
        uint32_t i = a->allocation_count;

        MEM_GROW(a->allocations, a->allocation_cap, i + 1);
        for (; i > 0 && ends_before(x, a->allocations[i - 1]); i--)
                a->allocations[i] = a->allocations[i - 1];
        a->allocations[i] = x;
        a->allocation_count++;
}

static void allocation_take_out(struct bank_account *a, const struct bank_allocation *x)
{
        uint32_t i = 0;

        while (a->allocations[i] != x)
                i++;
        memmove(a->allocations + i, a->allocations + i + 1,
                (--a->allocation_count - i) * sizeof(*a->allocations));
}

static struct bank_allocation *allocation_find(const struct bank_account *a, uint64_t id)
{
        for (uint32_t i = 0; i < a->allocation_count; i++)
                if (a->allocations[i]->id == id)
                        return a->allocations[i];
        return NULL;
}

bool bank_allocation_is_open(const struct bank_account *a, uint64_t id, int64_t at_ms)
{
        const struct bank_allocation *x = allocation_find(a, id);

        return x && allocation_is_open(x, at_ms);
}

static int need_allocation(struct run *r, const struct bank_account *a, struct bank_allocation **ret)
{
        *ret = allocation_find(a, r->order->id);
        if (*ret)
                return 0;
        return err_set(r->err, BANK_UNKNOWN, "the account %s has no allocation %llu", a->name,
                       (unsigned long long)r->order->id);
}

static int check_amount(struct run *r, bool may_be_none)
{
        int64_t amount = r->order->amount;

        if (amount > (may_be_none ? -1 : 0) && amount <= BANK_AMOUNT_MAX)
                return 0;
        return err_set(r->err, BANK_INVALID, "an amount is a whole number from %d to %lld",
                       may_be_none ? 0 : 1, (long long)BANK_AMOUNT_MAX);
}

static int check_dates(struct run *r, int64_t credit_before)
{
        const struct bank_order *o = r->order;

        if (o->start_ms < 0 || o->end_ms < 0 || (o->end_ms && o->end_ms <= o->start_ms))
                return err_set(r->err, BANK_INVALID, "an allocation ends after it starts");
        if (o->credit < 0 || o->credit > BANK_AMOUNT_MAX - (r->bank->credits - credit_before))
                return err_set(
                        r->err, BANK_INVALID,
                        "a credit limit is a whole number from 0 on, and all together are at most %lld",
                        (long long)BANK_AMOUNT_MAX);
        if (o->places.n > BANK_TEXT_MAX || o->users.n > BANK_TEXT_MAX)
                return err_set(r->err, BANK_INVALID, "a list of places or users is longer than %u bytes",
                               BANK_TEXT_MAX);
        return 0;
}

static char *text_or_null(struct str s)
{
        return s.n ? str_dupz(s) : NULL;
}

static int run_deposit(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank_allocation *x = NULL;
        struct str rest = o->places, one;
        struct bank_account *a;
        int e = need_open_account(r, o->account, &a);

        if (!e)
                e = check_amount(r, o->credit > 0 && !o->id);
        if (!e)
                e = o->id ? need_allocation(r, a, &x) : check_dates(r, 0);
        while (!e && !x && rest.n && str_cut(&rest, ',', &one))
                e = check_place(r, str_trim(one), false);
        if (!e && x && x->end_ms && x->end_ms <= r->at_ms && o->amount > -x->amount)
                e = err_set(r->err, BANK_INVALID,
                            "allocation %llu of %s has ended, and takes only what it owes",
                            (unsigned long long)x->id, a->name);
        if (!e && !x && o->end_ms && o->end_ms <= r->at_ms)
                e = err_set(r->err, BANK_INVALID, "the allocation would have ended already");
        if (!e && !x && a->allocation_count >= BANK_ALLOCATIONS_MAX)
                e = err_set(r->err, BANK_INVALID,
                            "the account %s has %u allocations, and takes no more: deposit into one of them",
                            a->name, BANK_ALLOCATIONS_MAX);
        if (!e && -r->bank->issued > BANK_AMOUNT_MAX - o->amount)
                e = err_set(r->err, BANK_INVALID, "all deposits together would be more than %lld",
                            (long long)BANK_AMOUNT_MAX);
        if (e || r->only_check)
                return e;
        account_close_ended(r, a);
        if (!x) {
                x = mem_new(struct bank_allocation);
                x->id = ++r->bank->last_id;
                x->credit = o->credit;
                r->bank->credits += x->credit;
                x->start_ms = o->start_ms;
                x->end_ms = o->end_ms;
                x->places = text_or_null(o->places);
                x->users = text_or_null(o->users);
                allocation_place(a, x);
        }
        if (o->amount)
                amount_move(r, issued, (struct side){.account = a, .allocation = x}, o->amount, NULL);
        r->id = x->id;
        r->bank->generation++;
        return 0;
}

/* Ends an allocation now. Liens that were made before still take money out of it; what they do not hold is
 * nobody's any more. */
static int allocation_end(struct run *r, struct bank_account *a, struct bank_allocation *x)
{
        r->id = x->id;
        allocation_take_out(a, x);
        if (x->start_ms >= r->at_ms)
                x->start_ms = 0;
        if (!x->end_ms || x->end_ms > r->at_ms)
                x->end_ms = r->at_ms;
        allocation_place(a, x);
        account_close_ended(r, a);
        r->bank->generation++;
        return 0;
}

static int run_set(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank_allocation *x = NULL;
        struct bank_account *a;
        int e = need_account(r, o->account, &a);

        if (!e)
                e = need_allocation(r, a, &x);
        if (!e && o->activity == BANK_INACTIVE)
                return r->only_check ? 0 : allocation_end(r, a, x);
        if (!e)
                e = check_dates(r, x->credit);
        if (!e && x->amount - x->held < -o->credit)
                e = err_set(r->err, BANK_CONFLICT, "allocation %llu of %s uses %lld of its credit now",
                            (unsigned long long)x->id, a->name, (long long)(x->held - x->amount));
        if (e || r->only_check)
                return e;
        allocation_take_out(a, x);
        r->bank->credits += o->credit - x->credit;
        x->credit = o->credit;
        x->start_ms = o->start_ms;
        x->end_ms = o->end_ms;
        allocation_place(a, x);
        r->id = x->id;
        r->bank->generation++;
        return 0;
}

/* ---- withdrawals and transfers */

/* Is so much there that is neither reserved nor credit? */
static int check_rest(struct run *r, const struct bank_account *a)
{
        const struct bank_order *o = r->order;
        int64_t rest = 0;

        for (uint32_t i = 0; i < a->allocation_count; i++)
                if (!o->id || a->allocations[i]->id == o->id)
                        rest += allocation_rest(a->allocations[i]);
        if (rest >= o->amount)
                return 0;
        return err_set(r->err, BANK_SHORT,
                       "the account %s has %lld that is not reserved, and %lld was to be taken out", a->name,
                       (long long)rest, (long long)o->amount);
}

/* An allocation of `a` that may be spent as x may. */
static struct bank_allocation *allocation_like(struct bank *b, struct bank_account *a,
                                               const struct bank_allocation *x)
{
        struct bank_allocation *y;

        for (uint32_t i = 0; i < a->allocation_count; i++) {
                y = a->allocations[i];
                if (y->start_ms == x->start_ms && y->end_ms == x->end_ms &&
                    str_eq(str_of(y->places), str_of(x->places)) &&
                    str_eq(str_of(y->users), str_of(x->users)))
                        return y;
        }
        y = mem_new(struct bank_allocation);
        y->id = ++b->last_id;
        y->start_ms = x->start_ms;
        y->end_ms = x->end_ms;
        y->places = mem_dupz(x->places);
        y->users = mem_dupz(x->users);
        allocation_place(a, y);
        return y;
}

static int run_withdraw(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank_account *a, *to = NULL;
        struct bank_allocation *x;
        int64_t left = o->amount;
        int e = need_account(r, o->account, &a);

        if (!e && o->op == BANK_TRANSFER)
                e = need_open_account(r, o->to, &to);
        if (!e && a == to)
                e = err_set(r->err, BANK_INVALID, "a transfer is between two accounts");
        if (!e)
                e = check_amount(r, false);
        if (!e && o->id)
                e = need_allocation(r, a, &x);
        if (!e)
                e = check_rest(r, a);
        if (!e && to && to->allocation_count + a->allocation_count > BANK_ALLOCATIONS_MAX)
                e = err_set(r->err, BANK_INVALID, "the account %s has too many allocations", to->name);
        if (e || r->only_check)
                return e;
        for (uint32_t i = 0; i < a->allocation_count && left; i++) {
                int64_t part;

                x = a->allocations[i];
                part = allocation_rest(x) < left ? allocation_rest(x) : left;
                if ((o->id && x->id != o->id) || part == 0)
                        continue;
                amount_move(r, (struct side){.account = a, .allocation = x},
                            to ? (struct side){.account = to, .allocation = allocation_like(r->bank, to, x)}
                               : issued,
                            part, NULL);
                left -= part;
        }
        r->bank->generation++;
        return 0;
}

/* ---- quotes */

static void quotes_drop_ended(struct run *r)
{
        struct bank *b = r->bank;
        size_t kept = 0;

        for (size_t i = 0; i < b->quote_count; i++)
                if (quote_is_open_to_any(&b->quotes[i], r->at_ms) || b->quotes[i].held)
                        b->quotes[kept++] = b->quotes[i];
                else
                        quote_deinit(&b->quotes[i]);
        b->quote_count = kept;
}

static int run_quote(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank *b = r->bank;
        struct bank_account *a;
        size_t open = 0;
        int e = need_open_account(r, o->account, &a);

        if (!e)
                e = check_amount(r, true);
        if (!e && (o->end_ms <= r->at_ms || o->duration_ms <= 0))
                e = err_set(r->err, BANK_INVALID, "a quote is for a time to run, and ends later than now");
        if (!e)
                e = check_place(r, o->place, true);
        if (!e)
                e = check_user(r, o->user);
        for (size_t i = 0; i < b->quote_count; i++)
                open += quote_is_open_to_any(&b->quotes[i], r->at_ms);
        if (!e && open >= BANK_QUOTES_MAX)
                e = err_set(r->err, BANK_INVALID,
                            "there are %u open quotes, and no more are made before some end",
                            BANK_QUOTES_MAX);
        if (e || r->only_check)
                return e;
        quotes_drop_ended(r);
        MEM_GROW(b->quotes, b->quote_cap, b->quote_count + 1);
        b->quotes[b->quote_count++] = (struct bank_quote){
                .id = r->id = ++b->last_id,
                .account = a,
                .user = text_or_null(o->user),
                .place = text_or_null(o->place),
                .qos = text_or_null(o->qos),
                .text = text_or_null(o->why),
                .amount = o->amount,
                .duration_ms = o->duration_ms,
                .end_ms = o->end_ms,
                .memory_mib = o->memory_mib,
                .cpus = o->cpus,
                .gpus = o->gpus,
        };
        return 0;
}

static int need_quote(struct run *r, struct bank_quote **ret)
{
        *ret = quote_find(r->bank, r->order->quote);
        if (*ret && ((*ret)->held || quote_is_open_to_any(*ret, r->at_ms)))
                return 0;
        return err_set(r->err, BANK_UNKNOWN, "there is no quote %llu, or its time is over",
                       (unsigned long long)r->order->quote);
}

/* The price stays as it was promised. */
static int run_requote(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank_quote *q;
        int e = need_quote(r, &q);

        if (!e && o->end_ms && o->end_ms <= r->at_ms)
                e = err_set(r->err, BANK_INVALID, "a quote ends later than now: cancel it instead");
        if (e || r->only_check)
                return e;
        if (o->end_ms) {
                q->end_ms = o->end_ms;
                if (q->request && q->kept_ms > o->end_ms)
                        q->kept_ms = o->end_ms;
        }
        text_set(&q->text, o->why, o->clears & BANK_CLEARS_WHY);
        r->id = q->id;
        r->bank->generation++; /* a job may be paid by it now, or not any more */
        return 0;
}

static int run_cancel(struct run *r)
{
        struct bank *b = r->bank;
        struct bank_quote *q;
        int e = need_quote(r, &q);

        if (!e && q->held)
                e = err_set(r->err, BANK_CONFLICT,
                            "a lien holds quote %llu: it ends with the lien's charge, or release that first",
                            (unsigned long long)q->id);
        if (e || r->only_check)
                return e;
        r->id = q->id;
        quote_deinit(q);
        memmove(q, q + 1, (size_t)(b->quotes + b->quote_count - q - 1) * sizeof(*q));
        b->quote_count--;
        b->generation++; /* a job that named it is paid by the rates */
        return 0;
}

/* ---- liens and charges */

/* Adds to what the lien holds; so much is there. */
static void lien_hold(struct run *r, struct bank_lien *l, struct str user, struct str place, int64_t amount)
{
        struct bank_account *a = l->account;

        for (uint32_t i = 0; i < a->allocation_count && amount > 0; i++) {
                struct bank_allocation *x = a->allocations[i];
                int64_t part = allocation_room(x, user, place, r->at_ms);
                uint32_t k = 0;

                part = part < amount ? part : amount;
                if (part == 0)
                        continue;
                while (k < l->share_count && l->shares[k].allocation != x)
                        k++;
                if (k == l->share_count) {
                        l->shares = mem_array(l->shares, k + 1, sizeof(*l->shares));
                        l->shares[l->share_count++] = (struct bank_share){.allocation = x};
                        x->liens++;
                }
                l->shares[k].amount += part;
                x->held += part;
                a->held += part;
                l->amount += part;
                amount -= part;
        }
        assert(amount == 0);
}

/* A user's liens are apart from those of others, who could give theirs the same name. */
static void lien_name(struct buf *out, struct str account, struct str user, struct str job)
{
        buf_printf(out, STR_FMT "\x1f" STR_FMT "\x1f" STR_FMT, STR_ARG(account), STR_ARG(user), STR_ARG(job));
}

static struct str lien_job(const struct bank_lien *l)
{
        return str_of(l->job ? l->job : l->why);
}

static void lien_add_name(struct bank *b, struct bank_lien *l)
{
        BUF_CLEANUP struct buf name = {0};
        struct bank_lien *newest;

        b->other_liens++;
        root_of(l->account)->tree_liens++;
        if (!lien_job(l).n)
                return;
        lien_name(&name, str_of(l->account->name), str_of(l->user), lien_job(l));
        newest = map_put(b->named_liens, buf_view(&name), l);
        if (newest && newest->id > l->id) { /* after a restart */
                map_put(b->named_liens, buf_view(&name), newest);
                for (l->newer = newest; l->newer->older && l->newer->older->id > l->id;)
                        l->newer = l->newer->older;
                newest = l->newer->older;
                l->newer->older = l;
        }
        l->older = newest;
        if (l->older)
                l->older->newer = l;
}

/* The name then finds the newest of the other liens that have it. */
static void lien_drop_name(struct bank *b, struct bank_lien *l)
{
        BUF_CLEANUP struct buf name = {0};

        b->other_liens--;
        root_of(l->account)->tree_liens--;
        if (l->older)
                l->older->newer = l->newer;
        if (l->newer)
                l->newer->older = l->older;
        lien_name(&name, str_of(l->account->name), str_of(l->user), lien_job(l));
        if (map_get(b->named_liens, buf_view(&name)) == l) {
                map_take(b->named_liens, buf_view(&name));
                if (l->older)
                        map_put(b->named_liens, buf_view(&name), l->older);
        }
        l->older = l->newer = NULL;
}

const struct bank_lien *bank_lien_named(const struct bank *b, struct str account, struct str user,
                                        struct str job)
{
        BUF_CLEANUP struct buf name = {0};

        lien_name(&name, account, user, job);
        return map_get(b->named_liens, buf_view(&name));
}

/* Frees what the lien holds, and removes it. */
static void lien_end(struct bank *b, struct bank_lien *l)
{
        struct bank_quote *quote = quote_find(b, l->quote);
        struct job_key k;

        for (uint32_t i = 0; i < l->share_count; i++) {
                l->shares[i].allocation->held -= l->shares[i].amount;
                l->shares[i].allocation->liens--;
                l->account->held -= l->shares[i].amount;
        }
        if (quote)
                quote->held = false;
        idmap_take(b->liens, l->id);
        heap_take(&b->by_end, &l->by_end);
        if (l->request)
                map_take(b->job_liens, job_key(&k, l->request, l->member));
        else
                lien_drop_name(b, l);
        lien_free(l);
}

static int check_available(struct run *r, const struct bank_account *a, struct str user, struct str place,
                           uint64_t times)
{
        int64_t amount = r->order->amount, there = bank_available(a, user, place, r->at_ms);

        if (amount == 0 || (times > 0 && (uint64_t)(there / amount) >= times))
                return 0;
        return err_set(r->err, BANK_SHORT, "the account %s has %lld to spend, and %lld is needed", a->name,
                       (long long)there, (long long)amount);
}

static int check_quote(struct run *r, const struct bank_account *a)
{
        const struct bank_quote *q = quote_find(r->bank, r->order->quote);

        if (!r->order->quote)
                return 0;
        if (!q || q->account != a ||
            !bank_quote_is_open(q, r->order->request, (uint32_t)set_first(&r->order->members), r->at_ms))
                return err_set(r->err, BANK_UNKNOWN, "there is no quote %llu for %s, or its time is over",
                               (unsigned long long)r->order->quote, a->name);
        return q->used ? err_set(r->err, BANK_CONFLICT, "quote %llu was used", (unsigned long long)q->id) : 0;
}

static struct bank_lien *lien_new(struct run *r, struct bank_account *a, uint64_t request, uint32_t member)
{
        const struct bank_order *o = r->order;
        struct bank_lien *l = mem_new(struct bank_lien);
        struct job_key k;

        l->id = ++r->bank->last_id;
        if (!r->id)
                r->id = l->id;
        l->account = a;
        l->request = request;
        l->member = member;
        l->fence = o->fence;
        l->quote = o->quote;
        idmap_put(r->bank->liens, l->id, l);
        l->at_ms = r->at_ms;
        l->end_ms = o->end_ms;
        if (request) {
                map_put(r->bank->job_liens, job_key(&k, request, member), l);
        } else {
                l->user = text_or_null(o->user);
                l->place = text_or_null(o->place);
                l->why = text_or_null(o->why);
                l->job = text_or_null(o->job);
                lien_add_name(r->bank, l);
        }
        if (l->end_ms)
                heap_put(&r->bank->by_end, &l->by_end);
        lien_hold(r, l, o->user, o->place, o->amount);
        return l;
}

static int run_lien(struct run *r)
{
        const struct bank_order *o = r->order;
        uint64_t count = o->request ? set_count(&o->members) : 1;
        struct bank_account *a;
        int e = need_open_account(r, o->account, &a);

        if (!e)
                e = check_amount(r, o->request != 0);
        if (!e && !o->request && r->bank->other_liens >= BANK_LIENS_MAX)
                e = err_set(r->err, BANK_INVALID, "there are %u liens already, and no more are made",
                            BANK_LIENS_MAX);
        if (!e && o->end_ms && o->end_ms <= r->at_ms)
                e = err_set(r->err, BANK_INVALID, "the time of the lien is over already");
        if (!e && !o->request)
                e = check_place(r, o->place, true);
        if (!e && !o->request)
                e = check_user(r, o->user);
        if (!e && o->quote && count != 1)
                e = err_set(r->err, BANK_INVALID, "a quote is for one lien");
        if (!e)
                e = check_quote(r, a);
        if (!e)
                e = check_available(r, a, o->user, o->place, count);
        SET_FOREACH (&o->members, m)
                if (!e && o->request && lien_of(r->bank, o->request, (uint32_t)m))
                        e = err_set(r->err, BANK_CONFLICT, "job %llu.%u has a lien already",
                                    (unsigned long long)o->request, (uint32_t)m);
        if (e || r->only_check)
                return e;
        if (o->quote) {
                struct bank_quote *q = quote_find(r->bank, o->quote);

                q->used = q->held = true;
                q->request = 0;
        }
        if (!o->request)
                lien_new(r, a, 0, 0);
        SET_FOREACH (&o->members, m)
                if (o->request)
                        lien_new(r, a, o->request, (uint32_t)m);
        return 0;
}

/* The liens that the order is about are there. */
static int need_liens(struct run *r)
{
        const struct bank_order *o = r->order;
        const struct bank_lien *l = idmap_get(r->bank->liens, o->id);

        if (!o->request && (!l || l->request))
                return err_set(r->err, BANK_UNKNOWN, "there is no lien %llu, or it is a job's",
                               (unsigned long long)o->id);
        SET_FOREACH (&o->members, m) {
                l = lien_of(r->bank, o->request, (uint32_t)m);
                if (!l || l->fence != o->fence)
                        return err_set(r->err, BANK_UNKNOWN, "attempt %u of job %llu.%u has no lien",
                                       o->fence, (unsigned long long)o->request, (uint32_t)m);
        }
        return 0;
}

/* Calls fn for each lien that the order is about; fn may end it. */
static void each_lien(struct run *r, void (*fn)(struct run *r, struct bank_lien *l))
{
        const struct bank_order *o = r->order;

        if (!o->request)
                fn(r, idmap_get(r->bank->liens, o->id));
        SET_FOREACH (&o->members, m)
                if (o->request)
                        fn(r, lien_of(r->bank, o->request, (uint32_t)m));
}

static void extend(struct run *r, struct bank_lien *l)
{
        const struct bank_order *o = r->order;

        lien_hold(r, l, o->user.n ? o->user : str_of(l->user), o->place.n ? o->place : str_of(l->place),
                  o->amount);
        if (o->end_ms) {
                heap_take(&r->bank->by_end, &l->by_end);
                l->end_ms = o->end_ms;
                heap_put(&r->bank->by_end, &l->by_end);
        }
}

static int run_extend(struct run *r)
{
        const struct bank_order *o = r->order;
        const struct bank_lien *l;
        struct str user, place;
        int e = check_amount(r, o->end_ms != 0);

        if (!e)
                e = need_liens(r);
        if (e)
                return e;
        l = o->request ? lien_of(r->bank, o->request, (uint32_t)set_first(&o->members))
                       : idmap_get(r->bank->liens, o->id);
        if (!l)
                return err_set(r->err, BANK_INVALID, "the order is about no lien");
        SET_FOREACH (&o->members, m)
                if (lien_of(r->bank, o->request, (uint32_t)m)->account != l->account)
                        return err_set(r->err, BANK_INVALID, "the liens are of several accounts");
        user = o->user.n ? o->user : str_of(l->user);
        place = o->place.n ? o->place : str_of(l->place);
        if (!o->request)
                e = check_place(r, place, true);
        if (!e && !o->request)
                e = check_user(r, user);
        if (!e)
                e = check_available(r, l->account, user, place, o->request ? set_count(&o->members) : 1);
        if (!e && !r->only_check)
                each_lien(r, extend);
        return e;
}

static void release(struct run *r, struct bank_lien *l)
{
        struct bank_quote *q = quote_find(r->bank, l->quote);

        if (q) {
                q->used = false;
                q->request = l->request;
                q->member = l->member;
                q->kept_ms = r->at_ms + BANK_QUOTE_KEPT_MS;
        }
        lien_end(r->bank, l);
}

static int run_release(struct run *r)
{
        int e = need_liens(r);

        if (e || r->only_check)
                return e;
        each_lien(r, release);
        r->bank->generation++;
        return 0;
}

/* Takes from what may be spent now; so much is there. */
static void charge_account(struct run *r, struct bank_account *a)
{
        const struct bank_order *o = r->order;
        int64_t left = o->amount;

        for (uint32_t i = 0; i < a->allocation_count && left > 0; i++) {
                struct bank_allocation *x = a->allocations[i];
                int64_t part = allocation_room(x, o->user, o->place, r->at_ms);

                part = part < left ? part : left;
                if (part == 0)
                        continue;
                amount_move(r, (struct side){.account = a, .allocation = x}, earned, part, NULL);
                a->charged += part;
                left -= part;
        }
}

/* Takes what the lien holds, and before that more of what is there, if it was used: one movement of each
 * allocation. What cannot be charged is written down as unpaid: no allocation goes below its credit limit. */
static void charge_lien(struct run *r, struct bank_lien *l)
{
        const struct bank_order *o = r->order;
        struct bank_account *a = l->account;
        int64_t left = o->amount;

        if (left > l->amount) {
                struct str user = o->user.n ? o->user : str_of(l->user),
                           place = o->place.n ? o->place : str_of(l->place);
                int64_t there = bank_available(a, user, place, r->at_ms), more = left - l->amount;

                a->unpaid += more > there ? more - there : 0;
                lien_hold(r, l, user, place, more < there ? more : there);
        }
        for (uint32_t i = 0; i < l->share_count && left > 0; i++) {
                struct bank_share *s = &l->shares[i];
                int64_t part = s->amount < left ? s->amount : left;

                if (part == 0)
                        continue;
                s->allocation->held -= part;
                a->held -= part;
                s->amount -= part;
                l->amount -= part;
                left -= part;
                amount_move(r, (struct side){.account = a, .allocation = s->allocation}, earned, part, l);
                a->charged += part;
        }
        lien_end(r->bank, l);
}

static int run_charge(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank_account *a;
        int e;

        if (o->request || o->id) {
                const struct bank_lien *l;

                e = check_amount(r, true);
                if (!e)
                        e = need_liens(r);
                if (!e && !o->request)
                        e = check_place(r, o->place, false);
                l = o->id && !e ? idmap_get(r->bank->liens, o->id) : NULL;
                if (l && l->amount < o->amount &&
                    bank_available(l->account, o->user.n ? o->user : str_of(l->user),
                                   o->place.n ? o->place : str_of(l->place),
                                   r->at_ms) < o->amount - l->amount)
                        e = err_set(r->err, BANK_SHORT,
                                    "lien %llu holds %lld, and the account %s has not the rest of %lld",
                                    (unsigned long long)l->id, (long long)l->amount, l->account->name,
                                    (long long)o->amount);
                if (e || r->only_check)
                        return e;
                each_lien(r, charge_lien);
                r->bank->generation++;
                return 0;
        }
        e = need_open_account(r, o->account, &a);
        if (!e)
                e = check_amount(r, false);
        if (!e)
                e = check_place(r, o->place, false);
        if (!e)
                e = check_available(r, a, o->user, o->place, 1);
        if (!e && !r->only_check)
                charge_account(r, a);
        return e;
}

static int run_refund(struct run *r)
{
        const struct bank_order *o = r->order;
        struct bank_allocation *x = NULL;
        struct bank_account *a;
        int e = need_open_account(r, o->account, &a);

        if (!e)
                e = check_amount(r, false);
        if (!e && o->amount > a->charged - a->refunded)
                e = err_set(r->err, BANK_INVALID,
                            "the account %s was charged %lld that was not refunded, less than %lld", a->name,
                            (long long)(a->charged - a->refunded), (long long)o->amount);
        if (!e && o->id)
                e = need_allocation(r, a, &x);
        for (uint32_t i = 0; !e && !x && i < a->allocation_count; i++) {
                struct bank_allocation *y = a->allocations[i];

                if (allocation_is_open(y, r->at_ms) && list_has(y->users, o->user, pattern_is_user) &&
                    list_has(y->places, o->place, bank_place_fits))
                        x = y;
        }
        if (!e && !x)
                e = err_set(r->err, BANK_INVALID,
                            "the account %s has no allocation that is open now for those who get it back: "
                            "make a deposit first, or name one",
                            a->name);
        if (e || r->only_check)
                return e;
        amount_move(r, earned, (struct side){.account = a, .allocation = x}, o->amount, NULL);
        a->refunded += o->amount;
        a->last_refund = r->bank->serial;
        r->bank->generation++;
        return 0;
}

/* ---- orders */

static int run_order(struct run *r)
{
        if (r->order->why.n > BANK_TEXT_MAX || r->order->place.n > BANK_TEXT_MAX ||
            r->order->user.n > BANK_NAME_MAX || r->order->account.n > BANK_NAME_MAX ||
            r->order->to.n > BANK_NAME_MAX || r->order->job.n > BANK_TEXT_MAX ||
            r->order->qos.n > BANK_NAME_MAX)
                return err_set(r->err, BANK_INVALID, "a name is longer than %u bytes, or a text than %u",
                               BANK_NAME_MAX, BANK_TEXT_MAX);
        switch (r->order->op) {
        case BANK_OPEN: return run_open(r);
        case BANK_MEMBER: return run_member(r);
        case BANK_DEPOSIT: return run_deposit(r);
        case BANK_WITHDRAW:
        case BANK_TRANSFER: return run_withdraw(r);
        case BANK_SET: return run_set(r);
        case BANK_QUOTE: return run_quote(r);
        case BANK_LIEN: return run_lien(r);
        case BANK_EXTEND: return run_extend(r);
        case BANK_RELEASE: return run_release(r);
        case BANK_CHARGE: return run_charge(r);
        case BANK_REFUND: return run_refund(r);
        case BANK_REGISTER: return run_register(r);
        case BANK_MACHINE:
        case BANK_USER: return run_entry(r);
        case BANK_UNREGISTER: return run_unregister(r);
        case BANK_CLOSE: return run_close(r);
        case BANK_ACCOUNT: return run_account(r);
        case BANK_REQUOTE: return run_requote(r);
        case BANK_CANCEL: return run_cancel(r);
        case BANK_OPS: break;
        }
        return err_set(r->err, BANK_INVALID, "the bank does not know this order");
}

int bank_check(struct bank *b, const struct bank_order *o, int64_t at_ms, struct err *err)
{
        struct run r = {.bank = b, .order = o, .at_ms = at_ms, .only_check = true, .err = err};

        return run_order(&r);
}

int bank_apply(struct bank *b, const struct bank_order *o, int64_t at_ms, bank_entry_fn *fn, void *arg,
               uint64_t *ret_id, struct err *err)
{
        struct run r = {.bank = b, .order = o, .at_ms = at_ms, .fn = fn, .arg = arg, .err = err};
        int e = run_order(&r);

        if (!e && ret_id)
                *ret_id = r.id;
        return e;
}

/* ---- snapshots */

static void pack_text(struct buf *out, const char *text)
{
        pack_str(out, str_of(text));
}

static void pack_account(void *arg, const struct bank_account *a)
{
        const int64_t sums[] = {a->charged, a->refunded, a->unpaid};
        struct buf *out = arg;

        pack_text(out, a->name);
        pack_text(out, a->text);
        for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
                pack_i64(out, sums[i]);
        pack_u64(out, a->member_count);
        for (uint32_t i = 0; i < a->member_count; i++) {
                pack_text(out, a->members[i].user);
                pack_u64(out, a->members[i].role);
        }
        pack_u64(out, a->allocation_count);
        for (uint32_t i = 0; i < a->allocation_count; i++) {
                const struct bank_allocation *x = a->allocations[i];

                pack_u64(out, x->id);
                pack_i64(out, x->amount);
                pack_i64(out, x->credit);
                pack_i64(out, x->start_ms);
                pack_i64(out, x->end_ms);
                pack_text(out, x->places);
                pack_text(out, x->users);
        }
}

static void pack_lien(void *arg, const struct bank_lien *l)
{
        struct buf *out = arg;

        pack_u64(out, l->id);
        pack_text(out, l->account->name);
        pack_u64(out, l->request);
        pack_u64(out, l->member);
        pack_u64(out, l->fence);
        pack_u64(out, l->quote);
        pack_i64(out, l->at_ms);
        pack_i64(out, l->end_ms);
        pack_text(out, l->user);
        pack_text(out, l->place);
        pack_text(out, l->why);
        pack_u64(out, l->share_count);
        for (uint32_t i = 0; i < l->share_count; i++) {
                pack_u64(out, l->shares[i].allocation->id);
                pack_i64(out, l->shares[i].amount);
        }
}

static void pack_quote(void *arg, const struct bank_quote *q)
{
        struct buf *out = arg;

        pack_u64(out, q->id);
        pack_text(out, q->account->name);
        pack_text(out, q->user);
        pack_text(out, q->place);
        pack_i64(out, q->amount);
        pack_i64(out, q->duration_ms);
        pack_i64(out, q->end_ms);
        pack_u64(out, q->cpus);
        pack_i64(out, q->memory_mib);
        pack_u64(out, q->gpus);
        pack_u64(out, (uint64_t)q->used | (uint64_t)q->held << 1 | (uint64_t)(q->request != 0) << 2 |
                              (uint64_t)(q->qos != NULL) << 3 | (uint64_t)(q->text != NULL) << 4);
        if (q->request) {
                pack_u64(out, q->request);
                pack_u64(out, q->member);
                pack_i64(out, q->kept_ms);
        }
        if (q->qos)
                pack_text(out, q->qos);
        if (q->text)
                pack_text(out, q->text);
}

void bank_pack(const struct bank *b, struct buf *out)
{
        pack_u64(out, b->last_id);
        pack_u64(out, b->serial);
        pack_i64(out, b->issued);
        pack_i64(out, b->earned);
        pack_u64(out, b->account_count);
        bank_accounts_each(b, pack_account, out);
        pack_u64(out, bank_liens(b));
        bank_liens_each(b, pack_lien, out);
        pack_u64(out, b->quote_count);
        bank_quotes_each(b, pack_quote, out);
}

static void pack_closed(void *arg, const struct bank_account *a)
{
        if (a->closed)
                pack_text(arg, a->name);
}

void bank_closed_pack(const struct bank *b, struct buf *out)
{
        bank_accounts_each(b, pack_closed, out);
        pack_text(out, NULL);
}

void bank_closed_unpack(struct bank *b, struct unpack *in)
{
        for (struct str name; !in->bad && (name = unpack_str(in)).n > 0;) {
                struct bank_account *a = bank_account(b, name);

                if (!a || a->closed)
                        in->bad = true;
                else
                        a->closed = true;
        }
}

static void pack_lien_job(void *arg, const struct bank_lien *l)
{
        if (!l->job)
                return;
        pack_u64(arg, l->id);
        pack_text(arg, l->job);
}

void bank_jobs_pack(const struct bank *b, struct buf *out)
{
        bank_liens_each(b, pack_lien_job, out);
        pack_u64(out, 0);
}

void bank_jobs_unpack(struct bank *b, struct unpack *in)
{
        for (uint64_t id; !in->bad && (id = unpack_u64(in)) != 0;) {
                struct bank_lien *l = idmap_get(b->liens, id);
                struct str job = unpack_str(in);

                if (in->bad || !l || l->request || l->job || !job.n) {
                        in->bad = true;
                        return;
                }
                lien_drop_name(b, l);
                l->job = str_dupz(job);
                lien_add_name(b, l);
        }
}

void bank_machines_pack(const struct bank *b, struct buf *out)
{
        registry_pack(b->machines, out);
}

void bank_machines_unpack(struct bank *b, struct unpack *in)
{
        registry_unpack(b->machines, in);
}

void bank_users_pack(const struct bank *b, struct buf *out)
{
        registry_pack(b->users, out);
}

void bank_users_unpack(struct bank *b, struct unpack *in)
{
        registry_unpack(b->users, in);
}

static void unpack_account(struct bank *b, struct unpack *in)
{
        struct str name = unpack_str(in), text = unpack_str(in), above = STR_NONE;
        struct bank_account *a;

        if (str_find(name, '@') < 0 && str_rfind(name, '.') > 0)
                above = str_head(name, (size_t)str_rfind(name, '.'));
        if (in->bad || !name_is_account(name) || bank_account(b, name) ||
            (above.n && !bank_account(b, above))) {
                in->bad = true;
                return;
        }
        a = account_new(b, name, bank_account(b, above));
        a->text = text_or_null(text);
        a->charged = unpack_i64(in);
        a->refunded = unpack_i64(in);
        a->unpaid = unpack_i64(in);
        for (uint64_t n = unpack_max(in, BANK_MEMBERS_MAX); n > 0 && !in->bad; n--) {
                MEM_GROW(a->members, a->member_cap, a->member_count + 1);
                a->members[a->member_count].user = str_dupz(unpack_str(in));
                a->members[a->member_count++].role = (enum bank_role)unpack_max(in, BANK_ROLES - 1);
        }
        for (uint64_t n = unpack_u64(in); n > 0 && !in->bad; n--) {
                struct bank_allocation *x = mem_new(struct bank_allocation);

                x->id = unpack_u64(in);
                x->amount = unpack_i64(in);
                x->credit = unpack_i64(in);
                b->credits += x->credit;
                x->start_ms = unpack_i64(in);
                x->end_ms = unpack_i64(in);
                x->places = text_or_null(unpack_str(in));
                x->users = text_or_null(unpack_str(in));
                a->balance += x->amount;
                allocation_place(a, x);
        }
}

static void unpack_lien(struct bank *b, struct unpack *in)
{
        struct bank_lien *l = mem_new(struct bank_lien);
        struct job_key k;

        l->id = unpack_u64(in);
        l->account = bank_account(b, unpack_str(in));
        l->request = unpack_u64(in);
        l->member = (uint32_t)unpack_max(in, UINT32_MAX);
        l->fence = (uint32_t)unpack_max(in, UINT32_MAX);
        l->quote = unpack_u64(in);
        l->at_ms = unpack_i64(in);
        l->end_ms = unpack_i64(in);
        l->user = text_or_null(unpack_str(in));
        l->place = text_or_null(unpack_str(in));
        l->why = text_or_null(unpack_str(in));
        if (!l->account || bank_lien(b, l->id) || (l->request && bank_lien_of(b, l->request, l->member)))
                in->bad = true;
        if (in->bad) {
                lien_free(l);
                return;
        }
        idmap_put(b->liens, l->id, l);
        if (l->request)
                map_put(b->job_liens, job_key(&k, l->request, l->member), l);
        else
                lien_add_name(b, l);
        if (l->end_ms)
                heap_put(&b->by_end, &l->by_end);
        for (uint64_t n = unpack_max(in, BANK_ALLOCATIONS_MAX); n > 0 && !in->bad; n--) {
                struct bank_share s = {.allocation = allocation_find(l->account, unpack_u64(in))};

                s.amount = unpack_i64(in);
                if (!s.allocation || s.amount < 0) {
                        in->bad = true;
                        return;
                }
                l->shares = mem_array(l->shares, l->share_count + 1, sizeof(*l->shares));
                l->shares[l->share_count++] = s;
                l->amount += s.amount;
                s.allocation->held += s.amount;
                s.allocation->liens++;
                l->account->held += s.amount;
        }
}

static void unpack_quote(struct bank *b, struct unpack *in)
{
        struct bank_quote q = {.id = unpack_u64(in)};
        uint64_t flags;

        q.account = bank_account(b, unpack_str(in));

        q.user = text_or_null(unpack_str(in));
        q.place = text_or_null(unpack_str(in));
        q.amount = unpack_i64(in);
        q.duration_ms = unpack_i64(in);
        q.end_ms = unpack_i64(in);
        q.cpus = (uint32_t)unpack_max(in, UINT32_MAX);
        q.memory_mib = unpack_i64(in);
        q.gpus = (uint32_t)unpack_max(in, UINT32_MAX);
        flags = unpack_max(in, 31);
        q.used = flags & 1;
        q.held = flags & 2;
        if (flags & 4) {
                q.request = unpack_u64(in);
                q.member = (uint32_t)unpack_max(in, UINT32_MAX);
                q.kept_ms = unpack_i64(in);
        }
        if (flags & 8)
                q.qos = text_or_null(unpack_str(in));
        if (flags & 16)
                q.text = text_or_null(unpack_str(in));
        in->bad |= !q.account || q.duration_ms <= 0;
        if (in->bad) {
                quote_deinit(&q);
                return;
        }
        MEM_GROW(b->quotes, b->quote_cap, b->quote_count + 1);
        b->quotes[b->quote_count++] = q;
}

void bank_unpack(struct bank *b, struct unpack *in)
{
        b->last_id = unpack_u64(in);
        b->serial = unpack_u64(in);
        b->issued = unpack_i64(in);
        b->earned = unpack_i64(in);
        for (uint64_t n = unpack_max(in, BANK_ACCOUNTS_MAX); n > 0 && !in->bad; n--)
                unpack_account(b, in);
        for (uint64_t n = unpack_u64(in); n > 0 && !in->bad; n--)
                unpack_lien(b, in);
        for (uint64_t n = unpack_u64(in); n > 0 && !in->bad; n--)
                unpack_quote(b, in);
        b->generation++;
}

/* ---- invariants */

struct audit {
        const struct bank *bank;
        int64_t sum;
        char wrong[200];
};

static void audit_account(void *arg, const struct bank_account *a)
{
        struct audit *t = arg;
        int64_t balance = 0, held = 0;

        for (uint32_t i = 0; i < a->allocation_count; i++) {
                const struct bank_allocation *x = a->allocations[i];

                balance += x->amount;
                held += x->held;
                if (a->closed && (x->amount != 0 || x->liens > 0))
                        snprintf(t->wrong, sizeof(t->wrong), "%s is closed, and has money", a->name);
                if (x->amount - x->held < -x->credit || x->held < 0)
                        snprintf(t->wrong, sizeof(t->wrong),
                                 "allocation %llu of %s is below its credit limit", (unsigned long long)x->id,
                                 a->name);
        }
        if (balance != a->balance || held != a->held)
                snprintf(t->wrong, sizeof(t->wrong), "the balance of %s is not that of its allocations",
                         a->name);
        if (a->refunded > a->charged)
                snprintf(t->wrong, sizeof(t->wrong), "%s was refunded more than it was charged", a->name);
        t->sum += a->balance;
}

static void audit_lien(void *arg, const struct bank_lien *l)
{
        int64_t amount = 0;
        struct audit *t = arg;

        for (uint32_t i = 0; i < l->share_count; i++) {
                amount += l->shares[i].amount;
                if (l->shares[i].amount > l->shares[i].allocation->held)
                        amount = -1;
        }
        if (amount != l->amount)
                snprintf(t->wrong, sizeof(t->wrong), "lien %llu holds another sum than its allocations say",
                         (unsigned long long)l->id);
        t->sum += l->amount;
}

static void sum_held(void *arg, const struct bank_account *a)
{
        *(int64_t *)arg += a->held;
}

const char *bank_invariant(const struct bank *b)
{
        static struct audit t;
        int64_t held = 0;

        t = (struct audit){.bank = b};
        bank_accounts_each(b, audit_account, &t);
        if (!t.wrong[0] && t.sum + b->issued + b->earned != 0)
                snprintf(t.wrong, sizeof(t.wrong), "the books do not balance: %lld is too much",
                         (long long)(t.sum + b->issued + b->earned));
        t.sum = 0;
        bank_liens_each(b, audit_lien, &t);
        bank_accounts_each(b, sum_held, &held);
        if (!t.wrong[0] && t.sum != held)
                snprintf(t.wrong, sizeof(t.wrong), "accounts reserve %lld, and their liens hold %lld",
                         (long long)held, (long long)t.sum);
        return t.wrong[0] ? t.wrong : NULL;
}
