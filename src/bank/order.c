/* An order's record has its version, its operation and a mask of the fields that are there, then these fields
 * in the order of enum field: most orders have few of them. */
#include "bank/order.h"

#include <errno.h>

#include "base/pack.h"

#define ORDER_VERSION 1

enum field {
        F_TO = 1 << 0,
        F_USER = 1 << 1,
        F_PLACE = 1 << 2,
        F_PLACES = 1 << 3,
        F_USERS = 1 << 4,
        F_WHO = 1 << 5,
        F_WHY = 1 << 6,
        F_ROLE = 1 << 7,
        F_ID = 1 << 8,
        F_QUOTE = 1 << 9,
        F_AMOUNT = 1 << 10,
        F_CREDIT = 1 << 11,
        F_START = 1 << 12,
        F_END = 1 << 13,
        F_DURATION = 1 << 14,
        F_CPUS = 1 << 15,
        F_JOBS = 1 << 16, /* request, fence, members */
        F_ACCOUNT = 1 << 17,
        F_MEMORY = 1 << 18,
        F_GPUS = 1 << 19,
        F_ARCH = 1 << 20,
        F_OPSYS = 1 << 21,
        F_ACTIVITY = 1 << 22,
        F_JOB = 1 << 23,
        F_QOS = 1 << 24,
        F_CLEARS = 1 << 25,
        F_ALL = (1 << 26) - 1,
};

static const char *const op_names[BANK_OPS] = {
        [BANK_OPEN] = "open",         [BANK_MEMBER] = "member",     [BANK_DEPOSIT] = "deposit",
        [BANK_WITHDRAW] = "withdraw", [BANK_TRANSFER] = "transfer", [BANK_SET] = "set",
        [BANK_QUOTE] = "quote",       [BANK_LIEN] = "lien",         [BANK_EXTEND] = "extend",
        [BANK_RELEASE] = "release",   [BANK_CHARGE] = "charge",     [BANK_REFUND] = "refund",
        [BANK_REGISTER] = "register", [BANK_MACHINE] = "machine",   [BANK_UNREGISTER] = "unregister",
        [BANK_CLOSE] = "close",       [BANK_USER] = "user",         [BANK_REQUOTE] = "requote",
        [BANK_CANCEL] = "cancel",     [BANK_ACCOUNT] = "account",
};
static const char *const role_names[BANK_ROLES] = {"none", "user", "manager", "owner"};
static const char *const activity_names[BANK_ACTIVITIES] = {"", "active", "inactive"};

void bank_order_deinit(struct bank_order *o)
{
        set_deinit(&o->members);
}

const char *bank_op_name(enum bank_op op)
{
        return (unsigned)op < BANK_OPS && op_names[op] ? op_names[op] : "?";
}

const char *bank_role_name(enum bank_role role)
{
        return (unsigned)role < BANK_ROLES ? role_names[role] : "?";
}

const char *bank_activity_name(enum bank_activity activity)
{
        return (unsigned)activity < BANK_ACTIVITIES ? activity_names[activity] : "?";
}

bool bank_op_parse(struct str text, enum bank_op *ret)
{
        for (unsigned i = 1; i < BANK_OPS; i++)
                if (str_eqz(text, op_names[i])) {
                        *ret = (enum bank_op)i;
                        return true;
                }
        return false;
}

bool bank_role_parse(struct str text, enum bank_role *ret)
{
        for (unsigned i = 0; i < BANK_ROLES; i++)
                if (str_eqz(text, role_names[i])) {
                        *ret = (enum bank_role)i;
                        return true;
                }
        return false;
}

bool bank_activity_parse(struct str text, enum bank_activity *ret)
{
        for (unsigned i = 0; i < BANK_ACTIVITIES; i++)
                if (str_eqz(text, activity_names[i])) {
                        *ret = (enum bank_activity)i;
                        return true;
                }
        return false;
}

static unsigned fields_of(const struct bank_order *o)
{
        return (o->account.n ? F_ACCOUNT : 0u) | (o->to.n ? F_TO : 0u) | (o->user.n ? F_USER : 0u) |
               (o->place.n ? F_PLACE : 0u) | (o->places.n ? F_PLACES : 0u) | (o->users.n ? F_USERS : 0u) |
               (o->who.n ? F_WHO : 0u) | (o->why.n ? F_WHY : 0u) | (o->role ? F_ROLE : 0u) |
               (o->id ? F_ID : 0u) | (o->quote ? F_QUOTE : 0u) | (o->amount ? F_AMOUNT : 0u) |
               (o->credit ? F_CREDIT : 0u) | (o->start_ms ? F_START : 0u) | (o->end_ms ? F_END : 0u) |
               (o->duration_ms ? F_DURATION : 0u) | (o->cpus ? F_CPUS : 0u) | (o->request ? F_JOBS : 0u) |
               (o->memory_mib ? F_MEMORY : 0u) | (o->gpus ? F_GPUS : 0u) | (o->arch.n ? F_ARCH : 0u) |
               (o->opsys.n ? F_OPSYS : 0u) | (o->activity ? F_ACTIVITY : 0u) | (o->job.n ? F_JOB : 0u) |
               (o->qos.n ? F_QOS : 0u) | (o->clears ? F_CLEARS : 0u);
}

void bank_order_pack(struct buf *out, const struct bank_order *o)
{
        unsigned fields = fields_of(o);
        const struct str texts[] = {o->to, o->user, o->place, o->places, o->users, o->who, o->why};
        const struct {
                unsigned field;
                int64_t value;
        } numbers[] = {{F_AMOUNT, o->amount}, {F_CREDIT, o->credit},        {F_START, o->start_ms},
                       {F_END, o->end_ms},    {F_DURATION, o->duration_ms}, {F_CPUS, o->cpus}};

        pack_u64(out, ORDER_VERSION);
        pack_u64(out, o->op);
        pack_u64(out, fields);
        if (fields & F_ACCOUNT)
                pack_str(out, o->account);
        for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                if (fields & F_TO << i)
                        pack_str(out, texts[i]);
        if (fields & F_ROLE)
                pack_u64(out, o->role);
        if (fields & F_ID)
                pack_u64(out, o->id);
        if (fields & F_QUOTE)
                pack_u64(out, o->quote);
        for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                if (fields & numbers[i].field)
                        pack_i64(out, numbers[i].value);
        if (fields & F_JOBS) {
                pack_u64(out, o->request);
                pack_u64(out, o->fence);
                set_pack(out, &o->members);
        }
        if (fields & F_MEMORY)
                pack_i64(out, o->memory_mib);
        if (fields & F_GPUS)
                pack_u64(out, o->gpus);
        if (fields & F_ARCH)
                pack_str(out, o->arch);
        if (fields & F_OPSYS)
                pack_str(out, o->opsys);
        if (fields & F_ACTIVITY)
                pack_u64(out, o->activity);
        if (fields & F_JOB)
                pack_str(out, o->job);
        if (fields & F_QOS)
                pack_str(out, o->qos);
        if (fields & F_CLEARS)
                pack_u64(out, o->clears);
}

int bank_order_unpack(struct bank_order *o, struct str record, struct err *err)
{
        struct unpack u = unpack_from(record);
        uint64_t version = unpack_u64(&u), op = unpack_max(&u, BANK_OPS - 1), fields = unpack_max(&u, F_ALL);
        struct str *texts[] = {&o->to, &o->user, &o->place, &o->places, &o->users, &o->who, &o->why};
        struct {
                unsigned field;
                int64_t *value;
        } numbers[] = {{F_AMOUNT, &o->amount},
                       {F_CREDIT, &o->credit},
                       {F_START, &o->start_ms},
                       {F_END, &o->end_ms},
                       {F_DURATION, &o->duration_ms}};

        *o = (struct bank_order){.op = (enum bank_op)op};
        if (u.bad || version != ORDER_VERSION || op == 0)
                return err_set(err, -EBADMSG,
                               "an order of the bank is of a version or a kind that is not known here");
        if (fields & F_ACCOUNT)
                o->account = unpack_str(&u);
        for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                if (fields & F_TO << i)
                        *texts[i] = unpack_str(&u);
        if (fields & F_ROLE)
                o->role = (enum bank_role)unpack_max(&u, BANK_ROLES - 1);
        if (fields & F_ID)
                o->id = unpack_u64(&u);
        if (fields & F_QUOTE)
                o->quote = unpack_u64(&u);
        for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                if (fields & numbers[i].field)
                        *numbers[i].value = unpack_i64(&u);
        if (fields & F_CPUS) {
                int64_t cpus = unpack_i64(&u);

                u.bad |= cpus < 0 || cpus > UINT32_MAX;
                o->cpus = (uint32_t)cpus;
        }
        if (fields & F_JOBS) {
                o->request = unpack_u64(&u);
                o->fence = (uint32_t)unpack_max(&u, UINT32_MAX);
                set_unpack(&o->members, &u);
        }
        if (fields & F_MEMORY)
                o->memory_mib = unpack_i64(&u);
        if (fields & F_GPUS)
                o->gpus = (uint32_t)unpack_max(&u, UINT32_MAX);
        if (fields & F_ARCH)
                o->arch = unpack_str(&u);
        if (fields & F_OPSYS)
                o->opsys = unpack_str(&u);
        if (fields & F_ACTIVITY)
                o->activity = (enum bank_activity)unpack_max(&u, BANK_ACTIVITIES - 1);
        if (fields & F_JOB)
                o->job = unpack_str(&u);
        if (fields & F_QOS)
                o->qos = unpack_str(&u);
        if (fields & F_CLEARS)
                o->clears = (unsigned)unpack_max(&u, BANK_CLEARS_ALL);
        if (unpack_done(&u))
                return 0;
        bank_order_deinit(o);
        return err_set(err, -EBADMSG, "an order of the bank (%s) is damaged", bank_op_name(o->op));
}
