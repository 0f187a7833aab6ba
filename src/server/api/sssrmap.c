/* POST /SSSRMAP3: requests of SSSRMAP, each of which is translated to one call of the API.
 *
 * api_sssrmap (I/O thread) has the body read, up to SSSRMAP_MESSAGE_MAX bytes, since it shows who the caller
 * is. read_message (reader) reads it and checks its signature. dispatch (I/O thread) finds the row of
 * `mappings` for action and object, makes the call's query or document of the row's members, and starts the
 * route that the row names, with the actor as the caller. The route's reply comes to route_replied (I/O
 * thread), is_made_xml (reader) makes a response of it, and the call ends. Nothing here decides anything that
 * a route decides. A failure is a response, too; only what is no message has a status of HTTP. */
#include <inttypes.h>
#include <stdio.h>

#include "base/heap.h"
#include "server/access/access.h"
#include "server/api/routes.h"
#include "server/sssrmap/message.h"
#include "server/sssrmap/schema.h"

#define CONTENT_TYPE "text/xml; charset=\"utf-8\""
#define TIME_MAX     4000000000ll /* seconds */

enum kind {
        TEXT,
        NUMBER,
        SECONDS, /* a duration in seconds, as milliseconds */
        MOMENT,  /* seconds since 1970, as milliseconds */
        USER,    /* a principal; a name without a domain gets the server's */
        LIST,    /* a list with this text */
        ONE_JOB, /* the id of one job, 7.0 */
};
/* A parameter of a request, and the member of the document or of the query that it becomes. */
struct member {
        const char *parameter, *key;
        enum kind kind;
        bool required;
};
/* A member of an element of the reply, and the field that it becomes. */
struct field {
        const char *name, *key;
        bool in_ad;
        enum kind kind; /* TEXT as it is, SECONDS and MOMENT from milliseconds */
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
};

struct translation {
        struct call_front front;
        struct call *call;
        struct sssrmap_message message;
        struct buf text, body, reply;
        const struct config_sssrmap_key *key; /* that signs the response; NULL: none */
        const struct mapping *mapping;
        int code; /* enum sssrmap_code of a failure before the route was started */
        struct err err;
};

static void translation_free(struct call_front *f)
{
        struct translation *t = container_of(f, struct translation, front);

        sssrmap_deinit(&t->message);
        buf_deinit(&t->text);
        buf_deinit(&t->body);
        buf_deinit(&t->reply);
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
                {"Processors", "cpus", NUMBER, false}, {"Memory", "memory_mib", NUMBER, false},              \
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
static const struct member quote[] = {ACCOUNT, USED, {"EndTime", "end_ms", MOMENT, false}, END};
static const struct member reserve[] = {
        {"JobId", "job", TEXT, true},         ACCOUNT, USED, {"QuoteId", "quote", NUMBER, false},
        {"EndTime", "end_ms", MOMENT, false}, END};
static const struct member charge[] = {
        {"JobId", "job", TEXT, true},           {"ProjectId", "account", TEXT, false}, USED,
        {"ReservationId", "id", NUMBER, false}, {"Charge", "amount", NUMBER, false},   END};
static const struct member refund[] = {
        {"JobId", "job", TEXT, true}, ACCOUNT, AMOUNT, {"AllocationId", "id", NUMBER, false}, END};
static const struct member release[] = {{"ReservationId", "id", NUMBER, true}, END};

static const struct field submitted[] = {
        {"JobId", "id", false, TEXT}, {"JobCount", "jobs", false, TEXT}, END};
static const struct field jobs[] = {{"JobId", "id", false, TEXT},
                                    {"State", "state", false, TEXT},
                                    {"UserId", "owner", false, TEXT},
                                    {"ProjectId", "AcctGroup", true, TEXT},
                                    {"JobName", "JobBatchName", true, TEXT},
                                    {"Executable", "Cmd", true, TEXT},
                                    {"Arguments", "Arguments", true, TEXT},
                                    {"Processors", "RequestCpus", true, TEXT},
                                    {"Memory", "RequestMemory", true, TEXT},
                                    {"WallDuration", "AllowedExecuteDuration", true, TEXT},
                                    {"Priority", "JobPrio", true, TEXT},
                                    {"MachineName", "agent", false, TEXT},
                                    {"QueueName", "queue", false, TEXT},
                                    {"SubmitTime", "submitted_ms", false, MOMENT},
                                    {"StartTime", "started_ms", false, MOMENT},
                                    {"EndTime", "ended_ms", false, MOMENT},
                                    {"ExitCode", "exit_code", false, TEXT},
                                    {"Description", "hold_reason", false, TEXT},
                                    END};
static const struct field acted[] = {{"JobCount", "affected", false, TEXT}, END};
static const struct field nodes[] = {
        {"NodeId", "name", false, TEXT},        {"State", "state", false, TEXT},
        {"HostName", "hostname", false, TEXT},  {"JobCount", "jobs", false, TEXT},
        {"Description", "reason", false, TEXT}, END};
static const struct field accounts[] = {
        {"AccountId", "name", false, TEXT},          {"ProjectId", "name", false, TEXT},
        {"Amount", "balance", false, TEXT},          {"Reserved", "held", false, TEXT},
        {"Available", "available", false, TEXT},     {"Charged", "charged", false, TEXT},
        {"Description", "description", false, TEXT}, END};
static const struct field ordered[] = {
        {"Amount", "amount", false, TEXT}, {"AllocationId", "id", false, TEXT}, END};
static const struct field quoted[] = {{"QuoteId", "id", false, TEXT},
                                      {"Charge", "amount", false, TEXT},
                                      {"EndTime", "end_ms", false, MOMENT},
                                      END};
static const struct field reserved[] = {{"ReservationId", "id", false, TEXT},
                                        {"Charge", "amount", false, TEXT},
                                        {"EndTime", "end_ms", false, MOMENT},
                                        END};
static const struct field charged[] = {
        {"Charge", "amount", false, TEXT}, {"ReservationId", "lien", false, TEXT}, END};
static const struct field quotes[] = {{"QuoteId", "id", false, TEXT},
                                      {"Charge", "amount", false, TEXT},
                                      {"ProjectId", "account", false, TEXT},
                                      {"UserId", "user", false, TEXT},
                                      {"MachineName", "place", false, TEXT},
                                      {"WallDuration", "duration_ms", false, SECONDS},
                                      {"EndTime", "end_ms", false, MOMENT},
                                      {"Used", "used", false, TEXT},
                                      END};
static const struct field liens[] = {{"ReservationId", "id", false, TEXT},
                                     {"Charge", "amount", false, TEXT},
                                     {"ProjectId", "account", false, TEXT},
                                     {"UserId", "user", false, TEXT},
                                     {"MachineName", "place", false, TEXT},
                                     {"JobId", "why", false, TEXT},
                                     {"StartTime", "at_ms", false, MOMENT},
                                     {"EndTime", "end_ms", false, MOMENT},
                                     END};

#define ORDERS       HTTP_POST, "/v1/bank/orders"
#define ACTION       HTTP_POST, "/v1/actions"
#define SUBMIT(more) HTTP_POST, "/v1/requests", "{\"parts\":[{\"values\":{\"JobUniverse\":5" more, "}}]}"
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
        {"Query", "Node", HTTP_GET, "/v1/nodes", NULL, NULL, none, NULL, "Node", "nodes", nodes},
        {"Query", "Account", HTTP_GET, "/v1/bank/accounts/{name}", NULL, NULL, account_named, "ProjectId",
         "Account", NULL, accounts},
        {"Query", "Account", HTTP_GET, "/v1/bank", NULL, NULL, none, NULL, "Account", "accounts", accounts},
        {"Balance", "Account", HTTP_GET, "/v1/bank/accounts/{name}", NULL, NULL, account_named, "ProjectId",
         "Account", NULL, accounts},
        {"Deposit", "Account", ORDERS, OP("deposit"), deposit, NULL, "Account", NULL, ordered},
        {"Withdraw", "Account", ORDERS, OP("withdraw"), withdraw, NULL, "Account", NULL, ordered},
        {"Transfer", "Account", ORDERS, OP("transfer"), transfer, NULL, "Account", NULL, ordered},
        {"Quote", "Job", ORDERS, OP("quote"), quote, NULL, "Job", NULL, quoted},
        {"Reserve", "Job", ORDERS, OP("lien"), reserve, NULL, "Job", NULL, reserved},
        {"Charge", "Job", ORDERS, OP("charge"), charge, NULL, "Job", NULL, charged},
        {"Refund", "Job", ORDERS, OP("refund"), refund, NULL, "Job", NULL, charged},
        {"Query", "Quote", HTTP_GET, "/v1/bank/reserved", NULL, NULL, none, NULL, "Quote", "quotes", quotes},
        {"Query", "Reservation", HTTP_GET, "/v1/bank/reserved", NULL, NULL, none, NULL, "Reservation",
         "liens", liens},
        {"Delete", "Reservation", ORDERS, OP("release"), release, NULL, "Reservation", NULL, ordered},
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

static int write_value(struct server *s, struct json *j, const struct member *e, struct str value,
                       struct err *err)
{
        BUF_CLEANUP struct buf user = {0};
        int64_t n = 0;

        if ((e->kind == NUMBER && str_to_i64(value, &n) != 0) ||
            ((e->kind == SECONDS || e->kind == MOMENT) &&
             (str_to_i64(value, &n) != 0 || n < 0 || n > TIME_MAX)) ||
            (e->kind == USER && !principal_of(s, value, &user)))
                return err_set(err, SSSRMAP_VALUE, "%s: \"" STR_FMT "\" is not %s", e->parameter,
                               STR_ARG(str_head(value, 64)),
                               e->kind == USER     ? "a user"
                               : e->kind == NUMBER ? "a whole number"
                                                   : "a number of seconds");
        json_key(j, e->key);
        switch (e->kind) {
        case TEXT:
        case ONE_JOB: json_str(j, value); break;
        case USER: json_str(j, buf_view(&user)); break;
        case NUMBER: json_int(j, n); break;
        case SECONDS:
        case MOMENT: json_int(j, n * 1000); break;
        case LIST:
                json_open(j, '[');
                json_str(j, value);
                json_close(j, ']');
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
                        r = write_value(s, &j, e, value, &t->err);
        }
        buf_addz(&t->body, t->mapping->after);
        t->front.body = buf_view(&t->body);
        return r;
}

static int write_query(struct translation *t, struct call *c)
{
        unsigned n = 0;

        for (const struct member *e = t->mapping->members; e->parameter; e++) {
                struct str value;
                int r = sssrmap_parameter(&t->message, e->parameter, &value, &t->err);

                if (r != 0)
                        return r;
                if (value.n && t->mapping->parameter)
                        c->param[0] = value;
                else if (value.n) {
                        t->front.query[n].name = e->key;
                        t->front.query[n++].value = value;
                }
        }
        if (t->mapping->array && strcmp(t->mapping->array, "jobs") == 0) {
                t->front.query[n].name = "attributes";
                t->front.query[n++].value = JOB_ATTRIBUTES;
                t->front.query[n].name = "state";
                t->front.query[n].value = STR("idle,running,held,completed,removed");
        }
        return 0;
}

static int check_parameters(struct translation *t)
{
        const char *names[24];
        size_t n = 0;

        for (const struct member *e = t->mapping->members; e->parameter; e++)
                names[n++] = e->parameter;
        names[n] = NULL;
        return sssrmap_only(&t->message, names, &t->err);
}

static int translate(struct server *s, struct call *c, struct translation *t)
{
        struct str param[2];
        bool known;
        int r = find_mapping(&t->message, &t->mapping, &t->err);

        if (r == 0)
                r = check_parameters(t);
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

static void add_field(struct buf *out, const struct field *f, const json_t *v)
{
        char text[32];

        if (json_is_string(v))
                add_text(out, f->name, str_of(json_string_value(v)));
        else if (json_is_boolean(v))
                add_text(out, f->name, json_is_true(v) ? STR("True") : STR("False"));
        else if (json_is_integer(v)) {
                snprintf(text, sizeof(text), "%" PRId64,
                         f->kind == TEXT ? (int64_t)json_integer_value(v)
                                         : (int64_t)json_integer_value(v) / 1000);
                add_text(out, f->name, str_of(text));
        } else if (json_is_real(v)) {
                snprintf(text, sizeof(text), "%.15g", json_real_value(v));
                add_text(out, f->name, str_of(text));
        }
}

static void add_element(struct translation *t, struct buf *out, const json_t *element)
{
        const struct mapping *m = t->mapping;

        buf_printf(out, "<%s>", m->element);
        for (const struct field *f = m->fields; f->name; f++)
                if (sssrmap_wants(&t->message, str_of(f->name)))
                        add_field(
                                out, f,
                                json_object_get(f->in_ad ? json_object_get(element, "ad") : element, f->key));
        buf_printf(out, "</%s>", m->element);
}

/* The actions on jobs reach some and miss others: the first that was missed is told. */
static const char *missed(const json_t *reply)
{
        const json_t *first = json_array_get(json_object_get(reply, "errors"), 0);

        return json_string_value(json_object_get(first, "message"));
}

static void add_reply(struct translation *t, struct buf *out, const json_t *reply)
{
        const json_t *list = t->mapping->array ? json_object_get(reply, t->mapping->array) : NULL;
        const char *problem = missed(reply);
        size_t count = t->mapping->array ? json_array_size(list) : 1;

        add_status(out, problem ? SSSRMAP_UNKNOWN : SSSRMAP_SUCCESS, problem);
        buf_printf(out, "<Count>%zu</Count><Data>", count);
        for (size_t i = 0; i < count; i++)
                add_element(t, out, list ? json_array_get(list, i) : reply);
        buf_addz(out, "</Data>");
}

/* Puts the signed response into c->out. */
static void respond(struct call *c, struct translation *t, struct str content)
{
        BUF_CLEANUP struct buf response = {0};

        buf_addz(&response, "<Response");
        if (t->message.id) {
                buf_addz(&response, " id=\"");
                xml_escape(&response, str_of(t->message.id));
                buf_char(&response, '"');
        }
        buf_printf(&response, ">" STR_FMT "</Response>", STR_ARG(content));
        buf_reset(&c->out);
        sssrmap_write(&c->out, buf_view(&response), t->key ? str_of(t->key->key) : STR_NONE,
                      t->key ? t->key->name : NULL, t->message.signature.size);
        c->status = 200;
        c->content_type = CONTENT_TYPE;
}

static void send_response(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

/* Reader thread, since a reply may be large. */
static void is_made_xml(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);
        json_t *reply = json_loadb(c->out.p ? c->out.p : "", c->out.n, 0, NULL);

        (void)s;
        add_reply(t, &t->reply, reply);
        json_decref(reply);
        respond(c, t, buf_view(&t->reply));
        call_io(c, send_response);
}

/* I/O thread: the route has replied, or the call has failed before. */
static void route_replied(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);

        (void)s;
        call_state_drop(c);
        if (t->code == 0 && c->status < 300) {
                call_reader(c, is_made_xml);
                return;
        }
        add_status(&t->reply, t->code ? t->code : code_of(c), t->code ? t->err.text : c->err.text);
        respond(c, t, buf_view(&t->reply));
        call_reply(c);
}

/* ---- who asks */

static void fail(struct call *c, int code)
{
        translation_of(c)->code = code > 0 ? code : SSSRMAP_FAILED;
        call_io(c, send_response);
}

/* I/O thread: the caller is known. */
static void dispatch(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);
        int code;

        http_trust(c->http);
        code = translate(s, c, t);
        if (code != 0)
                fail(c, code);
        else
                c->route->start(s, c);
}

/* I/O thread: the token was looked up. It speaks for its user only. */
static void token_known(struct server *s, struct call *c)
{
        struct translation *t = translation_of(c);

        if (c->who && call_owner_is(str_of(c->who), str_of(t->message.actor))) {
                dispatch(s, c);
                return;
        }
        fail(c,
             err_set(&t->err, c->who ? SSSRMAP_FORBIDDEN : SSSRMAP_SIGNATURE,
                     c->who ? "the token is not the actor's" : "this token is not valid: ask for a new one"));
}

static void look_up_token(struct server *s, struct call *c)
{
        (void)s;
        access_bearer(c, translation_of(c)->message.signature.cleartext, token_known);
}

/* Finds the key and checks the signature. A key that is not known fails as a wrong signature does. */
static int identify(struct server *s, struct call *c, struct translation *t)
{
        const struct sssrmap_signature *sign = &t->message.signature;
        const struct config_sssrmap_key *key = config_sssrmap_key(&s->config.sssrmap, sign->token_name);
        BUF_CLEANUP struct buf actor = {0};
        enum role today;

        if (!sign->given || !sign->keyed)
                return err_set(&t->err, SSSRMAP_SIGNATURE, "the message is not signed");
        if (!key || !sssrmap_is_signed(&t->message, str_of(key->key)))
                return err_set(&t->err, SSSRMAP_SIGNATURE,
                               "the signature is wrong, or of a key that is not known");
        if (sign->size < 32 && !key->sha1)
                return err_set(&t->err, SSSRMAP_SIGNATURE,
                               "messages with this key must be signed with SHA-256");
        t->key = key;
        if (!principal_of(s, str_of(t->message.actor), &actor))
                return err_set(&t->err, SSSRMAP_VALUE,
                               "the actor is not a user: it must be NAME or NAME@DOMAIN");
        if (!owners_allow(&key->actors, buf_view(&actor)))
                return err_set(&t->err, SSSRMAP_FORBIDDEN, "the key does not speak for %s", buf_z(&actor));
        c->who = buf_take(&actor);
        today = access_role(s, c->who);
        c->role = key->role < today ? key->role : today;
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
                code = identify(s, c, t);
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
        http_limit_body(c->http, SSSRMAP_MESSAGE_MAX);
        http_read_body(c->http, STR("sssrmap"), sssrmap_body_read, c);
}
