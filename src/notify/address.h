/* address: to whom a notice may go.
 *
 * Whatever a user writes is checked here before it is used: a mail address has a form that is neither an
 * option of a mailer nor more than one header, and a web address is parsed by the library that will use it.
 * Pure, but for libcurl's parser of URLs.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

struct sockaddr;

#define ADDRESS_MAIL_MAX 254 /* RFC 5321, 4.5.3.1.3, less its brackets */
#define ADDRESS_URL_MAX  2000
#define ADDRESS_HOST_MAX 255

/* name@host or a local user's name: letters, digits and a few marks, none first that a program could take for
 * an option. 0; -EINVAL with err. */
int address_mail_check(struct str text, struct err *err);

struct address_url {
        char host[ADDRESS_HOST_MAX + 1]; /* lower case; a literal IPv6 address in brackets */
        unsigned port;                   /* the scheme's own if none is written */
        bool tls;
};
/* http or https, without a user, a password or a fragment. 0; -EINVAL with err. */
int address_url_parse(struct str text, struct address_url *ret, struct err *err);

/* One entry of an admin's list: "host", which is https on port 443, or "host:port". A literal address names
 * a host, too, and permits this address with this port, even if it is not public. 0; -EINVAL with err. */
struct address_entry {
        char host[ADDRESS_HOST_MAX + 1];
        unsigned port;
        bool any_scheme; /* a port was written */
};
int address_entry_parse(struct str text, struct address_entry *ret, struct err *err);
bool address_entry_permits(const struct address_entry *e, const struct address_url *url);
/* Is it this literal address with this port? */
bool address_entry_is(const struct address_entry *e, const struct sockaddr *to);

/* Not of this machine, link, site or any other that is no single host of the internet (IANA special-purpose
 * registries), also where an IPv6 address wraps an IPv4 one. Unknown families are not public. */
bool address_is_public(const struct sockaddr *to);
