/* hex: bytes as hexadecimal digits, two for each: written in lower case, read in either. */
#pragma once
#include "base/str.h"

#define HEX_UUID 37 /* of a UUID's 16 bytes: 32 digits, four dashes and a zero */

int hex_digit(char c); /* value of a digit; -1: c is none */
/* Writes 2 * n digits and a NUL. */
void hex_print(char *ret, const void *bytes, size_t n);
/* Writes a UUID in the form 8-4-4-4-12 (RFC 4122). */
void hex_print_uuid(char ret[HEX_UUID], const unsigned char uuid[16]);
/* Decodes exactly 2 * n digits into n bytes. 0; -EINVAL, with nothing written. */
int hex_read(struct str text, void *ret, size_t n);
