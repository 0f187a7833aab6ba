/* remote: the API over TLS, through libcurl.
 *
 * libcurl and OpenSSL are loaded when the first address is opened, so that commands on the unix socket don't
 * pay for them. The server is believed when its certificate is signed by the CA whose fingerprint stands in
 * the token (drover-user-token.v1.<fingerprint>.…); names and the system's CAs play no part.
 */
#pragma once
#include "cli/client/api.h"

struct remote;
/* address: https://host:port. Loads the libraries, sends nothing yet. 0, or an api_error with err. */
int remote_new(const char *address, const char *token, struct remote **ret, struct err *err);
void remote_free(struct remote *r); /* NULL is fine */
/* As api_call, but for parsing the body: 0 with any status, or an api_error with err. */
int remote_call(struct remote *r, const struct api_request *request, struct api_answer *ret, struct err *err);
