/* presets: settings for requests that the administrator defines under a name, and that requests refer to.
 *
 *   virtual_queues:
 *     short: {places: 'QueueName == "short"', users: ['*@lab'], time_limit: 90m}
 *   policies:
 *     night: {placement: passive, queues: [short, long]}
 *   applications:
 *     root: {command: /opt/root/bin/root, environment: {ROOTSYS: /opt/root}}
 *   initializers:
 *     web: {attributes: {JobPrio: -5}, policy: night}
 *   recorders:
 *     star: {users: ['*@star'], keywords: [dataset, files_per_job]}
 *   defaults: {policy: night}
 *
 * A request names them by its attributes JobInitializer, JobApplication, JobDispatcher, JobVirtualQueue and
 * JobPolicy. When it is submitted each becomes what the core has already: default values of attributes, a
 * condition that is added to Requirements, variables that are added to the environment, and a Rank. So jobs
 * in the queue keep what they were submitted with, and a change of the settings holds for later submits.
 * Immutable once read; any thread may use it.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"

#define PRESET_NONE "none" /* name by which a request declines a default */

enum preset_kind {
        PRESET_INITIALIZER,
        PRESET_APPLICATION,
        PRESET_DISPATCHER,
        PRESET_QUEUE,
        PRESET_POLICY,
        PRESET_KINDS
};

struct preset_attribute {
        struct str name, text; /* text: an expression */
};
struct preset {
        struct str name;
        const char **users; /* patterns of share_is_user; none: everybody */
        size_t user_count, user_cap;
        struct preset_attribute *attributes; /* defaults for attributes that a job does not set */
        size_t attribute_count, attribute_cap;
        struct str environment; /* variables as the content of a ClassAd string; empty: none */
        struct str condition;   /* over a place; empty: none */
        struct str
                dispatcher; /* of a virtual queue, whose condition includes the dispatcher's; empty: none */
        struct preset_member { /* virtual queues of a policy, sorted by search order after linking */
                struct str name;
                uint64_t order;
                const struct preset *queue;
        } * members;
        size_t member_count, member_cap;
        uint64_t order; /* of a virtual queue; UINT64_MAX: its position in the list of the policy */
        struct str file;
        unsigned line;
};
struct config_presets {
        struct arena arena; /* memory of all texts */
        struct preset_list {
                struct preset **v;
                size_t count, cap;
        } kinds[PRESET_KINDS];
        struct preset_list
                catalogs; /* whose condition is a query; a dataset names them, catalog:NAME?QUERY */
        /* Recorders of statistics: `users` are those whose requests they record, `attributes` the keywords,
         * by name. */
        struct preset_list recorders;
        bool has_recorders;                /* false: everything is recorded */
        struct str defaults[PRESET_KINDS]; /* names; empty: none */
        struct str defaults_file;
        unsigned defaults_line;
};

struct buf;
struct doc;
struct submission;
void config_presets_deinit(struct config_presets *p);
/* Each reads one section of the settings. Returns 0; -EINVAL with err that names file and line. */
int config_presets_read_initializers(void *at, const struct doc *d, struct err *err);
int config_presets_read_applications(void *at, const struct doc *d, struct err *err);
int config_presets_read_dispatchers(void *at, const struct doc *d, struct err *err);
int config_presets_read_queues(void *at, const struct doc *d, struct err *err);
int config_presets_read_policies(void *at, const struct doc *d, struct err *err);
int config_presets_read_catalogs(void *at, const struct doc *d, struct err *err);
int config_presets_read_recorders(void *at, const struct doc *d, struct err *err);
int config_presets_read_defaults(void *at, const struct doc *d, struct err *err);
/* Resolves references between presets, after all sections were read. Returns 0; -EINVAL with err as above. */
int config_presets_link(struct config_presets *p, struct err *err);

const char *preset_kind_name(enum preset_kind kind);      /* "policy", for people */
const char *preset_kind_attribute(enum preset_kind kind); /* "JobPolicy" */
/* Returns whether the attribute names a preset (case does not matter). */
bool preset_is_attribute(struct str name);
/* Returns NULL if there is none of this name. */
const struct preset *preset_find(const struct config_presets *p, enum preset_kind kind, struct str name);
/* Writes the query of a catalog's files: the condition of the named catalog of the settings (empty: the whole
 * catalog) and the user's query, which must both hold. Returns 0; -ENOENT: there is none of this name, or
 * -EACCES: `who` may not use it, with err. */
int presets_catalog_query(const struct config_presets *p, const char *who, struct str name, struct str query,
                          struct buf *ret, struct err *err);
bool preset_allows(const struct preset *x, const char *who);
/* Returns whether some recorder counts this keyword of who's requests. */
bool presets_record(const struct config_presets *p, struct str who, const char *keyword);

/* Applies to each part of the submission its presets, and the defaults that `who` may use. Texts are
 * allocated in the arena, which must live as long as the submission. Returns 0; -EINVAL: there is no such
 * preset, or -EACCES: `who` may not use it, with err; then the submission may be partly changed. */
int presets_apply(const struct config_presets *p, const char *who, struct submission *s, struct arena *arena,
                  struct err *err);
/* Gives the time that a job may take at most, if its request names these presets (empty: none of the kind)
 * and sets no AllowedExecuteDuration. Of the virtual queues of a policy the one with the shortest time
 * counts, because the jobs may go to any of them. Returns as presets_apply; or -EDOM with err: the time is
 * not known before there is a job. */
struct preset_time {
        uint64_t seconds; /* 0: nothing limits the time */
        char of[160];     /* whose limit it is, for people: "the virtual queue short" */
};
int presets_time_limit(const struct config_presets *p, const char *who, const struct str named[PRESET_KINDS],
                       struct preset_time *ret, struct err *err);
/* Only checks that `who` may use the presets of a submission that they were already applied to. */
int presets_check(const struct config_presets *p, const char *who, const struct submission *s,
                  struct err *err);
