/* ca: the instance's own certificate authority. It is made at first start and signs the certificates of
 * the server and of the agents; clients and agents identify it by the SHA-256 of its certificate.
 *
 * Files: DIR/ca.key (0600, PKCS#8) and DIR/ca.crt, EC P-256, valid for 20 years. Whoever has ca.key can
 * act as this server and as any of its agents. Certificates follow RFC 5280: those of agents have O=agent,
 * CN=<name> and are for client authentication only; the server's has O=server and is for server
 * authentication only. They begin CA_SKEW_S before `now`, and the authority ten years before, for clocks
 * that are slow or are set back later.
 *
 * Opening is not thread-safe. An open ca is only read, so several threads may issue certificates. */
#pragma once
#include "auth/csr.h"

#define CA_SKEW_S        86400
#define CA_CSR_BYTES_MAX (16 << 10)

struct ca;
/* Loads the authority in the folder (made when absent, 0700), or makes one there. `title` is the common
 * name of a new authority, for people. Returns 0; -EINVAL when a file is damaged, the key does not match
 * the certificate, or the certificate has expired; -EACCES when others may read the key; -ENOENT when the
 * certificate exists without its key; or another -errno. err says what to do. */
int ca_open(const char *folder, struct str title, int64_t now_ms, struct ca **ret, struct err *err);
void ca_free(struct ca *ca);                     /* accepts NULL */
struct str ca_cert_pem(const struct ca *ca);     /* valid as long as ca */
const char *ca_fingerprint(const struct ca *ca); /* 64 hexadecimal digits, lower case */

/* Appends the authority's signature of a text: ECDSA with SHA-256, in DER. Returns 0, or -EIO with err. */
int ca_sign(const struct ca *ca, struct str text, struct buf *ret, struct err *err);

/* Makes a key and a certificate for the server, valid for `valid_s` seconds; they are not stored. names:
 * host names and addresses by which it is reached; "droverd" is always added. PEM is appended. Returns 0;
 * -EINVAL for a name that is neither a host name nor an address; or -EIO. */
int ca_issue_server(const struct ca *ca, const struct str *names, size_t count, int64_t now_ms,
                    int64_t valid_s, struct buf *ret_cert_pem, struct buf *ret_key_pem, struct err *err);

/* Makes a certificate for an agent's key. Of the request only the key is used (EC of at least 256 bits or
 * Ed25519; the request must be signed with it); the name is the given one. *ret_facts (may be NULL) has
 * the serial number to record. Returns 0; -EINVAL for an invalid request or name; or -EIO. */
int ca_issue_agent(const struct ca *ca, struct str csr_pem, struct str name, int64_t now_ms, int64_t valid_s,
                   struct buf *ret_cert_pem, struct cert_facts *ret_facts, struct err *err);
