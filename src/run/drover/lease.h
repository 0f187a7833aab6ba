/* lease: keeps requests at the other server alive as long as the agent's own lease. Each request is renewed
 * once for each renewal of the agent's lease. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct remote;
struct remote_lease;

struct remote_lease *remote_lease_new(void); /* freed with free() */

void remote_lease_set(struct remote *f, int64_t until_boot_ms); /* end of the agent's lease; 0: none */
bool remote_lease_is_over(const struct remote *f, int64_t now); /* now: boot clock */
int64_t remote_lease_ms(const struct remote *f);                /* lease to give a request now */
int64_t remote_lease_given_ms(const struct remote *f);          /* lease that a request was given last */
uint64_t remote_lease_serial(const struct remote *f); /* number of times that the agent's lease was set */
/* Renews the next request that is due, and then the others one after the other. */
void remote_lease_send(struct remote *f);
