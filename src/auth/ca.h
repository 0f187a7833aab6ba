/* ca: the instance's own certificate authority. Made at first start, it signs the server's certificate and
 * those of the agents; clients and agents know it by the SHA-256 of its certificate.
 *
 * Files: DIR/ca.key (0600, PKCS#8) and DIR/ca.crt, EC P-256, 20 years. Whoever has ca.key can be this server
 * and any of its agents. Certificates follow RFC 5280: agents' have O=agent, CN=<name> and are for client
 * authentication only, the server's has O=server and is for server authentication only. They begin CA_SKEW_S
 * before `now`, and the authority ten years before, for clocks that are behind, or are set back later.
 *
 * Not thread-safe as far as opening goes; an open ca is only read, so several threads may issue.
 */
#pragma once
#include "auth/csr.h"

#define CA_SKEW_S        86400
#define CA_CSR_BYTES_MAX (16 << 10)

struct ca;
/* Loads the authority of the folder (made when absent, 0700), or makes one there. `title` is its common name,
 * for people; it counts only when one is made. 0; -EINVAL when a file is damaged, the key is not the
 * certificate's, or it is past its end; -EACCES when others may read the key; -ENOENT when the certificate is
 * there without its key; other -errno. err says what to do. */
int ca_open(const char *folder, struct str title, int64_t now_ms, struct ca **ret, struct err *err);
void ca_free(struct ca *ca);                     /* NULL is fine */
struct str ca_cert_pem(const struct ca *ca);     /* lives as long as ca */
const char *ca_fingerprint(const struct ca *ca); /* 64 hexadecimal digits, lower case */

/* A key and a certificate for the server, for `valid_s` seconds; nothing is kept of it. names: host names and
 * addresses it is reached by; "droverd" is always among them. PEM is appended. 0; -EINVAL for a name that is
 * neither; -EIO. */
int ca_issue_server(const struct ca *ca, const struct str *names, size_t count, int64_t now_ms,
                    int64_t valid_s, struct buf *ret_cert_pem, struct buf *ret_key_pem, struct err *err);

/* A certificate for an agent's key. Of the request only the key counts (EC of at least 256 bits or Ed25519,
 * and it must be signed with it): the name is the one given here. *ret_facts (may be NULL) has the serial
 * number to record. 0; -EINVAL for a request or a name that is not valid; -EIO. */
int ca_issue_agent(const struct ca *ca, struct str csr_pem, struct str name, int64_t now_ms, int64_t valid_s,
                   struct buf *ret_cert_pem, struct cert_facts *ret_facts, struct err *err);
