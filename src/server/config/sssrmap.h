/* sssrmap: the section "sssrmap" of the settings: whose messages of SSSRMAP are accepted. */
#pragma once
#include "auth/principal.h"
#include "base/err.h"
#include "base/job/owners.h"

#define SSSRMAP_KEYS_MAX 100u

struct doc;
struct config_sssrmap {
        bool on; /* the section exists */
        struct config_sssrmap_key {
                char *name;           /* as the security token has it; NULL: a token without a name */
                char *key;            /* the secret that its holder and the server share */
                struct owners actors; /* those whom its holder speaks for */
                enum role role;       /* the highest role that an actor has */
                bool sha1;            /* messages may be signed with SHA-1 */
        } * keys;
        size_t key_count;
};
/* `place` is a struct config_sssrmap, which is replaced. Reads the files of the keys. Returns 0; or -EINVAL
 * or another -errno with err that names file and line. */
int config_sssrmap_read(void *place, const struct doc *d, struct err *err);
void config_sssrmap_deinit(struct config_sssrmap *s);
/* The key of this name; name NULL: the one without. NULL: there is none. */
const struct config_sssrmap_key *config_sssrmap_key(const struct config_sssrmap *s, const char *name);
