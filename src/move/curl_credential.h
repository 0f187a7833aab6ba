/* curl_credential: presents the credential of a task (move/task.h) to a store, for the curl back end.
 *
 * A token goes into the header Authorization, over https only (RFC 6750, 5.3), and not to another host when
 * the store redirects. A proxy is the client certificate and key of TLS. An S3 key signs each request (AWS
 * Signature Version 4, without a checksum of the body); s3://BUCKET/KEY is the object at the endpoint that
 * the credentials file names (endpoint_url, as for the AWS tools), else at Amazon's of its region. A file is
 * the private key of sftp.
 */
#pragma once
#include <curl/curl.h>

#include "move/mover.h"

struct curl_credential {
        const struct move_credential *c; /* NULL: none */
        char *url;                       /* URL to request; NULL: the task's */
        struct buf id, secret, session, sign;
        int file; /* descriptor of a key that libcurl can read from a file only; -1: none */
};
/* Prepares the credential. Returns 0; or MOVER_DENIED with err: it cannot be used with the task's URL. *c
 * must be deinitialized in either case. */
int curl_credential_init(struct curl_credential *c, const struct transfer *t, struct err *err);
void curl_credential_deinit(struct curl_credential *c);
/* Sets the credential for one request. Appends the header lines that it needs to the list, and returns the
 * list. */
struct curl_slist *curl_credential_set(const struct curl_credential *c, CURL *h, struct curl_slist *lines);
