/* credential_sync: sends changed credentials of a submitted request. */
#pragma once

struct remote_request;

/* Sends the credentials of a submitted request that the other server does not have yet. */
void remote_credential_sync(struct remote_request *r);
