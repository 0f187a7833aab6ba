#include "cli/client/srv.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <resolv.h>
#include <stdio.h>
#include <sys/random.h>

#define HEAD_BYTES 12
#define ANSWER_MAX 65535

/* A place in an answer. `bad` stays set. */
struct place {
        const unsigned char *begin, *at, *end;
        bool bad;
};

static uint16_t take_u16(struct place *p)
{
        uint16_t v;

        if (p->bad || p->end - p->at < 2) {
                p->bad = true;
                return 0;
        }
        v = (uint16_t)(p->at[0] << 8 | p->at[1]);
        p->at += 2;
        return v;
}

static void skip_bytes(struct place *p, ptrdiff_t n)
{
        p->bad |= p->end - p->at < n;
        if (!p->bad)
                p->at += n;
}

static void skip_name(struct place *p)
{
        int n = p->bad ? -1 : dn_skipname(p->at, p->end);

        p->bad |= n < 0;
        if (!p->bad)
                p->at += n;
}

/* Host names only: what stands in the address goes into a URL. */
static bool is_host(const char *name)
{
        for (const char *c = name; *c; c++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", *c))
                        return false;
        return *name && strcmp(name, ".") != 0;
}

/* Takes the record's data, which is within `length` bytes. Returns false if it names no server. */
static bool take_record(struct place *p, uint16_t length, struct srv_record *ret)
{
        struct place data = *p;

        skip_bytes(p, length);
        if (p->bad)
                return false;
        data.end = p->at;
        ret->priority = take_u16(&data);
        ret->weight = take_u16(&data);
        ret->port = take_u16(&data);
        return !data.bad && ret->port &&
               dn_expand(p->begin, p->end, data.at, ret->host, sizeof(ret->host)) >= 0 && is_host(ret->host);
}

int srv_parse(struct str answer, struct srv_record ret[static SRV_RECORDS_MAX])
{
        struct place p = {.begin = (const unsigned char *)answer.p,
                          .at = (const unsigned char *)answer.p,
                          .end = (const unsigned char *)answer.p + answer.n};
        unsigned questions, answers, count = 0;

        if (answer.n < HEAD_BYTES)
                return -EINVAL;
        p.at += 4;
        questions = take_u16(&p);
        answers = take_u16(&p);
        p.at = p.begin + HEAD_BYTES;
        for (; questions && !p.bad; questions--) {
                skip_name(&p);
                skip_bytes(&p, 4);
        }
        for (; answers && !p.bad && count < SRV_RECORDS_MAX; answers--) {
                uint16_t type, length;

                skip_name(&p);
                type = take_u16(&p);
                skip_bytes(&p, 6);
                length = take_u16(&p);
                if (type != ns_t_srv)
                        skip_bytes(&p, length);
                else
                        count += take_record(&p, length, &ret[count]);
        }
        return p.bad ? -EINVAL : (int)count;
}

void srv_order(struct srv_record *records, size_t count, uint32_t (*chance)(void *arg, uint32_t below),
               void *arg)
{
        for (size_t i = 0; i < count; i++) {
                uint32_t weights = 0, drawn;
                size_t best = i, chosen = i;
                struct srv_record one;

                for (size_t k = i; k < count; k++)
                        if (records[k].priority < records[best].priority)
                                best = k;
                for (size_t k = i; k < count; k++)
                        if (records[k].priority == records[best].priority)
                                weights += records[k].weight + 1u; /* one of weight 0 has a small chance */
                drawn = chance(arg, weights);
                for (size_t k = i; k < count; k++) {
                        if (records[k].priority != records[best].priority)
                                continue;
                        chosen = k;
                        if (drawn <= records[k].weight)
                                break;
                        drawn -= records[k].weight + 1u;
                }
                one = records[chosen];
                records[chosen] = records[i];
                records[i] = one;
        }
}

static uint32_t by_chance(void *arg, uint32_t below)
{
        uint32_t v = 0;

        (void)arg;
        if (getrandom(&v, sizeof(v), 0) != (ssize_t)sizeof(v))
                return 0;
        return v % below;
}

int srv_find(const char *domain, struct buf *ret, struct err *err)
{
        MEM_CLEANUP unsigned char *answer = mem_alloc(ANSWER_MAX);
        struct srv_record records[SRV_RECORDS_MAX];
        struct __res_state state = {0};
        char name[512];
        int n, count;

        snprintf(name, sizeof(name), "_drover._tcp.%s", domain);
        if (res_ninit(&state) != 0)
                return err_set(err, -EHOSTUNREACH, "the resolver cannot be used");
        n = res_nquery(&state, name, ns_c_in, ns_t_srv, answer, ANSWER_MAX);
        if (n > ANSWER_MAX)
                n = ANSWER_MAX;
        count = n < 0 ? n : srv_parse(str_make((const char *)answer, (size_t)n), records);
        if (n < 0)
                err_set(err, -EHOSTUNREACH, "%s: %s: write the server's address as https://host:port", name,
                        hstrerror(state.res_h_errno));
        else if (count <= 0)
                err_set(err, -EHOSTUNREACH, "%s names no server: write its address as https://host:port",
                        name);
        res_nclose(&state);
        if (count <= 0)
                return -EHOSTUNREACH;
        srv_order(records, (size_t)count, by_chance, NULL);
        for (int i = 0; i < count; i++)
                buf_printf(ret, "%shttps://%s:%u", i ? " " : "", records[i].host, records[i].port);
        return 0;
}

bool srv_is_domain(struct str text)
{
        for (size_t i = 0; i < text.n; i++)
                if (!(text.p[i] >= 'a' && text.p[i] <= 'z') && !(text.p[i] >= 'A' && text.p[i] <= 'Z') &&
                    !(text.p[i] >= '0' && text.p[i] <= '9') && text.p[i] != '-' && text.p[i] != '.')
                        return false;
        return text.n > 0 && text.n < 254 && str_find(text, '.') > 0;
}
