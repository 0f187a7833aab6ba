#include "ev/admission.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/share.h"

#define NETWORK_BYTES 8u /* prefix of an IPv6 address: a host usually has its whole /64 network */

struct admission {
        struct share *places, *strangers;
};

struct admission *admission_new(size_t places, size_t strangers)
{
        struct admission *a = mem_new(struct admission);

        a->places = share_new(places);
        a->strangers = share_new(strangers);
        return a;
}

void admission_free(struct admission *a)
{
        if (!a)
                return;
        assert(share_taken(a->places) == 0 && share_taken(a->strangers) == 0);
        share_free(a->places);
        share_free(a->strangers);
        free(a);
}

/* A socket that does not tell its peer any more counts for the holder without a name. */
static void holder_name(int fd, char ret[ADMISSION_HOLDER_MAX])
{
        union {
                struct sockaddr any;
                struct sockaddr_in v4;
                struct sockaddr_in6 v6;
                struct sockaddr_storage room;
        } a = {0};
        socklen_t n = sizeof(a), size = sizeof(struct ucred);
        struct in6_addr network = {0};
        struct ucred peer;

        *ret = '\0';
        if (getpeername(fd, &a.any, &n) != 0)
                return;
        if (a.any.sa_family == AF_INET) {
                inet_ntop(AF_INET, &a.v4.sin_addr, ret, ADMISSION_HOLDER_MAX);
        } else if (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr)) {
                inet_ntop(AF_INET, a.v6.sin6_addr.s6_addr + 12, ret, ADMISSION_HOLDER_MAX);
        } else if (a.any.sa_family == AF_INET6) {
                memcpy(&network, &a.v6.sin6_addr, NETWORK_BYTES);
                inet_ntop(AF_INET6, &network, ret, ADMISSION_HOLDER_MAX);
        } else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
                snprintf(ret, ADMISSION_HOLDER_MAX, "uid %u", (unsigned)peer.uid);
        }
}

bool admission_take(struct admission *a, int fd, bool stranger, struct admission_place *ret)
{
        struct admission_place p = {.admission = a};

        holder_name(fd, p.holder);
        if (!share_take(a->places, str_of(p.holder)))
                return false;
        if (stranger && !admission_meet(&p)) {
                share_give(a->places, str_of(p.holder));
                return false;
        }
        *ret = p;
        return true;
}

bool admission_meet(struct admission_place *p)
{
        assert(!p->stranger);
        p->stranger = share_take(p->admission->strangers, str_of(p->holder));
        return p->stranger;
}

void admission_known(struct admission_place *p)
{
        if (!p->admission || !p->stranger)
                return;
        share_give(p->admission->strangers, str_of(p->holder));
        p->stranger = false;
}

void admission_give(struct admission_place *p)
{
        if (!p->admission)
                return;
        admission_known(p);
        share_give(p->admission->places, str_of(p->holder));
        p->admission = NULL;
}
