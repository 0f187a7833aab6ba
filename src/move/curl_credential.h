/* curl_credential: how the curl back end shows a store the credential of its task (move/task.h).
 *
 * A token goes into the header Authorization, over https only (RFC 6750, 5.3), and not on to another host
 * when the store redirects. A proxy is the client's certificate and key of TLS. An S3 key signs each request
 * (AWS Signature Version 4, without a sum of what is sent); s3://BUCKET/KEY is the object at the endpoint
 * that the credentials file names (endpoint_url, as the AWS tools have it), else at Amazon's of its region. A
 * file is the private key of sftp.
 */
#pragma once
#include <curl/curl.h>

#include "move/mover.h"

struct curl_credential {
        const struct move_credential *c; /* NULL: none */
        char *url;                       /* as it is asked for; NULL: as the task has it */
        struct buf id, secret, session, sign;
        int file; /* of a key that must be one; -1: none */
};
/* 0; or MOVER_DENIED: it is of no use there, with err. Deinit in any case. */
int curl_credential_init(struct curl_credential *c, const struct transfer *t, struct err *err);
void curl_credential_deinit(struct curl_credential *c);
/* For one request. Lines of a header that it needs are appended to the list; returned, as curl has it. */
struct curl_slist *curl_credential_set(const struct curl_credential *c, CURL *h, struct curl_slist *lines);
