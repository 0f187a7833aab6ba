/* openid: the section "openid" of the settings: the provider of OpenID Connect by which users sign in at the
 * page, and which of them are users here. */
#pragma once
#include "auth/id_token.h"
#include "base/format/doc.h"

struct config_openid {
        char *issuer;      /* https URL, as the provider has it; NULL: nobody signs in by OpenID Connect */
        char *client_id;   /* ours at the provider */
        char *secret_file; /* the client's secret; NULL: it has none */
        char *address;     /* https://HOST[:PORT], the page's own as browsers have it */
        char *name;        /* the provider's, for users; NULL: its host */
        char *ca_file;  /* whom the provider's certificate must be of; NULL: an authority of this machine */
        char *scopes;   /* words: "openid profile email" */
        bool userinfo;  /* claims that the token lacks are asked for at the provider's userinfo endpoint */
        enum role role; /* the highest that such a session has */
        int64_t session_ms; /* 0: as long as any session */
        struct id_token_users users;
};
void config_openid_deinit(struct config_openid *o);
/* `place` is a struct config_openid. Returns 0, or -EINVAL with err that names file and line. */
int config_openid_read(void *place, const struct doc *d, struct err *err);

/* Splits an https URL without a user, a fragment, white space and other characters that are not printed.
 * Returns false if the text is none. *ret_address is HOST:PORT, *ret_path begins with '/' and includes the
 * query; both are appended. */
bool openid_url_split(struct str url, struct buf *ret_address, struct buf *ret_path);
