/* remote: the API over TLS, through libcurl.
 *
 * libcurl and OpenSSL are loaded when the first address is opened, so that commands on the unix socket do
 * not pay for them. The server is trusted if its certificate is signed by the CA whose fingerprint is part
 * of the token (drover-user-token.v1.<fingerprint>.…); host names and the system's CAs play no part.
 */
#pragma once
#include "cli/client/api.h"

struct remote;
/* Loads the libraries and prepares a connection to `address`, https://host:port; nothing is sent yet.
 * Returns 0, or an api_error with err. */
int remote_new(const char *address, const char *token, struct remote **ret, struct err *err);
void remote_free(struct remote *r); /* NULL is fine */
/* Like api_call, but the body is not parsed: returns 0 with any status, or an api_error with err. */
int remote_call(struct remote *r, const struct api_request *request, struct api_answer *ret, struct err *err);
