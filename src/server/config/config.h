/* config: the server's settings, from its options and from DIR/droverd.yaml.
 *
 * Options take precedence over the file. The file is a YAML mapping; the table in config.c has every key,
 * and an unknown one is an error that names file and line. */
#pragma once
#include "auth/principal.h"
#include "base/err.h"
#include "base/system/log.h"
#include "core/core.h"
#include "server/config/backends.h"
#include "server/config/bank.h"
#include "server/config/keep.h"
#include "server/config/limits.h"
#include "server/config/mirror.h"
#include "server/config/nodes.h"
#include "server/config/notify.h"
#include "server/config/openid.h"
#include "server/config/order.h"
#include "server/config/presets.h"
#include "server/config/provision.h"
#include "server/config/reservations.h"
#include "server/config/sources.h"
#include "server/config/sssrmap.h"
#include "server/config/stores.h"

#define CONFIG_LISTS_MAX    32
#define CONFIG_SETTINGS_MAX 64

struct config_list {
        char *items[CONFIG_LISTS_MAX];
        size_t count;
};
struct config {
        char *dir;          /* absolute */
        char *file;         /* NULL: DIR/droverd.yaml if it exists */
        char *domain;       /* domain of local users: root@DOMAIN */
        char *user;         /* user that the server runs as if root starts it, see own_user.h; or NULL */
        char *store;        /* "sqlite" or a postgresql:// URI; NULL: sqlite */
        int64_t standby_ms; /* see store_place; 0: a second server is refused */
        bool standby_reads; /* while another server leads, answer reads */
        bool follow;        /* only answer them (daemon/follow.h) */
        char *api_listen;   /* host:port of the API over TLS; NULL: none */
        bool page;          /* serve the web page at api_listen */
        struct config_list listen;            /* host:port for agents */
        struct config_list names;             /* further names and addresses in the server's certificate */
        struct config_list admins, operators; /* principals */
        enum role catalog_write;              /* lowest role that may write to the catalog */
        enum log_level log_level;
        int64_t lease_ms;              /* 0: the core's default */
        int64_t agent_certificate_ms;  /* validity of an agent's certificate; 0: 30 days */
        int64_t keep_finished_ms;      /* 0: the core's default */
        int64_t gang_wait_ms;          /* 0: the core's default */
        double reserve_idle;           /* fraction, 0 to 1; 0: the core's default */
        int64_t reserve_after_ms;      /* 0: the core's default; -1: never */
        int64_t better_wait_ms;        /* 0: the core's default; -1: never */
        enum core_placement placement; /* how a place is chosen for a job */
        struct config_limits limits;
        struct config_order order;
        struct config_stores stores; /* stores, and the users' clearances for labels */
        char *user_log; /* UserLogFormat of jobs that do not set it, as an expression; NULL: the default */
        struct config_notify notify;
        struct config_mirror mirror;
        struct config_openid openid;
        struct config_nodes nodes;
        struct config_provision provision;
        struct config_backends backends;
        struct config_sources sources;
        struct config_keep keep;
        struct config_bank bank;
        struct config_reservations reservations;
        struct config_presets presets;
        struct config_sssrmap sssrmap;
        uint64_t digests[CONFIG_SETTINGS_MAX]; /* hash of each setting's content in the file; 0: not set */
        bool check;                            /* only open, replay and check the state */
        bool check_config;                     /* only read and check the settings */
        char *backup, *restore; /* only make a backup in this folder; only restore the one in this folder */
        bool json;              /* report the result of backup or restore as JSON */
        int argc;               /* the command line, borrowed, to read the settings again */
        char **argv;
};

void config_deinit(struct config *c);
/* Returns the address of a PostgreSQL database, or NULL: DIR/drover.db is the store. */
const char *config_postgres(const struct config *c);
/* Reads the command line and the file. Returns 0; or -EINVAL or -errno with err. --help and --version
 * print and return 1. */
int config_read(struct config *c, int argc, char **argv, struct err *err);
/* Fills the core's settings. The caller adds the clock of evaluations, and sets whether the core is a
 * shadow. */
void config_core(const struct config *c, struct core_config *ret);
/* Appends the names of settings that differ between the two: those that take effect on SIGHUP (reloads),
 * or those that need a restart. */
void config_changes(const struct config *before, const struct config *now, bool reloads, struct buf *out);
/* Parses the text of a settings file; `name` is the file's name in messages. Values that are set already
 * are kept. */
int config_parse(struct config *c, const char *name, struct str text, struct err *err);
