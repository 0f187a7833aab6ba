/* hello: the first call to the other server, which returns the server's identity and the name under which it
 * knows this user.
 */
#pragma once

struct remote;
struct remote_login;

void remote_link_open(struct remote *f);        /* makes the first call, and repeats it until it succeeds */
void remote_login_free(struct remote_login *l); /* NULL is fine */
