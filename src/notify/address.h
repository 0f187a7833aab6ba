/* address: checks mail and web addresses to which notices may be sent.
 *
 * All input from users is checked here before it is used: a mail address cannot be read as an option of a
 * mailer or as more than one header, and a web address is parsed by the library that will use it. Pure,
 * except for libcurl's URL parser. */
#pragma once
#include "base/err.h"
#include "base/str.h"

struct sockaddr;

#define ADDRESS_MAIL_MAX 254 /* RFC 5321, 4.5.3.1.3, without the brackets */
#define ADDRESS_URL_MAX  2000
#define ADDRESS_HOST_MAX 255

/* Accepts name@host or a local user's name: letters, digits and a few marks, not beginning with one that a
 * program could take for an option. Returns 0; or -EINVAL with err. */
int address_mail_check(struct str text, struct err *err);

struct address_url {
        char host[ADDRESS_HOST_MAX + 1]; /* lower case; a literal IPv6 address in brackets */
        unsigned port;                   /* the scheme's default if none is written */
        bool tls;
};
/* Accepts http or https, without a user, a password or a fragment. Returns 0; or -EINVAL with err. */
int address_url_parse(struct str text, struct address_url *ret, struct err *err);

/* Reads one entry of an admin's list: "host", which means https on port 443, or "host:port". A literal
 * address is also a host, and permits this address with this port even if it is not public. Returns 0; or
 * -EINVAL with err. */
struct address_entry {
        char host[ADDRESS_HOST_MAX + 1];
        unsigned port;
        bool any_scheme; /* a port was given */
};
int address_entry_parse(struct str text, struct address_entry *ret, struct err *err);
bool address_entry_permits(const struct address_entry *e, const struct address_url *url);
/* Returns whether the entry is this literal address with this port. */
bool address_entry_is(const struct address_entry *e, const struct sockaddr *to);

/* Returns whether the address is of a single host on the internet: not of this machine, link or site, and
 * not in any other special-purpose range (IANA registries), also if an IPv6 address embeds an IPv4 one.
 * Unknown families are not public. */
bool address_is_public(const struct sockaddr *to);
