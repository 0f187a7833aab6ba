/* POST /SSSRMAP3: requests of SSSRMAP, each of which is translated to one call of the API, one after the
 * other.
 *
 * api_sssrmap (I/O thread) has the body read, up to SSSRMAP_MESSAGE_MAX bytes, since it shows who the caller
 * is. read_message (reader) reads it and checks its signature. dispatch (I/O thread) finds the row of
 * `mappings` for action and object, makes the call's query or document of the row's members, and starts the
 * route that the row names, with the actor as the caller. The route's reply comes to route_replied (I/O
 * thread), and is_made_xml (reader) makes a response of it. go_on (I/O thread) dispatches the next request of
 * the message; after the last one, the responses are signed, and the call ends. Nothing here decides anything
 * that a route decides. A failure is a response, too; only what is no message has a status of HTTP. */
#include <inttypes.h>
#include <stdio.h>

#include "base/heap.h"
#include "base/system/clock.h"
#include "server/access/access.h"
#include "server/api/routes.h"
#include "server/sssrmap/message.h"
#include "server/sssrmap/schema.h"
#include "server/sssrmap/selection.h"

#define CONTENT_TYPE "text/xml; charset=\"utf-8\""
#define TIME_MAX     4000000000ll /* seconds */

enum kind {
        TEXT,
        NUMBER,
        SECONDS,   /* a duration in seconds, as milliseconds */
        MOMENT,    /* seconds since 1970, as milliseconds */
        USER,      /* a principal; a name without a domain gets the server's */
        MEMBER,    /* a principal, or a pattern of some */
        LIST,      /* a list with this text */
        ONE_JOB,   /* the id of a job, 7.0 */
        NAMES,     /* a list of the names between commas */
        USERS,     /* a text with principals between commas */
        UNTIL,     /* seconds since 1970, as milliseconds from StartTime or from now */
        SWITCH,    /* True or False, as active or inactive */
        EDITED,    /* a list with this text, of the jobs that get the attributes which follow */
        COUNT,     /* a whole number, as the text of an attribute */
        PLACES,    /* of a reply: the places of a list, AGENT/QUEUE, with commas between */
        CPUS,      /* of a reply: the sum of the processors of these places */
        PRINCIPAL, /* of a reply: a user, whom a condition may name without the domain */
        OPEN,      /* of a reply: whether an account is not closed */
        MOVED_FOR, /* of a movement: its job, 7.0 or the name in another system */
};
/* A parameter of a request, and the member of the document or of the query that it becomes. */
struct member {
        const char *parameter, *key;
        enum kind kind;
        bool required;
};
enum where { HERE, IN_AD, ABOVE };
/* A member of an element of the reply, and the field that it becomes. */
struct field {
        const char *name, *key;
        enum where where; /* in the element, in its ad, or in the element of which it is a part */
        enum kind kind; /* TEXT, NUMBER and ONE_JOB as they are, SECONDS and MOMENT from milliseconds; PLACES
                         * and those behind it */
};

struct mapping {
        const char *action, *object;
        enum http_method method;
        const char *path;
        const char *before, *after;   /* of a document; NULL: the members are a query */
        const struct member *members; /* up to one without a parameter */
        const char *parameter;        /* the path's {…}; NULL: it has none */
        const char *element, *array;  /* array NULL: the reply is one element */
        const struct field *fields;   /* up to one without a name */
        const char *within; /* array NULL: the member of the reply that is the element; NULL: the reply is */
        const char *parts;  /* the member of each element whose parts are the elements; NULL: none */
};

struct translation {
        struct call_front front;
        struct call *call;
        struct sssrmap_message message;
        struct buf text, body, responses;
        struct buf row;                       /* texts of one element */
        size_t begun;                         /* where the last response begins */
        const struct config_sssrmap_key *key; /* that signs the response; NULL: none */
        const struct mapping *mapping;
        struct sssrmap_fields fields; /* of the mapping */
        struct sssrmap_selection *selection;
        bool admitted; /* the signature or the token is good: the message's requests are answered one by one
                        */
        int code;      /* enum sssrmap_code of a failure before the route was started */
        struct err err;
};

static void translation_free(struct call_front *f)
{
        struct translation *t = container_of(f, struct translation, front);

        sssrmap_selection_free(t->selection);
        sssrmap_deinit(&t->message);
        buf_deinit(&t->text);
        buf_deinit(&t->body);
        buf_deinit(&t->responses);
        buf_deinit(&t->row);
        free(t);
}

static struct translation *translation_of(struct call *c)
{
        return container_of(c->front, struct translation, front);
}

/* ---- the table */

#define END                                                                                                  \
        {                                                                                                    \
                0                                                                                            \
        }

/* One job is found in history, too. */
static const struct member one_job[] = {{"JobId", "", ONE_JOB, true}, END};
static const struct member job_query[] = {
        {"JobId", "id", TEXT, false}, {"UserId", "owner", TEXT, false}, END};
#define SUBMITTED                                                                                            \
        {"Executable", "Cmd", TEXT, true}, {"Arguments", "Arguments", TEXT, false},                          \
                {"StandardInput", "In", TEXT, false}, {"StandardOutput", "Out", TEXT, false},                \
                {"StandardError", "Err", TEXT, false}, {"JobName", "JobBatchName", TEXT, false},             \
                {"ProjectId", "AcctGroup", TEXT, false}, {"QualityOfService", "QOS", TEXT, false},           \
                {"Processors", "RequestCpus", NUMBER, false}, {"Memory", "RequestMemory", NUMBER, false},    \
                {"WallDuration", "AllowedExecuteDuration", NUMBER, false},                                   \
                {"Priority", "JobPrio", NUMBER, false},                                                      \
        {                                                                                                    \
                "QuoteId", "BankQuote", NUMBER, false                                                        \
        }
static const struct member job_submit[] = {SUBMITTED, END},
                           job_submit_in[] = {SUBMITTED,
                                              {"InitialWorkingDirectory", "Iwd", TEXT, true},
                                              {"FileSystemDomain", "FileSystemDomain", TEXT, false},
                                              END};
static const struct member job_named[] = {
        {"JobId", "ids", LIST, true}, {"Description", "reason", TEXT, false}, END};
static const struct member job_priority[] = {
        {"JobId", "ids", LIST, true}, {"Priority", "value", NUMBER, true}, END};
static const struct member job_edit[] = {{"JobId", "ids", EDITED, true},
                                         {"Processors", "RequestCpus", COUNT, false},
                                         {"Memory", "RequestMemory", COUNT, false},
                                         {"WallDuration", "AllowedExecuteDuration", COUNT, false},
                                         END};
static const struct member none[] = {END};
static const struct member account_named[] = {{"ProjectId", "", TEXT, true}, END};
#define AMOUNT                                                                                               \
        {                                                                                                    \
                "Amount", "amount", NUMBER, true                                                             \
        }
#define ACCOUNT                                                                                              \
        {                                                                                                    \
                "ProjectId", "account", TEXT, true                                                           \
        }
#define WHY                                                                                                  \
        {                                                                                                    \
                "Description", "why", TEXT, false                                                            \
        }
#define USED                                                                                                 \
        {"UserId", "user", USER, false}, {"MachineName", "place", TEXT, false},                              \
                {"QualityOfService", "qos", TEXT, false}, {"Processors", "cpus", NUMBER, false},             \
                {"Memory", "memory_mib", NUMBER, false},                                                     \
        {                                                                                                    \
                "WallDuration", "duration_ms", SECONDS, false                                                \
        }
static const struct member deposit[] = {ACCOUNT,
                                        AMOUNT,
                                        {"AllocationId", "id", NUMBER, false},
                                        {"StartTime", "start_ms", MOMENT, false},
                                        {"EndTime", "end_ms", MOMENT, false},
                                        {"CreditLimit", "credit", NUMBER, false},
                                        WHY,
                                        END};
static const struct member withdraw[] = {ACCOUNT, AMOUNT, {"AllocationId", "id", NUMBER, false}, WHY, END};
static const struct member transfer[] = {{"FromProjectId", "account", TEXT, true},
                                         {"ToProjectId", "to", TEXT, true},
                                         AMOUNT,
                                         {"AllocationId", "id", NUMBER, false},
                                         WHY,
                                         END};
static const struct member quote[] = {ACCOUNT, USED, {"EndTime", "end_ms", MOMENT, false}, WHY, END};
static const struct member reserve[] = {
        {"JobId", "job", TEXT, true},         ACCOUNT, USED, {"QuoteId", "quote", NUMBER, false},
        {"EndTime", "end_ms", MOMENT, false}, END};
static const struct member charge[] = {
        {"JobId", "job", TEXT, true},           {"ProjectId", "account", TEXT, false}, USED,
        {"ReservationId", "id", NUMBER, false}, {"Charge", "amount", NUMBER, false},   END};
static const struct member refund[] = {{"JobId", "job", TEXT, true},          ACCOUNT,
                                       {"UserId", "user", USER, false},       AMOUNT,
                                       {"AllocationId", "id", NUMBER, false}, END};
static const struct member release[] = {{"ReservationId", "id", NUMBER, true}, END};
static const struct member advance[] = {{"StartTime", "start_ms", MOMENT, false},
                                        {"EndTime", "duration_ms", UNTIL, false},
                                        {"Duration", "duration_ms", SECONDS, false},
                                        {"HostList", "places", NAMES, false},
                                        {"Requirements", "where", TEXT, false},
                                        {"Nodes", "nodes", NUMBER, false},
                                        {"ProcessorsPerNode", "cpus", NUMBER, false},
                                        {"MemoryPerNode", "memory_mib", NUMBER, false},
                                        {"UserList", "users", USERS, false},
                                        {"GroupList", "groups", TEXT, false},
                                        {"ProjectId", "account", TEXT, false},
                                        {"Description", "reason", TEXT, false},
                                        END};
static const struct member advance_named[] = {{"ReservationId", "", TEXT, true}, END};
#define MACHINE_TEXTS                                                                                        \
        {"Architecture", "arch", TEXT, false}, {"OperatingSystem", "opsys", TEXT, false}, WHY,               \
        {                                                                                                    \
                "Active", "state", SWITCH, false                                                             \
        }
static const struct member machine[] = {{"MachineName", "place", TEXT, true}, MACHINE_TEXTS, END};
static const struct member machine_named[] = {{"MachineName", "place", TEXT, true}, END};

#define FROM_TO                                                                                              \
        {"StartTime", "from_ms", MOMENT, false},                                                             \
        {                                                                                                    \
                "EndTime", "to_ms", MOMENT, false                                                            \
        }
static const struct member transaction_query[] = {{"ProjectId", "", TEXT, true}, FROM_TO, END};
static const struct member account_open[] = {ACCOUNT, WHY, END};
static const struct member account_change[] = {ACCOUNT, WHY, {"Active", "state", SWITCH, false}, END};
static const struct member account_close[] = {ACCOUNT, END};
static const struct member allocation_new[] = {ACCOUNT,
                                               AMOUNT,
                                               {"StartTime", "start_ms", MOMENT, false},
                                               {"EndTime", "end_ms", MOMENT, false},
                                               {"CreditLimit", "credit", NUMBER, false},
                                               {"MachineName", "places", TEXT, false},
                                               {"UserId", "users", USERS, false},
                                               WHY,
                                               END};
static const struct member allocation_change[] = {ACCOUNT,
                                                  {"AllocationId", "id", NUMBER, true},
                                                  {"StartTime", "start_ms", MOMENT, false},
                                                  {"EndTime", "end_ms", MOMENT, false},
                                                  {"CreditLimit", "credit", NUMBER, false},
                                                  END};
static const struct member allocation_named[] = {ACCOUNT, {"AllocationId", "id", NUMBER, true}, END};
static const struct member quote_change[] = {
        {"QuoteId", "quote", NUMBER, true}, {"EndTime", "end_ms", MOMENT, false}, WHY, END};
static const struct member quote_named[] = {{"QuoteId", "quote", NUMBER, true}, END};
static const struct member user_changed[] = {
        {"UserId", "user", USER, true}, WHY, {"Active", "state", SWITCH, false}, END};
static const struct member user_named[] = {{"UserId", "user", USER, true}, END};
static const struct member membership[] = {ACCOUNT, {"UserId", "user", MEMBER, true}, END},
                           membership_role[] = {ACCOUNT,
                                                {"UserId", "user", MEMBER, true},
                                                {"Role", "role", TEXT, true},
                                                END};
static const struct member lien_change[] = {{"ReservationId", "id", NUMBER, true},
                                            {"EndTime", "end_ms", MOMENT, false},
                                            {"Amount", "amount", NUMBER, false},
                                            END};

static const struct field submitted[] = {
        {"JobId", "id", HERE, ONE_JOB}, {"JobCount", "jobs", HERE, NUMBER}, END};
static const struct field jobs[] = {{"JobId", "id", HERE, ONE_JOB},
                                    {"State", "state", HERE, TEXT},
                                    {"UserId", "owner", HERE, PRINCIPAL},
                                    {"ProjectId", "AcctGroup", IN_AD, TEXT},
                                    {"JobName", "JobBatchName", IN_AD, TEXT},
                                    {"Executable", "Cmd", IN_AD, TEXT},
                                    {"Arguments", "Arguments", IN_AD, TEXT},
                                    {"Processors", "RequestCpus", IN_AD, NUMBER},
                                    {"Memory", "RequestMemory", IN_AD, NUMBER},
                                    {"WallDuration", "AllowedExecuteDuration", IN_AD, NUMBER},
                                    {"Priority", "JobPrio", IN_AD, NUMBER},
                                    {"MachineName", "agent", HERE, TEXT},
                                    {"QueueName", "queue", HERE, TEXT},
                                    {"SubmitTime", "submitted_ms", HERE, MOMENT},
                                    {"StartTime", "started_ms", HERE, MOMENT},
                                    {"EndTime", "ended_ms", HERE, MOMENT},
                                    {"ExitCode", "exit_code", HERE, NUMBER},
                                    {"Description", "hold_reason", HERE, TEXT},
                                    END};
static const struct field acted[] = {{"JobCount", "affected", HERE, NUMBER}, END};
static const struct field nodes[] = {{"NodeId", "name", HERE, TEXT},
                                     {"State", "state", HERE, TEXT},
                                     {"HostName", "hostname", HERE, TEXT},
                                     {"JobCount", "jobs", HERE, NUMBER},
                                     {"Processors", "cpus", HERE, NUMBER},
                                     {"Memory", "memory_mib", HERE, NUMBER},
                                     {"AvailableProcessors", "free_cpus", HERE, NUMBER},
                                     {"AvailableMemory", "free_memory_mib", HERE, NUMBER},
                                     {"Description", "reason", HERE, TEXT},
                                     END};
static const struct field accounts[] = {{"AccountId", "name", HERE, TEXT},
                                        {"ProjectId", "name", HERE, TEXT},
                                        {"Amount", "balance", HERE, NUMBER},
                                        {"Reserved", "held", HERE, NUMBER},
                                        {"Available", "available", HERE, NUMBER},
                                        {"Charged", "charged", HERE, NUMBER},
                                        {"Description", "description", HERE, TEXT},
                                        {"Active", "closed", HERE, OPEN},
                                        END};
static const struct field account_done[] = {{"ProjectId", "name", HERE, TEXT},
                                            {"AccountId", "name", HERE, TEXT},
                                            {"Active", "closed", HERE, OPEN},
                                            END};
static const struct field members[] = {{"ProjectId", "name", ABOVE, TEXT},
                                       {"UserId", "user", HERE, PRINCIPAL},
                                       {"Role", "role", HERE, TEXT},
                                       END};
static const struct field allocations[] = {
        {"AllocationId", "id", HERE, NUMBER},    {"ProjectId", "name", ABOVE, TEXT},
        {"Amount", "amount", HERE, NUMBER},      {"Reserved", "held", HERE, NUMBER},
        {"CreditLimit", "credit", HERE, NUMBER}, {"StartTime", "start_ms", HERE, MOMENT},
        {"EndTime", "end_ms", HERE, MOMENT},     {"MachineName", "places", HERE, TEXT},
        {"UserId", "users", HERE, TEXT},         END};
static const struct field transactions[] = {{"TransactionId", "id", HERE, NUMBER},
                                            {"Action", "what", HERE, TEXT},
                                            {"Amount", "amount", HERE, NUMBER},
                                            {"Balance", "balance", HERE, NUMBER},
                                            {"JobId", "", HERE, MOVED_FOR},
                                            {"UserId", "user", HERE, PRINCIPAL},
                                            {"MachineName", "place", HERE, TEXT},
                                            {"Actor", "who", HERE, PRINCIPAL},
                                            {"Time", "at_ms", HERE, MOMENT},
                                            {"Description", "why", HERE, TEXT},
                                            END};
static const struct field ordered[] = {
        {"Amount", "amount", HERE, NUMBER}, {"AllocationId", "id", HERE, NUMBER}, END};
static const struct field quoted[] = {{"QuoteId", "id", HERE, NUMBER},
                                      {"Charge", "amount", HERE, NUMBER},
                                      {"EndTime", "end_ms", HERE, MOMENT},
                                      END};
static const struct field reserved[] = {{"ReservationId", "id", HERE, NUMBER},
                                        {"Charge", "amount", HERE, NUMBER},
                                        {"EndTime", "end_ms", HERE, MOMENT},
                                        END};
static const struct field charged[] = {
        {"Charge", "amount", HERE, NUMBER}, {"ReservationId", "lien", HERE, NUMBER}, END};
static const struct field quotes[] = {{"QuoteId", "id", HERE, NUMBER},
                                      {"Charge", "amount", HERE, NUMBER},
                                      {"ProjectId", "account", HERE, TEXT},
                                      {"UserId", "user", HERE, PRINCIPAL},
                                      {"MachineName", "place", HERE, TEXT},
                                      {"WallDuration", "duration_ms", HERE, SECONDS},
                                      {"EndTime", "end_ms", HERE, MOMENT},
                                      {"Used", "used", HERE, TEXT},
                                      {"QualityOfService", "qos", HERE, TEXT},
                                      {"Description", "description", HERE, TEXT},
                                      END};
static const struct field liens[] = {{"ReservationId", "id", HERE, NUMBER},
                                     {"Charge", "amount", HERE, NUMBER},
                                     {"ProjectId", "account", HERE, TEXT},
                                     {"UserId", "user", HERE, PRINCIPAL},
                                     {"MachineName", "place", HERE, TEXT},
                                     {"JobId", "job_name", HERE, TEXT},
                                     {"StartTime", "at_ms", HERE, MOMENT},
                                     {"EndTime", "end_ms", HERE, MOMENT},
                                     END};

static const struct field advances[] = {{"ReservationId", "id", HERE, NUMBER},
                                        {"State", "state", HERE, TEXT},
                                        {"UserId", "owner", HERE, PRINCIPAL},
                                        {"StartTime", "start_ms", HERE, MOMENT},
                                        {"EndTime", "end_ms", HERE, MOMENT},
                                        {"HostList", "places", HERE, PLACES},
                                        {"Processors", "places", HERE, CPUS},
                                        {"UserList", "users", HERE, TEXT},
                                        {"GroupList", "groups", HERE, TEXT},
                                        {"ProjectId", "account", HERE, TEXT},
                                        {"JobId", "job", HERE, ONE_JOB},
                                        {"Description", "reason", HERE, TEXT},
                                        END};
static const struct field advance_ended[] = {{"ReservationId", "id", HERE, NUMBER}, END};
static const struct field machine_done[] = {{"MachineName", "place", HERE, TEXT}, END};
static const struct field user_done[] = {{"UserId", "user", HERE, PRINCIPAL}, END};
static const struct field users[] = {{"UserId", "name", HERE, PRINCIPAL},
                                     {"Active", "active", HERE, TEXT},
                                     {"Description", "description", HERE, TEXT},
                                     END};
static const struct field quote_done[] = {
        {"QuoteId", "id", HERE, NUMBER}, {"EndTime", "end_ms", HERE, MOMENT}, END};
static const struct field machines[] = {
        {"MachineName", "name", HERE, TEXT},        {"Active", "active", HERE, TEXT},
        {"Architecture", "arch", HERE, TEXT},       {"OperatingSystem", "opsys", HERE, TEXT},
        {"Description", "description", HERE, TEXT}, END};

#define ORDERS       HTTP_POST, "/v1/bank/orders"
#define ACTION       HTTP_POST, "/v1/actions"
#define SUBMIT(more) HTTP_POST, "/v1/requests", "{\"parts\":[{\"values\":{\"JobUniverse\":5" more, "}}]}"
#define ADVANCE      "AdvanceReservation"
#define OP(op)       "{\"op\":\"" op "\"", "}"
#define ACT(a)       "{\"action\":\"" a "\"", "}"
/* Of rows with the same action and object the first counts whose required parameters are there. */
static const struct mapping mappings[] = {
        {"Query", "Job", HTTP_GET, "/v1/jobs/{id}", NULL, NULL, one_job, "JobId", "Job", NULL, jobs},
        {"Query", "Job", HTTP_GET, "/v1/jobs", NULL, NULL, job_query, NULL, "Job", "jobs", jobs},
        {"Submit", "Job", SUBMIT(",\"ShouldTransferFiles\":\"IN_PLACE\""), job_submit_in, NULL, "Job", NULL,
         submitted},
        {"Submit", "Job", SUBMIT(""), job_submit, NULL, "Job", NULL, submitted},
        {"Cancel", "Job", ACTION, ACT("remove"), job_named, NULL, "Job", NULL, acted},
        {"Hold", "Job", ACTION, ACT("hold"), job_named, NULL, "Job", NULL, acted},
        {"Release", "Job", ACTION, ACT("release"), job_named, NULL, "Job", NULL, acted},
        {"Modify", "Job", ACTION, ACT("priority"), job_priority, NULL, "Job", NULL, acted},
        {"Modify", "Job", ACTION, "{\"action\":\"edit\"", "}}", job_edit, NULL, "Job", NULL, acted},
        {"Query", "Node", HTTP_GET, "/v1/nodes", NULL, NULL, none, NULL, "Node", "nodes", nodes},
        {"Query", "Account", HTTP_GET, "/v1/bank/accounts/{name}", NULL, NULL, account_named, "ProjectId",
         "Account", NULL, accounts},
        {"Query", "Account", HTTP_GET, "/v1/bank", NULL, NULL, none, NULL, "Account", "accounts", accounts},
        {"Balance", "Account", HTTP_GET, "/v1/bank/accounts/{name}", NULL, NULL, account_named, "ProjectId",
         "Account", NULL, accounts},
        {"Deposit", "Account", ORDERS, OP("deposit"), deposit, NULL, "Account", NULL, ordered},
        {"Withdraw", "Account", ORDERS, OP("withdraw"), withdraw, NULL, "Account", NULL, ordered},
        {"Transfer", "Account", ORDERS, OP("transfer"), transfer, NULL, "Account", NULL, ordered},
#define CHANGES(object)                                                                                      \
        {"Create", object,       ORDERS,   "{\"op\":\"open\",\"new\":true", "}", account_open, NULL, object, \
         NULL,     account_done, "account"},                                                                 \
                {"Modify", object, ORDERS, OP("account"), account_change,                                    \
                 NULL,     object, NULL,   account_done,  "account"},                                        \
        {                                                                                                    \
                "Delete", object, ORDERS, OP("close"), account_close, NULL, object, NULL, account_done,      \
                        "account"                                                                            \
        }
        CHANGES("Account"),
        CHANGES("Project"),
        {"Query", "Project", HTTP_GET, "/v1/bank/accounts/{name}", NULL, NULL, account_named, "ProjectId",
         "Project", NULL, accounts},
        {"Query", "Project", HTTP_GET, "/v1/bank", NULL, NULL, none, NULL, "Project", "accounts", accounts},
        {"Create", "ProjectUser", ORDERS, OP("member"), membership_role, NULL, "ProjectUser", NULL,
         account_done, "account"},
        {"Create", "ProjectUser", ORDERS, "{\"op\":\"member\",\"role\":\"user\"", "}", membership, NULL,
         "ProjectUser", NULL, account_done, "account"},
        {"Delete", "ProjectUser", ORDERS, "{\"op\":\"member\",\"role\":\"none\"", "}", membership, NULL,
         "ProjectUser", NULL, account_done, "account"},
        {"Query", "ProjectUser", HTTP_GET, "/v1/bank/accounts/{name}", NULL, NULL, account_named, "ProjectId",
         "ProjectUser", NULL, members, NULL, "members"},
        {"Query", "ProjectUser", HTTP_GET, "/v1/bank", NULL, NULL, none, NULL, "ProjectUser", "accounts",
         members, NULL, "members"},
        {"Query", "Allocation", HTTP_GET, "/v1/bank/accounts/{name}", NULL, NULL, account_named, "ProjectId",
         "Allocation", NULL, allocations, NULL, "allocations"},
        {"Query", "Allocation", HTTP_GET, "/v1/bank", NULL, NULL, none, NULL, "Allocation", "accounts",
         allocations, NULL, "allocations"},
        {"Create", "Allocation", ORDERS, OP("deposit"), allocation_new, NULL, "Allocation", NULL, ordered},
        {"Modify", "Allocation", ORDERS, OP("set"), allocation_change, NULL, "Allocation", NULL, ordered},
        {"Delete", "Allocation", ORDERS, "{\"op\":\"set\",\"state\":\"inactive\"", "}", allocation_named,
         NULL, "Allocation", NULL, ordered},
        {"Query", "Transaction", HTTP_GET, "/v1/bank/accounts/{name}/statement", NULL, NULL,
         transaction_query, "ProjectId", "Transaction", "movements", transactions},
        {"Quote", "Job", ORDERS, OP("quote"), quote, NULL, "Job", NULL, quoted},
        {"Reserve", "Job", ORDERS, OP("lien"), reserve, NULL, "Job", NULL, reserved},
        {"Charge", "Job", ORDERS, OP("charge"), charge, NULL, "Job", NULL, charged},
        {"Refund", "Job", ORDERS, OP("refund"), refund, NULL, "Job", NULL, charged},
        {"Query", "Quote", HTTP_GET, "/v1/bank/reserved", NULL, NULL, none, NULL, "Quote", "quotes", quotes},
        {"Modify", "Quote", ORDERS, OP("requote"), quote_change, NULL, "Quote", NULL, quote_done},
        {"Delete", "Quote", ORDERS, OP("cancel"), quote_named, NULL, "Quote", NULL, quote_done},
        {"Query", "Reservation", HTTP_GET, "/v1/bank/reserved", NULL, NULL, none, NULL, "Reservation",
         "liens", liens},
        {"Modify", "Reservation", ORDERS, OP("extend"), lien_change, NULL, "Reservation", NULL, reserved},
        {"Delete", "Reservation", ORDERS, OP("release"), release, NULL, "Reservation", NULL, ordered},
        {"Create", ADVANCE, HTTP_POST, "/v1/reservations", "{\"evict\":false", "}", advance, NULL, ADVANCE,
         NULL, advances, "reservation"},
        {"Query", ADVANCE, HTTP_GET, "/v1/reservations/{id}", NULL, NULL, advance_named, "ReservationId",
         ADVANCE, NULL, advances},
        {"Query", ADVANCE, HTTP_GET, "/v1/reservations", NULL, NULL, none, NULL, ADVANCE, "reservations",
         advances},
        {"Delete", ADVANCE, HTTP_DELETE, "/v1/reservations/{id}", NULL, NULL, advance_named, "ReservationId",
         ADVANCE, NULL, advance_ended},
        {"Create", "User", ORDERS, OP("register"), user_changed, NULL, "User", NULL, user_done},
        {"Query", "User", HTTP_GET, "/v1/bank/users", NULL, NULL, none, NULL, "User", "users", users},
        {"Modify", "User", ORDERS, OP("user"), user_changed, NULL, "User", NULL, user_done},
        {"Delete", "User", ORDERS, OP("unregister"), user_named, NULL, "User", NULL, user_done},
        {"Create", "Machine", ORDERS, OP("register"), machine, NULL, "Machine", NULL, machine_done},
        {"Query", "Machine", HTTP_GET, "/v1/bank/machines", NULL, NULL, none, NULL, "Machine", "machines",
         machines},
        {"Modify", "Machine", ORDERS, OP("machine"), machine, NULL, "Machine", NULL, machine_done},
        {"Delete", "Machine", ORDERS, OP("unregister"), machine_named, NULL, "Machine", NULL, machine_done},
};

/* Attributes of jobs that a query shows. */
#define JOB_ATTRIBUTES                                                                                       \
        STR("AcctGroup,JobBatchName,Cmd,Arguments,RequestCpus,RequestMemory,AllowedExecuteDuration,JobPrio")

static bool is_of(const struct mapping *m, const struct sssrmap_message *x)
{
        return strcmp(m->action, x->action) == 0 && strcmp(m->object, x->object) == 0;
}

static bool has_required(const struct mapping *m, const struct sssrmap_message *x)
{
        struct str value;

        for (const struct member *e = m->members; e->parameter; e++)
                if (e->required && (sssrmap_parameter(x, e->parameter, &value, NULL) != 0 || value.n == 0 ||
                                    (e->kind == ONE_JOB && str_find(value, '.') < 0)))
                        return false;
        return true;
}

/* Finds the row of a request. Returns 0, or an enum sssrmap_code with err. */
static int find_mapping(const struct sssrmap_message *x, const struct mapping **ret, struct err *err)
{
        const struct mapping *similar = NULL;
        bool action = false;

        for (size_t i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++) {
                action |= strcmp(mappings[i].action, x->action) == 0;
                if (!is_of(&mappings[i], x))
                        continue;
                similar = similar ? similar : &mappings[i];
                if (!has_required(&mappings[i], x))
                        continue;
                *ret = &mappings[i];
                return 0;
        }
        if (!action)
                return err_set(err, SSSRMAP_ACTION, "there is no action %.64s", x->action);
        if (!similar)
                return err_set(err, SSSRMAP_UNSUPPORTED, "%.64s is no action of %.64s", x->action, x->object);
        for (const struct member *e = similar->members; e->parameter; e++) {
                struct str value;
                int r = sssrmap_parameter(x, e->parameter, &value, err);

                if (r != 0)
                        return r;
                if (e->required && value.n == 0)
                        return err_set(err, SSSRMAP_MISSING, "%s of %s needs %s", x->action, x->object,
                                       e->parameter);
        }
        return SSSRMAP_FAILED;
}

/* ---- a request as a call */

/* Gives the principal of an actor or a user. */
static bool principal_of(const struct server *s, struct str name, struct buf *ret)
{
        struct str user, domain;

        if (str_find(name, '@') < 0)
                return principal_print(ret, name, str_of(s->config.domain)) == 0;
        if (principal_split(name, &user, &domain) != 0)
                return false;
        buf_str(ret, name);
        return true;
}

/* Gives the principals of a list of names; * and *@domain stay as they are. */
static bool principals_of(const struct server *s, struct str names, struct buf *ret)
{
        struct str rest = names, one;

        while (rest.n && str_cut(&rest, ',', &one)) {
                buf_addz(ret, ret->n ? "," : "");
                one = str_trim(one);
                if (str_starts(one, STR("*")))
                        buf_str(ret, one);
                else if (!principal_of(s, one, ret))
                        return false;
        }
        return true;
}

static void write_names(struct json *j, struct str names)
{
        struct str rest = names, one;

        json_open(j, '[');
        while (rest.n && str_cut(&rest, ',', &one))
                json_str(j, str_trim(one));
        json_close(j, ']');
}

static bool is_yes(struct str value)
{
        return str_ieq(value, STR("True"));
}

static bool is_switch(struct str value)
{
        return str_ieq(value, STR("True")) || str_ieq(value, STR("False"));
}

static bool is_time(enum kind kind)
{
        return kind == SECONDS || kind == MOMENT || kind == UNTIL;
}

/* Returns the words for what a value of this kind must be. */
static const char *kind_words(enum kind kind)
{
        switch (kind) {
        case USER: return "a user";
        case MEMBER: return "one user, or one pattern of users";
        case USERS: return "a list of users";
        case NUMBER: return "a whole number";
        case COUNT: return "a whole number from 1 on";
        case SWITCH: return "True or False";
        default: return "a number of seconds";
        }
}

/* Computes how long it is from StartTime, or from now, until `end_s`. */
static int write_until(struct json *j, const struct sssrmap_message *m, int64_t end_s, struct err *err)
{
        struct str text, duration;
        int64_t start_ms = clock_wall_ms(), start_s;

        if (sssrmap_parameter(m, "StartTime", &text, err) != 0 ||
            sssrmap_parameter(m, "Duration", &duration, err) != 0)
                return SSSRMAP_VALUE;
        if (duration.n)
                return err_set(err, SSSRMAP_VALUE, "EndTime and Duration exclude each other");
        if (text.n && str_to_i64(text, &start_s) == 0 && start_s >= 0 && start_s <= TIME_MAX)
                start_ms = start_s * 1000;
        if (end_s * 1000 <= start_ms)
                return err_set(err, SSSRMAP_VALUE, "EndTime is not after StartTime, or not after now");
        json_int(j, end_s * 1000 - start_ms);
        return 0;
}

static int write_value(struct server *s, struct json *j, const struct sssrmap_message *m,
                       const struct member *e, struct str value, struct err *err)
{
        BUF_CLEANUP struct buf user = {0};
        int64_t n = 0;

        if ((e->kind == NUMBER && str_to_i64(value, &n) != 0) ||
            (is_time(e->kind) && (str_to_i64(value, &n) != 0 || n < 0 || n > TIME_MAX)) ||
            (e->kind == USER && !principal_of(s, value, &user)) ||
            (e->kind == USERS && !principals_of(s, value, &user)) ||
            (e->kind == MEMBER && (str_find(value, ',') >= 0 || !principals_of(s, value, &user))) ||
            (e->kind == SWITCH && !is_switch(value)) ||
            (e->kind == COUNT && (str_to_i64(value, &n) != 0 || n < 1)))
                return err_set(err, SSSRMAP_VALUE, "%s: \"" STR_FMT "\" is not %s", e->parameter,
                               STR_ARG(str_head(value, 64)), kind_words(e->kind));
        json_key(j, e->key);
        switch (e->kind) {
        case TEXT:
        case PLACES:
        case CPUS:
        case PRINCIPAL:
        case OPEN:
        case MOVED_FOR:
        case ONE_JOB: json_str(j, value); break;
        case USER:
        case MEMBER:
        case USERS: json_str(j, buf_view(&user)); break;
        case NUMBER: json_int(j, n); break;
        case SECONDS:
        case MOMENT: json_int(j, n * 1000); break;
        case UNTIL: return write_until(j, m, n, err);
        case NAMES: write_names(j, value); break;
        case SWITCH: json_strz(j, is_yes(value) ? "active" : "inactive"); break;
        case COUNT: json_str(j, value); break;
        case LIST:
        case EDITED:
                json_open(j, '[');
                json_str(j, value);
                json_close(j, ']');
                if (e->kind == EDITED) {
                        json_key(j, "attributes");
                        json_open(j, '{'); /* closed by the text behind the members */
                }
                break;
        }
        return 0;
}

static int write_body(struct server *s, struct translation *t)
{
        struct json j = {.out = &t->body, .comma = true};
        int r = 0;

        buf_addz(&t->body, t->mapping->before);
        for (const struct member *e = t->mapping->members; e->parameter && r == 0; e++) {
                struct str value;

                r = sssrmap_parameter(&t->message, e->parameter, &value, &t->err);
                if (r == 0 && value.n)
                        r = write_value(s, &j, &t->message, e, value, &t->err);
        }
        buf_addz(&t->body, t->mapping->after);
        t->front.body = buf_view(&t->body);
        return r;
}

/* Returns the text of a parameter of a query; empty: it is wrong. A time in milliseconds is put into the
 * call's arena. */
static struct str query_value(struct call *c, const struct member *e, struct str value, struct err *err)
{
        int64_t n;
        char *text;

        if (e->kind != MOMENT)
                return value;
        if (str_to_i64(value, &n) != 0 || n < 0 || n > TIME_MAX) {
                err_set(err, SSSRMAP_VALUE, "%s: \"" STR_FMT "\" is not %s", e->parameter,
                        STR_ARG(str_head(value, 64)), kind_words(e->kind));
                return STR_NONE;
        }
        text = arena_alloc(&c->arena, 24);
        snprintf(text, 24, "%" PRId64, n * 1000);
        return str_of(text);
}

static int write_query(struct translation *t, struct call *c)
{
        unsigned n = 0;

        for (const struct member *e = t->mapping->members; e->parameter; e++) {
                struct str value;
                int r = sssrmap_parameter(&t->message, e->parameter, &value, &t->err);

                if (r != 0)
                        return r;
                if (value.n == 0)
                        continue;
                value = query_value(c, e, value, &t->err);
                if (value.n == 0)
                        return SSSRMAP_VALUE;
                if (!*e->key)
                        c->param[0] = value;
                else {
                        t->front.query[n].name = e->key;
                        t->front.query[n++].value = value;
                }
        }
        if (t->mapping->fields == jobs && t->mapping->array) {
                t->front.query[n].name = "attributes";
                t->front.query[n++].value = JOB_ATTRIBUTES;
                t->front.query[n].name = "state";
                t->front.query[n].value = STR("idle,running,held,completed,removed");
        } else if (t->mapping->fields == transactions) {
                t->front.query[n].name = "limit";
                t->front.query[n].value = STR("10000");
        }
        return 0;
}

/* Returns how the texts of a field of this kind are compared. */
static enum sssrmap_kind compared_as(enum kind kind)
{
        switch (kind) {
        case NUMBER:
        case SECONDS:
        case MOMENT:
        case CPUS: return SSSRMAP_NUMBER;
        case ONE_JOB:
        case MOVED_FOR: return SSSRMAP_JOB_ID;
        case PRINCIPAL: return SSSRMAP_USER;
        default: return SSSRMAP_TEXT;
        }
}

/* Checks the names of the parameters, and reads what is wanted of the answer. */
static int read_parameters(struct translation *t)
{
        const char *names[24];
        size_t n = 0;
        int r;

        for (const struct member *e = t->mapping->members; e->parameter; e++)
                names[n++] = e->parameter;
        names[n] = NULL;
        r = sssrmap_only(&t->message, names, &t->err);
        t->fields = (struct sssrmap_fields){0};
        n = 0;
        for (const struct field *f = t->mapping->fields; f->name; f++) {
                t->fields.kinds[n] = compared_as(f->kind);
                t->fields.names[n++] = f->name;
        }
        return r != 0 ? r : sssrmap_selection_new(&t->message, names, &t->fields, &t->selection, &t->err);
}

static int translate(struct server *s, struct call *c, struct translation *t)
{
        struct str param[2];
        bool known;
        int r = find_mapping(&t->message, &t->mapping, &t->err);

        if (r == 0)
                r = read_parameters(t);
        if (r != 0)
                return r;
        c->route = routes_find(t->mapping->method, str_of(t->mapping->path), param, &known);
        return t->mapping->before ? write_body(s, t) : write_query(t, c);
}

/* ---- responses */

static int code_of(const struct call *c)
{
        switch (c->status) {
        case 401: return SSSRMAP_SIGNATURE;
        case 403: return SSSRMAP_FORBIDDEN;
        case 404: return SSSRMAP_UNKNOWN;
        case 409:
                return c->code && strcmp(c->code, "insufficient_funds") == 0 ? SSSRMAP_FUNDS
                                                                             : SSSRMAP_CONFLICT;
        case 429: return SSSRMAP_CONFLICT;
        default: return c->status >= 500 ? SSSRMAP_FAILED : SSSRMAP_VALUE;
        }
}

static void add_text(struct buf *out, const char *name, struct str text)
{
        buf_printf(out, "<%s>", name);
        xml_escape(out, text);
        buf_printf(out, "</%s>", name);
}

static void add_status(struct buf *out, int code, const char *message)
{
        char text[8];

        snprintf(text, sizeof(text), "%03d", code);
        buf_addz(out, "<Status>");
        add_text(out, "Value", code ? STR("Failure") : STR("Success"));
        add_text(out, "Code", str_of(text));
        if (message)
                add_text(out, "Message", str_of(message));
        buf_addz(out, "</Status>");
}

static void print_places(struct buf *out, const json_t *places)
{
        const json_t *one;
        size_t i;

        json_array_foreach (places, i, one)
                buf_printf(out, "%s%s/%s", i ? "," : "", json_string_value(json_object_get(one, "agent")),
                           json_string_value(json_object_get(one, "queue")));
}

static void print_cpus(struct buf *out, const json_t *places)
{
        const json_t *one;
        int64_t sum = 0;
        size_t i;

        json_array_foreach (places, i, one)
                sum += (int64_t)json_integer_value(json_object_get(one, "cpus"));
        buf_printf(out, "%" PRId64, sum);
}

/* Returns false if the movement is no job's. */
static bool print_job(struct buf *out, const json_t *movement)
{
        const json_t *name = json_object_get(movement, "job_name"),
                     *request = json_object_get(movement, "request");

        if (name)
                buf_addz(out, json_string_value(name));
        else if (request)
                buf_printf(out, "%" JSON_INTEGER_FORMAT ".%" JSON_INTEGER_FORMAT, json_integer_value(request),
                           json_integer_value(json_object_get(movement, "job")));
        return name || request;
}

/* Appends the text of a field. Returns false if the element does not have it. */
static bool print_field(struct buf *out, const struct field *f, const json_t *element, const json_t *above)
{
        const json_t *from = f->where == ABOVE   ? above
                             : f->where == IN_AD ? json_object_get(element, "ad")
                                                 : element,
                     *v = json_object_get(from, f->key);

        if (f->kind == MOVED_FOR)
                return print_job(out, element);
        if (!v || json_is_null(v) || json_is_object(v))
                return false;
        if (f->kind == PLACES)
                print_places(out, v);
        else if (f->kind == CPUS)
                print_cpus(out, v);
        else if (json_is_string(v))
                buf_addz(out, json_string_value(v));
        else if (json_is_boolean(v))
                buf_addz(out, json_is_true(v) == (f->kind != OPEN) ? "True" : "False");
        else if (json_is_integer(v) && (f->kind == SECONDS || f->kind == MOMENT))
                buf_printf(out, "%" PRId64, (int64_t)json_integer_value(v) / 1000);
        else if (json_is_integer(v))
                buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        else if (json_is_real(v))
                buf_printf(out, "%.15g", json_real_value(v));
        else
                return false;
        return true;
}

static void add_element(struct translation *t, struct buf *out, const json_t *element, const json_t *above)
{
        const struct field *fields = t->mapping->fields;
        struct str values[SSSRMAP_FIELDS_MAX] = {STR_NONE};
        size_t begins[SSSRMAP_FIELDS_MAX + 1] = {0};
        bool there[SSSRMAP_FIELDS_MAX];
        unsigned n = 0;

        buf_reset(&t->row);
        for (; fields[n].name; n++) {
                there[n] = print_field(&t->row, &fields[n], element, above);
                begins[n + 1] = t->row.n;
        }
        buf_char(&t->row, 0); /* so that an empty text is somewhere, too */
        for (unsigned i = 0; i < n; i++)
                if (there[i])
                        values[i] = str_make(t->row.p + begins[i], begins[i + 1] - begins[i]);
        sssrmap_selection_add(t->selection, values, t->mapping->element, out);
}

static void add_elements(struct translation *t, struct buf *out, const json_t *element)
{
        const char *parts = t->mapping->parts;
        const json_t *part;
        size_t i;

        if (!parts)
                add_element(t, out, element, element);
        else
                json_array_foreach (json_object_get(element, parts), i, part)
                        add_element(t, out, part, element);
}

/* The actions on jobs reach some and miss others: the first that was missed is told. */
static const char *missed(const json_t *reply)
{
        const json_t *first = json_array_get(json_object_get(reply, "errors"), 0);

        return json_string_value(json_object_get(first, "message"));
}

/* Returns 0, or an enum sssrmap_code with t->err if the elements cannot be shown. */
static int write_data(struct translation *t, struct buf *out, const json_t *reply, size_t *ret_count)
{
        const struct mapping *m = t->mapping;
        const json_t *list = m->array ? json_object_get(reply, m->array) : NULL, *next, *one;
        size_t i;

        next = list ? json_object_get(reply, "next") : NULL;
        if (next && !json_is_null(next))
                return err_set(&t->err, SSSRMAP_FAILED,
                               "there are more elements than one answer has: ask for a shorter time");
        if (!m->array)
                add_elements(t, out, m->within ? json_object_get(reply, m->within) : reply);
        json_array_foreach (list, i, one)
                add_elements(t, out, one);
        return sssrmap_selection_end(t->selection, m->element, out, ret_count, &t->err);
}

static void add_reply(struct translation *t, struct buf *out, const json_t *reply)
{
        BUF_CLEANUP struct buf data = {.max = out->max};
        const char *problem = missed(reply);
        size_t count = 0;
        int r = write_data(t, &data, reply, &count);

        if (r != 0) {
                add_status(out, r, t->err.text);
                return;
        }
        add_status(out, problem ? SSSRMAP_UNKNOWN : SSSRMAP_SUCCESS, problem);
        buf_printf(out, "<Count>%zu</Count><Data>", count);
        buf_str(out, buf_view(&data));
        buf_addz(out, "</Data>");
        out->overflow |= data.overflow;
}

static void dispatch(struct server *s, struct call *c);

/* Begins the response to the present request; close_response ends it. */
static void open_response(struct translation *t)
{
        t->begun = t->responses.n;
        buf_addz(&t->responses, "<Response");
        if (t->message.id) {
                buf_addz(&t->responses, " id=\"");
                xml_escape(&t->responses, str_of(t->message.id));
                buf_char(&t->responses, '"');
        }
        buf_char(&t->responses, '>');
}

static void close_response(struct translation *t)
{
        buf_addz(&t->responses, "</Response>");
}

static void send_response(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

/* Reader thread, since the responses may be large: puts them, signed, into c->out. */
static void sign_responses(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);

        (void)s;
        buf_reset(&c->out);
        sssrmap_write(&c->out, buf_view(&t->responses), t->key ? str_of(t->key->key) : STR_NONE,
                      t->key ? t->key->name : NULL, t->message.signature.size);
        c->status = 200;
        c->content_type = CONTENT_TYPE;
        call_io(c, send_response);
}

/* Makes the call as it was before its first route. */
static void call_again(struct call *c, struct translation *t)
{
        buf_reset(&c->out);
        buf_reset(&t->body);
        c->status = 200;
        c->code = NULL;
        c->err = (struct err){""};
        c->content_type = NULL;
        c->chunked = false;
        c->when = TURN_READ;
        c->param[0] = c->param[1] = STR_NONE;
        memset(t->front.query, 0, sizeof(t->front.query));
        t->front.body = STR_NONE;
        t->front.replied = false;
        sssrmap_selection_free(t->selection);
        t->selection = NULL;
        t->code = 0;
        t->err = (struct err){""};
}

/* I/O thread: a response is there. */
static void go_on(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);

        if (!t->admitted || !sssrmap_next(&t->message)) {
                call_reader(c, sign_responses);
                return;
        }
        call_again(c, t);
        dispatch(s, c);
}

/* I/O thread: responses that are larger than the replies of which they are made count for the caller, too. */
static void response_made(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);
        size_t more = t->responses.n > t->front.counted ? t->responses.n - t->front.counted : 0;

        if (http_body_grow(c->http, more)) {
                t->front.counted += more;
        } else {
                struct buf before = {0};

                buf_str(&before, str_head(buf_view(&t->responses), t->begun));
                buf_deinit(&t->responses);
                t->responses = before;
                open_response(t);
                add_status(&t->responses, SSSRMAP_FAILED,
                           "too many large messages of yours are on their way: ask again later");
                close_response(t);
        }
        go_on(s, c);
}

/* Reader thread, since a reply may be large: as XML some letters take five times as much. */
static void is_made_xml(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);
        json_t *reply = json_loadb(c->out.p ? c->out.p : "", c->out.n, 0, NULL);
        BUF_CLEANUP struct buf text = {.max = CALL_FRONT_REPLY_MAX};

        (void)s;
        add_reply(t, &text, reply);
        json_decref(reply);
        buf_deinit(&c->out); /* the response may wait for others of the message, and for its signature */
        open_response(t);
        if (text.overflow)
                add_status(&t->responses, SSSRMAP_FAILED, "the response is too large: ask for less");
        else
                buf_str(&t->responses, buf_view(&text));
        close_response(t);
        call_io(c, response_made);
}

/* I/O thread: the route has replied, or the call has failed before. */
static void route_replied(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);

        call_state_drop(c);
        if (t->code == 0 && c->status < 300) {
                call_reader(c, is_made_xml);
                return;
        }
        buf_deinit(&c->out); /* what was made of a reply that became too large */
        open_response(t);
        add_status(&t->responses, t->code ? t->code : code_of(c), t->code ? t->err.text : c->err.text);
        close_response(t);
        go_on(s, c);
}

/* ---- who asks */

static void fail(struct call *c, int code)
{
        translation_of(c)->code = code > 0 ? code : SSSRMAP_FAILED;
        call_io(c, send_response);
}

/* Makes the actor of the request the caller. A token speaks for its user only. */
static int take_actor(struct server *s, struct call *c, struct translation *t)
{
        BUF_CLEANUP struct buf actor = {0};
        enum role today;

        if (t->message.signature.cleartext.n)
                return call_owner_is(str_of(c->who), str_of(t->message.actor))
                               ? 0
                               : err_set(&t->err, SSSRMAP_FORBIDDEN, "the token is not the actor's");
        if (!principal_of(s, str_of(t->message.actor), &actor))
                return err_set(&t->err, SSSRMAP_VALUE,
                               "the actor is not a user: it must be NAME or NAME@DOMAIN");
        if (!owners_allow(&t->key->actors, buf_view(&actor)))
                return err_set(&t->err, SSSRMAP_FORBIDDEN, "the key does not speak for %s", buf_z(&actor));
        free(c->who);
        c->who = buf_take(&actor);
        today = access_role(s, c->who);
        c->role = t->key->role < today ? t->key->role : today;
        return 0;
}

/* I/O thread: whoever has sent the message may speak for somebody. */
static void dispatch(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);
        int code = t->responses.n > CALL_FRONT_REPLY_MAX
                           ? err_set(&t->err, SSSRMAP_FAILED,
                                     "the responses are larger than %u MiB: send fewer requests at once",
                                     CALL_FRONT_REPLY_MAX >> 20)
                           : sssrmap_request(&t->message, &t->err);

        t->admitted = true;
        if (code == 0)
                code = take_actor(s, c, t);
        if (code == 0) {
                http_trust(c->http);
                if (!http_body_hold(c->http, str_of(c->who)))
                        code = err_set(&t->err, SSSRMAP_FAILED,
                                       "too many large messages of yours are on their way");
        }
        if (code == 0)
                code = translate(s, c, t);
        if (code != 0)
                fail(c, code);
        else
                c->route->start(s, c);
}

/* I/O thread: the token was looked up. */
static void token_known(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);

        if (c->who)
                dispatch(s, c);
        else
                fail(c, err_set(&t->err, SSSRMAP_SIGNATURE, "this token is not valid: ask for a new one"));
}

static void look_up_token(struct server *s, struct call *c)
{
        (void)s;
        access_bearer(c, translation_of(c)->message.signature.cleartext, token_known);
}

/* Finds the key and checks the signature. A key that is not known fails as a wrong signature does. */
static int identify(struct server *s, struct translation *t)
{
        const struct sssrmap_signature *sign = &t->message.signature;
        const struct config_sssrmap_key *key = config_sssrmap_key(&s->config.sssrmap, sign->token_name);

        if (!sign->given || !sign->keyed)
                return err_set(&t->err, SSSRMAP_SIGNATURE, "the message is not signed");
        if (!key || !sssrmap_is_signed(&t->message, str_of(key->key)))
                return err_set(&t->err, SSSRMAP_SIGNATURE,
                               "the signature is wrong, or of a key that is not known");
        if (sign->size < 32 && !key->sha1)
                return err_set(&t->err, SSSRMAP_SIGNATURE,
                               "messages with this key must be signed with SHA-256");
        t->key = key;
        return 0;
}

/* Reader thread. */
static void read_message(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);
        int code = sssrmap_read(buf_view(&t->text), s->sssrmap, &t->message, &t->err);

        if (code == 0 && !t->message.request)
                code = err_set(&t->err, SSSRMAP_MALFORMED, "the body holds no request");
        if (code == 0 && t->message.signature.cleartext.n) {
                call_io(c, look_up_token);
                return;
        }
        if (code == 0)
                code = identify(s, t);
        if (code != 0)
                fail(c, code);
        else
                call_io(c, dispatch);
}

static void sssrmap_body_read(void *arg, struct http_request *r)
{
        struct call *c = arg;
        struct translation *t = translation_of(c);

        c->waits = false;
        buf_str(&t->text, http_body(r));
        call_reader(c, read_message);
}

void api_sssrmap(struct server *s, struct call *c)
{
        struct str type = http_header(c->http, "Content-Type");
        struct translation *t;

        if (!s->sssrmap) {
                call_fail(c, 404, "not_found", "SSSRMAP is not enabled: see sssrmap in droverd(8)");
                return;
        }
        if (!str_istarts(type, STR("text/xml")) && !str_istarts(type, STR("application/xml"))) {
                call_fail(c, 415, "bad_type", "a message is text/xml");
                return;
        }
        t = mem_new(struct translation);
        t->front = (struct call_front){.reply = route_replied, .free = translation_free};
        c->front = &t->front;
        c->waits = true;
        http_reply_as_asked(c->http);
        http_limit_body(c->http, SSSRMAP_MESSAGE_MAX);
        http_read_body(c->http, STR("sssrmap"), sssrmap_body_read, c);
}
