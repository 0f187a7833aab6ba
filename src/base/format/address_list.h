/* address_list: addresses of servers that stand in for each other, in one text: "https://a:1 https://b:1".
 *
 * Each is https://HOST:PORT or unix:/PATH. They are separated by white space or commas. A socket's path may
 * contain both: an address ends only where the next one begins.
 */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

#define ADDRESS_LIST_MAX 16u

/* Cuts the next address off the list, without checking it. Returns false if there is none. */
bool address_list_next(struct str *list, struct str *ret);
/* Checks the form of each. Returns 0, or -EINVAL with err: one is no such address, they are both sockets and
 * URLs, there is none, or there are more than ADDRESS_LIST_MAX. *ret_https: they are URLs. */
int address_list_check(struct str list, bool *ret_https, struct err *err);
