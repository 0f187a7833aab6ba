/* test_help: shared by the tests of ev/ and wire/: a loop with a time limit, a folder, certificates. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "ev/loop.h"

#define STUCK_MS 20000

/* Runs the loop until loop_stop; fails the test when that takes STUCK_MS. */
void help_run(struct loop *l);
/* Runs the loop for so long. */
void help_run_ms(struct loop *l, int64_t ms);
/* A new folder under $TMPDIR or /tmp; freed with help_folder_remove. */
char *help_folder(void);
void help_folder_remove(char *path);

/* A CA, or a certificate signed by one (ca NULL: by itself), as PEM. from_s and until_s count from now. */
struct help_cert {
        char *cert_pem, *key_pem;
        char fingerprint[65];
        void *x509, *key;
};
void help_cert_make(struct help_cert *ret, const struct help_cert *ca, const char *common_name, int serial,
                    long from_s, long until_s);
/* usage: "clientAuth", "serverAuth". */
void help_cert_make_for(struct help_cert *ret, const struct help_cert *ca, const char *common_name,
                        int serial, long from_s, long until_s, const char *usage);
void help_cert_free(struct help_cert *c);
