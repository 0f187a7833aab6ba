/* shepherd_protocol: the messages between the agent and its shepherd.
 *
 * A private SOCK_SEQPACKET unix socket, STATE/shepherd.sock, between programs of one machine and one version:
 * plain structs. A message is a batch of records, each a shepherd_record followed by its data, `size` bytes
 * in total, a multiple of 8. A batch over SHEPHERD_DIRECT_MAX is sent as a sealed memory file: one
 * SHEPHERD_MEMORY record with the descriptor. The agent begins with HELLO; the shepherd answers WELCOME, a
 * CHILD for each child it knows, and LISTED. Afterwards it sends a CHILD whenever a child's state has
 * changed, and a PONG for each PING, by which the agent distinguishes an idle shepherd from one that hangs.
 * There is one agent at a time: a new connection replaces the old one.
 *
 * A START that is read after the time of the preceding START_BY, or after its agent has disconnected, is not
 * carried out: it is reported as FAILED at SHEPHERD_AT_DEADLINE. Before the shepherd checks these conditions,
 * and before it forks, it writes the id into the file SHEPHERD_BEGUN beside its socket, where it stays until
 * FORGET. An agent reads this file if the shepherd does not answer: a START that is not in it after its time,
 * or after the end of the agent that sent it, has not begun and never will.
 */
#pragma once
#include <stdint.h>

#define SHEPHERD_VERSION                                                                                     \
        5u /* 1: without PING; 2: without START_BY and SHEPHERD_BEGUN; 3: without GUEST; 4: without TERMINAL \
            */
#define SHEPHERD_DIRECT_MAX  (64u << 10)
#define SHEPHERD_BATCH_MAX   (16u << 20)
#define SHEPHERD_RLIMITS_MAX 8
#define SHEPHERD_CGROUPS_MAX 8
#define SHEPHERD_WORDS_MAX   131072 /* arguments and environment */
#define SHEPHERD_SOCKET      "shepherd.sock"
#define SHEPHERD_IS_READY    "ready" /* on --ready-fd; instead, in words: why it cannot start */
#define SHEPHERD_MARKER                                                                                      \
        "_DROVER_ATTEMPT=" /* variable of every job: <instance>/<request>.<member>.<fence>; of one in a      \
                              batch system with "batch:" before it, which matches no shepherd's */
#define SHEPHERD_GUEST_MARKER                                                                                \
        "_DROVER_EXEC=" /* of a guest that is a container's command:                                         \
                           <instance>/<request>.<member>.<fence>.<step>, the step in hexadecimal */
#define SHEPHERD_NO_SLOT     UINT32_MAX
#define SHEPHERD_BEGUN       "shepherd.begun"
#define SHEPHERD_BEGUN_MAGIC 0x316e756765425344u /* "DSBegun1" */
#define SHEPHERD_BEGUN_MAX   32768

enum shepherd_kind {
        SHEPHERD_HELLO = 1,
        SHEPHERD_START,
        SHEPHERD_KILL,
        SHEPHERD_SUSPEND, /* a shepherd_name */
        SHEPHERD_RESUME,  /* a shepherd_name */
        SHEPHERD_FORGET,  /* a shepherd_name: the exit was recorded elsewhere */
        SHEPHERD_LEASE,
        SHEPHERD_QUIT, /* a shepherd_name, ignored: kill all and end */
        SHEPHERD_MEMORY,
        SHEPHERD_WELCOME,
        SHEPHERD_CHILD,
        SHEPHERD_LISTED, /* a shepherd_name, ignored */
        SHEPHERD_SIGNAL,
        SHEPHERD_PING, /* a shepherd_name, ignored */
        SHEPHERD_PONG, /* a shepherd_name, ignored */
        SHEPHERD_START_BY,
};

struct shepherd_record {
        uint32_t size, kind;
};

/* Id of a child: a step of an attempt. The shepherd only compares it. */
struct shepherd_id {
        uint64_t request;
        uint32_t member, fence, step, zero;
};

struct shepherd_hello { /* HELLO and WELCOME */
        struct shepherd_record record;
        uint32_t version;
        int32_t pid;
        uint32_t parts;  /* WELCOME: parts of SHEPHERD_CONTAINMENT that are available */
        int32_t no_view; /* WELCOME: an errno, when SHEPHERD_HIDE is not among them */
};

struct shepherd_name {
        struct shepherd_record record;
        struct shepherd_id id;
};

struct shepherd_kill {
        struct shepherd_record record;
        struct shepherd_id id;
        uint64_t grace_ms; /* SIGTERM to its process group now and SIGKILL to its tree then; 0: SIGKILL now */
};

struct shepherd_signal { /* sent to its process group while its first process lives */
        struct shepherd_record record;
        struct shepherd_id id;
        int32_t signal;
        uint32_t zero;
};

struct shepherd_lease {
        struct shepherd_record record;
        uint64_t until_boot_ms; /* CLOCK_BOOTTIME at which every child is killed, unless moved; 0: never */
};

struct shepherd_start_by { /* applies to the START in the next record */
        struct shepherd_record record;
        uint64_t boot_ms; /* CLOCK_BOOTTIME after which it is not begun; 0: whenever it is read */
};

struct shepherd_rlimit {
        uint32_t resource, zero;
        uint64_t soft, hard;
};

enum {
        SHEPHERD_STDOUT_APPEND = 1,
        SHEPHERD_STDERR_APPEND = 2,
        SHEPHERD_STDERR_IS_STDOUT = 4,
        SHEPHERD_MAKE_SANDBOX = 8,    /* made for the user as STATE/jobs/<last component> if it is missing */
        SHEPHERD_REMOVE_SANDBOX = 16, /* removed once the child has ended, if it is empty */
        SHEPHERD_STDIN_FD = 32,       /* the record travels alone, with its standard input beside it */
        SHEPHERD_SHARE_SANDBOX =
                128, /* with MAKE: owned by the group of STATE/jobs, which may make files in it */
        SHEPHERD_CREDENTIALS = 256, /* credentials in the sandbox are removed when the lease ends it */
        SHEPHERD_CONTAINER = 64,    /* processes outside of its tree with its marker are its own, too; for a
                                       guest: those with its SHEPHERD_GUEST_MARKER */
        SHEPHERD_HIDE = 512,        /* the parts of containment: see agent/shepherd/containment.h */
        SHEPHERD_OWN_TMP = 1024,
        SHEPHERD_NO_PRIVILEGES = 2048,
        SHEPHERD_FILTER = 4096,
        SHEPHERD_NO_NETWORK = 8192,
        SHEPHERD_CONTAIN_ALL = 16384, /* a part of containment that is not available is a failure */
        /* Runs beside a child of the same request, member and fence, in its control group: it ends when that
         * child ends, and its own end kills only its own process group. Without such a child it fails. */
        SHEPHERD_GUEST = 32768,
        SHEPHERD_TERMINAL =
                65536, /* with STDIN_FD, a terminal: becomes its controlling terminal and all its streams */
};
#define SHEPHERD_CONTAINMENT                                                                                 \
        (SHEPHERD_HIDE | SHEPHERD_OWN_TMP | SHEPHERD_NO_PRIVILEGES | SHEPHERD_FILTER | SHEPHERD_NO_NETWORK)

/* Strings follow, each with its NUL: owner, user, sandbox, cwd, stdin, stdout, stderr, path, the cgroup
 * directories, argv, environment; then zeros to a multiple of 8. Relative paths of streams are opened
 * beneath the sandbox; "" is /dev/null. user "": the shepherd's own user. */
struct shepherd_start {
        struct shepherd_record record;
        struct shepherd_id id;
        uint32_t flags;
        uint32_t slot; /* number of the control group, told back in CHILD; SHEPHERD_NO_SLOT for none */
        uint32_t cgroup_count, argc, envc, rlimit_count;
        uint64_t walltime_ms; /* 0: none */
        struct shepherd_rlimit rlimits[SHEPHERD_RLIMITS_MAX];
};

enum shepherd_state {
        SHEPHERD_RUNNING,
        SHEPHERD_EXITED, /* status, times and usage are valid */
        SHEPHERD_FAILED, /* not started: `error` and `where` are valid */
};
enum shepherd_where { /* the step that failed */
                      SHEPHERD_AT_REQUEST,
                      SHEPHERD_AT_FORK,
                      SHEPHERD_AT_CGROUP,
                      SHEPHERD_AT_RLIMIT,
                      SHEPHERD_AT_USER,
                      SHEPHERD_AT_SANDBOX,
                      SHEPHERD_AT_CWD,
                      SHEPHERD_AT_STDIN,
                      SHEPHERD_AT_STDOUT,
                      SHEPHERD_AT_STDERR,
                      SHEPHERD_AT_EXEC,
                      SHEPHERD_AT_CONTAINMENT,
                      SHEPHERD_AT_DEADLINE, /* the START came too late, or from an agent that has gone */
};
enum shepherd_why { SHEPHERD_ITSELF, SHEPHERD_KILLED, SHEPHERD_WALLTIME, SHEPHERD_LEASE_ENDED };

struct shepherd_child {
        struct shepherd_record record;
        struct shepherd_id id;
        uint32_t state, why;
        uint32_t slot;
        int32_t pid;
        int32_t status; /* as wait(2) gives it */
        uint32_t error, where, zero;
        uint64_t started_ms, ended_ms; /* Unix time */
        uint64_t cpu_user_us, cpu_system_us, memory_peak_bytes;
};

struct shepherd_begun { /* layout of the file SHEPHERD_BEGUN */
        uint64_t magic;
        int32_t pid;                                /* pid of the shepherd that writes it */
        uint32_t used;                              /* number of entries of `ids` that were ever used */
        struct shepherd_id ids[SHEPHERD_BEGUN_MAX]; /* all zero: none */
};
