/* credential: checks the credentials that users give to their jobs, and reads what they say about
 * themselves.
 *
 * A proxy is an X.509 certificate with its chain and its private key, in PEM, as grid tools use it. A
 * token is a bearer token in one line (RFC 6750); a JSON Web Token says when it expires (RFC 7519, `exp`).
 * An S3 key is a shared credentials file of the AWS tools. A file is anything else. Pure, except for
 * OpenSSL's state. */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum credential_type { CREDENTIAL_PROXY, CREDENTIAL_TOKEN, CREDENTIAL_S3, CREDENTIAL_FILE };
#define CREDENTIAL_BYTES_MAX (64u << 10)
#define CREDENTIAL_NAME_MAX  64u

const char *credential_type_name(enum credential_type t);              /* "proxy", "token", "s3", "file" */
int credential_type_parse(struct str text, enum credential_type *ret); /* 0, -EINVAL */
/* Accepts letters, digits, '_', '-', '.', '@', not beginning with '.' or '-', because the name becomes a
 * file name at places. */
bool credential_name_ok(struct str name);
/* Checks that the data is a credential of this type, and reads when it expires. *ret_expires_ms: Unix
 * milliseconds, 0: unknown. Returns 0, or -EINVAL or -E2BIG with err, which never quotes the data. */
int credential_look(enum credential_type t, struct str data, int64_t *ret_expires_ms, struct err *err);
