/* settings: tables of the settings in a struct, which a word of an option or a node of a file can set.
 *
 * A setting has a name, a kind, and the offset of its value in the struct. Memory of values is on the heap
 * and owned by the struct.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/format/doc.h"

#define CONFIG_LIST_MAX 256

struct config_list {
        char *v[CONFIG_LIST_MAX];
        size_t n;
};

enum setting_kind {
        SETTING_TEXT,       /* char * */
        SETTING_LIST,       /* struct config_list, like the next ones: words */
        SETTING_OWNERS,     /* a map of owners to users, as lines of the shepherd's map */
        SETTING_WORDS,      /* a map of names to words or lists of words, as lines "name word" */
        SETTING_GPUS,       /* added to a SETTING_RESOURCES: "2", "found", or ids */
        SETTING_RESOURCES,  /* a map of names to numbers or ids: "NAME 2", "NAME: id id" */
        SETTING_ATTRIBUTES, /* char *: "a = 1; b = 2; "; in a file also a map of names to expressions */
        SETTING_CPUS,       /* uint64_t, like the next ones: thousandths */
        SETTING_SIZE,       /* bytes */
        SETTING_TIME,       /* ms */
        SETTING_COUNT,
        SETTING_SWITCH, /* bool */
        SETTING_POLICY, /* struct pull_policy */
};
struct setting {
        const char *name; /* name in the file; the option has '-' for '_' */
        enum setting_kind kind;
        size_t at;
        const char *argument, *help; /* for the option; help NULL: in the file only */
        bool not_zero;               /* 0 is refused, because the struct's 0 means not set */
};
struct settings { /* the settings of a struct */
        const struct setting *v;
        size_t n;
};

/* Finds a setting; '-' counts as '_'. Returns NULL if there is none of the name. */
const struct setting *settings_find(struct settings t, struct str name);
/* Set a value. settings_set appends the word to a list; settings_read replaces the value. Both return 0, or
 * -EINVAL with err that names the setting. */
int settings_set(void *object, const struct setting *s, struct str word, struct err *err);
int settings_read(void *object, const struct setting *s, const struct doc *d, struct err *err);
void settings_clear(void *object, const struct setting *s);
void settings_copy(struct settings t, void *to, const void *from); /* the settings of `to` must be zero */
void settings_deinit(struct settings t, void *object);
