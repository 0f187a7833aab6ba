/* uuid: random identifiers, RFC 4122 version 4, as lower-case text. */
#pragma once
#include "base/str.h"

#define UUID_TEXT 37 /* 36 characters and a NUL */

void uuid_new(char ret[UUID_TEXT]); /* from the kernel's random source; aborts when there is none */
bool uuid_valid(struct str text);   /* 8-4-4-4-12 hexadecimal digits, any version, either case */
