/* principal: the identity of a user, `name@domain`. Whatever a peer proves (a unix socket's uid, a token,
 * a certificate) is mapped to a principal, and jobs, limits and history use only principals.
 *
 * The domain is the part after the last '@'. A name is 1 to 64 bytes of letters, digits and . _ - + $ @ \
 * (directory services have local names such as ann@corp); a domain is 1 to 190 bytes of letters, digits, .
 * and -. Neither begins with a dash or a dot. Comparison is exact. */
#pragma once
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define PRINCIPAL_NAME_MAX   64
#define PRINCIPAL_DOMAIN_MAX 190
#define PRINCIPAL_MAX        (PRINCIPAL_NAME_MAX + 1 + PRINCIPAL_DOMAIN_MAX)

enum role { ROLE_USER, ROLE_OPERATOR, ROLE_ADMIN };
const char *role_name(enum role r);
int role_parse(struct str text, enum role *ret); /* 0 or -EINVAL */

/* Splits the text into two parts, which borrow from it. Returns 0 or -EINVAL. */
int principal_split(struct str text, struct str *ret_name, struct str *ret_domain);
/* Appends name@domain. Returns 0; or -EINVAL, with nothing appended, when a part is invalid. */
int principal_print(struct buf *out, struct str name, struct str domain);

/* Appends the principal of a local user: the name in the user database @ domain. Returns 0; -ENOENT when
 * no user has the uid, and such a peer must be refused; -EINVAL when the name is not valid in a principal;
 * or another -errno of the user database. */
int principal_of_uid(struct buf *out, uid_t uid, struct str domain, struct err *err);
