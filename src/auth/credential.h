/* credential: what a user gives his jobs so that they can speak for him elsewhere, and what can be told of
 * it.
 *
 * A proxy is an X.509 certificate with its chain and its private key, in PEM, as grid tools have it. A token
 * is a bearer token in one line (RFC 6750); one that is a JSON Web Token says when it expires (RFC 7519,
 * `exp`). An S3 key is a shared credentials file of the AWS tools. A file is anything else. Pure but for what
 * OpenSSL keeps.
 */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum credential_type { CREDENTIAL_PROXY, CREDENTIAL_TOKEN, CREDENTIAL_S3, CREDENTIAL_FILE };
#define CREDENTIAL_BYTES_MAX (64u << 10)
#define CREDENTIAL_NAME_MAX  64u

const char *credential_type_name(enum credential_type t);              /* "proxy", "token", "s3", "file" */
int credential_type_parse(struct str text, enum credential_type *ret); /* 0, -EINVAL */
/* Letters, digits, '_', '-', '.', '@', not beginning with '.' or '-': it is a file's name at places. */
bool credential_name_ok(struct str name);
/* Is it what it shall be, and until when is it good? *ret_expires_ms: Unix milliseconds, 0: it does not say.
 * 0, or -EINVAL, -E2BIG with err, which never has any of the data. */
int credential_look(enum credential_type t, struct str data, int64_t *ret_expires_ms, struct err *err);
