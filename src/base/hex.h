/* hex: bytes as hexadecimal digits, two for each: written in lower case, read in either. */
#pragma once
#include "base/str.h"

#define HEX_UUID 37 /* of a UUID's 16 bytes: 32 digits, four dashes and a zero */

int hex_digit(char c); /* its value; -1: it is none */
/* 2 * n digits and a zero behind them. */
void hex_print(char *ret, const void *bytes, size_t n);
/* 8-4-4-4-12, as RFC 4122 has it. */
void hex_print_uuid(char ret[HEX_UUID], const unsigned char uuid[16]);
/* n bytes of exactly 2 * n digits. 0; or -EINVAL, and nothing is written. */
int hex_read(struct str text, void *ret, size_t n);
