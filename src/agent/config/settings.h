/* settings: tables of what can be set in a struct, by a word of an option or by a node of a file.
 *
 * A setting is a name, a kind, and where its value is in the struct. Whatever a kind keeps is on the heap and
 * the struct's own.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/doc.h"
#include "base/err.h"

#define CONFIG_LIST_MAX 256

struct config_list {
        char *v[CONFIG_LIST_MAX];
        size_t n;
};

enum setting_kind {
        SETTING_TEXT,       /* char * */
        SETTING_LIST,       /* struct config_list, as in the following: of words */
        SETTING_OWNERS,     /* a map of owners to users, as lines of the shepherd's */
        SETTING_WORDS,      /* a map of names to words, or lists of them: lines "name word" */
        SETTING_GPUS,       /* into a SETTING_RESOURCES: "2", "found", or ids */
        SETTING_RESOURCES,  /* a map of names to numbers or ids: "NAME 2", "NAME: id id" */
        SETTING_ATTRIBUTES, /* char *: "a = 1; b = 2; "; in a file also a map of names to expressions */
        SETTING_CPUS,       /* uint64_t, as in the following: thousandths */
        SETTING_SIZE,       /* bytes */
        SETTING_TIME,       /* ms */
        SETTING_COUNT,
        SETTING_SWITCH, /* bool */
        SETTING_POLICY, /* struct pull_policy */
};
struct setting {
        const char *name; /* in the file; the option has '-' for '_' */
        enum setting_kind kind;
        size_t at;
        const char *argument, *help; /* of the option; NULL help: in the file only */
        bool not_zero;               /* 0 is refused: the struct's 0 means that nothing is said */
};
struct settings { /* a table of a struct */
        const struct setting *v;
        size_t n;
};

/* '-' is '_'. NULL: there is none of the name. */
const struct setting *settings_find(struct settings t, struct str name);
/* Calls end with 0, or -EINVAL with err that names the setting. A list grows by the word; settings_read
 * replaces what was there. */
int settings_set(void *object, const struct setting *s, struct str word, struct err *err);
int settings_read(void *object, const struct setting *s, const struct doc *d, struct err *err);
void settings_clear(void *object, const struct setting *s);
void settings_copy(struct settings t, void *to, const void *from); /* to: all zero in what it keeps */
void settings_deinit(struct settings t, void *object);
