/* srv: the servers of a domain, by its DNS records _drover._tcp.DOMAIN of the type SRV (RFC 2782). The
 * machine's own resolver is asked. Who a server is does not follow from these records: the token says it. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define SRV_RECORDS_MAX 32u

struct srv_record {
        uint16_t priority, weight, port;
        char host[256];
};
/* Reads the records of an answer, in the order of the answer. Returns their number; the rest of more than
 * SRV_RECORDS_MAX is left out. -EINVAL: the answer is malformed. Pure. */
int srv_parse(struct str answer, struct srv_record ret[static SRV_RECORDS_MAX]);
/* Puts records in the order in which they are to be asked: by priority, and of the same priority by chance,
 * in proportion to their weights. `chance` gives a number below its argument, which is not 0. */
void srv_order(struct srv_record *records, size_t count, uint32_t (*chance)(void *arg, uint32_t below),
               void *arg);
/* Appends https://HOST:PORT of each server, separated by spaces. Returns 0, or -EHOSTUNREACH with err. */
int srv_find(const char *domain, struct buf *ret, struct err *err);
/* Returns whether the text is a domain, not an address: letters, digits, dashes and at least one dot. */
bool srv_is_domain(struct str text);
