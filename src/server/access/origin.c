#include "server/access/origin.h"

#include <errno.h>

#include "base/buf.h"
#include "base/system/uuid.h"
#include "classad/expr.h"
#include "classad/print.h"

/* ---- reading */

static int read_text(const json_t *o, const char *key, struct str *ret, struct err *err)
{
        const json_t *v = json_object_get(o, key);

        if (!v)
                return 0;
        if (!json_is_string(v) || json_string_length(v) > 4096)
                return err_set(err, -EINVAL, "origin: \"%s\" must be a line of text", key);
        for (size_t i = 0; i < json_string_length(v); i++)
                if ((unsigned char)json_string_value(v)[i] < ' ' || json_string_value(v)[i] == 0x7f)
                        return err_set(err, -EINVAL,
                                       "origin: \"%s\" must be a line of text without control characters",
                                       key);
        *ret = str_make(json_string_value(v), json_string_length(v));
        return 0;
}

static bool is_among(struct str servers, struct str uuid)
{
        struct str one;

        while (servers.n && str_cut(&servers, ' ', &one))
                if (str_ieq(one, uuid))
                        return true;
        return false;
}

static int check_servers(struct str servers, struct err *err)
{
        struct str rest = servers, one;
        unsigned n = 0;

        while (rest.n && str_cut(&rest, ' ', &one))
                if (++n > SUBMISSION_HOPS_MAX || !uuid_valid(one) || is_among(rest, one))
                        return err_set(err, -EINVAL,
                                       "origin: \"servers\" must be the uuids of at most %u servers, "
                                       "separated by blanks, each once",
                                       SUBMISSION_HOPS_MAX);
        return n ? 0
                 : err_set(err, -EINVAL, "origin: \"servers\" must name those that the request has passed");
}

static uint32_t servers_count(struct str servers)
{
        struct str one;
        uint32_t n = 0;

        while (servers.n && str_cut(&servers, ' ', &one))
                n++;
        return n;
}

static int read_origin(const json_t *o, struct submission_origin *to, struct err *err)
{
        const json_t *left = json_object_get(o, "hops_left");
        int r;

        if (!json_is_object(o))
                return err_set(err, -EINVAL, "\"origin\" must be an object");
        if (!json_is_integer(left) || json_integer_value(left) < 0 ||
            json_integer_value(left) > SUBMISSION_HOPS_MAX)
                return err_set(err, -EINVAL, "origin: \"hops_left\" must be a number of at most %u",
                               SUBMISSION_HOPS_MAX);
        to->hops_left = (uint32_t)json_integer_value(left);
        if ((r = read_text(o, "servers", &to->servers, err)) || (r = check_servers(to->servers, err)) ||
            (r = read_text(o, "owner", &to->owner, err)) || (r = read_text(o, "label", &to->label, err)) ||
            (r = read_text(o, "path", &to->path, err)) || (r = read_text(o, "job", &to->job, err)))
                return r;
        /* a server that claims a longer remaining path than is left gets what is left */
        uint32_t passed = servers_count(to->servers);
        if (to->hops_left > SUBMISSION_HOPS_MAX - passed)
                to->hops_left = SUBMISSION_HOPS_MAX - passed;
        return 0;
}

int origin_read(const json_t *doc, struct submission *s, struct err *err)
{
        const json_t *lease = json_object_get(doc, "lease_ms"), *origin = json_object_get(doc, "origin");

        if (lease &&
            (!json_is_integer(lease) || json_integer_value(lease) < (json_int_t)ORIGIN_LEASE_MIN_MS ||
             json_integer_value(lease) > (json_int_t)ORIGIN_LEASE_MAX_MS))
                return err_set(err, -EINVAL,
                               "\"lease_ms\" must be a number of milliseconds, from a second to 30 days");
        s->lease_ms = lease ? (uint64_t)json_integer_value(lease) : 0;
        s->hold_results = json_is_true(json_object_get(doc, "hold_results"));
        if (s->hold_results && !s->lease_ms)
                return err_set(err, -EINVAL,
                               "\"hold_results\" needs \"lease_ms\": results are held only while the "
                               "submitter renews a lease");
        return origin ? read_origin(origin, &s->origin, err) : 0;
}

/* ---- effects on the submission */

bool origin_path_cut(struct str *path, struct str *ret_element)
{
        size_t n = 0;

        while (path->n && (path->p[0] == ' ' || path->p[0] == ',' || path->p[0] == '\t'))
                *path = str_skip(*path, 1);
        while (n < path->n && path->p[n] != ' ' && path->p[n] != ',' && path->p[n] != '\t')
                n++;
        *ret_element = str_head(*path, n);
        *path = str_skip(*path, n);
        return n > 0;
}

static struct submission_attribute *find_attribute(struct submission_part *p, const char *name)
{
        for (size_t i = 0; i < p->attribute_count; i++)
                if (str_ieqz(p->attributes[i].name, name))
                        return &p->attributes[i];
        return NULL;
}

static void set_attribute(struct submission_part *p, struct arena *arena, const char *name,
                          const struct buf *text)
{
        struct submission_attribute *a = find_attribute(p, name);
        struct str kept = arena_str(arena, buf_view(text));

        if (a)
                a->text = kept;
        else
                submission_add_attribute(p, str_of(name), kept, false);
}

static void set_text(struct submission_part *p, struct arena *arena, const char *name, struct str value)
{
        BUF_CLEANUP struct buf b = {0};

        print_string(&b, value);
        set_attribute(p, arena, name, &b);
}

/* Adds a clause to the job's Requirements. */
static void require(struct submission_part *p, struct arena *arena, struct str clause)
{
        const struct submission_attribute *a = find_attribute(p, "Requirements");
        BUF_CLEANUP struct buf b = {0};

        if (!find_attribute(p, ORIGIN_OWN_REQUIREMENTS)) {
                submission_add_attribute(p, STR(ORIGIN_OWN_REQUIREMENTS), a ? a->text : STR("true"),
                                         a && a->late);
                a = find_attribute(p, "Requirements");
        }
        if (a)
                buf_printf(&b, "(" STR_FMT ") && ", STR_ARG(a->text));
        buf_printf(&b, "(" STR_FMT ")", STR_ARG(clause));
        set_attribute(p, arena, "Requirements", &b);
}

static bool name_ok(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] <= ' ' || s.p[i] == '"' || s.p[i] == '\\' || s.p[i] == 0x7f)
                        return false;
        return s.n > 0;
}

static int fix_first(struct submission_part *p, struct arena *arena, struct str path, struct err *err)
{
        BUF_CLEANUP struct buf clause = {0};
        struct str element, agent;

        if (!origin_path_cut(&path, &element) || str_eqz(element, "*"))
                return 0;
        ptrdiff_t slash = str_find(element, '/');
        agent = str_head(element, slash < 0 ? element.n : (size_t)slash);
        struct str queue = str_skip(element, slash < 0 ? element.n : (size_t)slash + 1);
        if (!name_ok(agent) || (slash >= 0 && !name_ok(queue)))
                return err_set(err, -EINVAL,
                               "DroverPath: '" STR_FMT "' is not a place: write agent/queue, agent, or *",
                               STR_ARG(element));
        if (!str_eqz(agent, "*"))
                buf_printf(&clause, "TARGET.AgentName == \"" STR_FMT "\"", STR_ARG(agent));
        if (queue.n && !str_eqz(queue, "*"))
                buf_printf(&clause, "%sTARGET.QueueName == \"" STR_FMT "\"", clause.n ? " && " : "",
                           STR_ARG(queue));
        if (clause.n)
                require(p, arena, buf_view(&clause));
        return 0;
}

/* Reads the path of the part's own ad, which must be a quoted string; empty: there is none. */
static int own_path(struct submission_part *p, struct str *ret, struct err *err)
{
        const struct submission_attribute *a = find_attribute(p, "DroverPath");
        struct str text = a ? str_trim(a->text) : STR_NONE;

        *ret = STR_NONE;
        if (!a)
                return 0;
        if (a->late || text.n < 2 || text.p[0] != '"' || text.p[text.n - 1] != '"' ||
            memchr(text.p + 1, '"', text.n - 2) || memchr(text.p, '\\', text.n))
                return err_set(
                        err, -EINVAL,
                        "DroverPath must be a text, the same for all jobs: \"agent/queue, agent/queue\"");
        *ret = str_head(str_skip(text, 1), text.n - 2);
        return 0;
}

/* Keeps the job from places that lead back to a server it has passed. An agent names the server that it
 * hands jobs on to in DroverServer. */
static void avoid_passed(struct submission_part *p, struct arena *arena, struct str servers)
{
        BUF_CLEANUP struct buf clause = {0};
        struct str rest = servers, one;

        buf_addz(&clause, "TARGET.DroverServer =?= undefined || !member(TARGET.DroverServer, {");
        while (rest.n && str_cut(&rest, ' ', &one))
                buf_printf(&clause, "%s\"" STR_FMT "\"", one.p == servers.p ? "" : ", ", STR_ARG(one));
        buf_addz(&clause, "})");
        require(p, arena, buf_view(&clause));
}

/* Keeps a job that may not be handed on any further at this server's own places. */
static void stay_here(struct submission_part *p, struct arena *arena, const struct submission_origin *o)
{
        if (o->servers.n == 0 && find_attribute(p, "DroverMaxHops"))
                require(p, arena, STR("TARGET.DroverServer =?= undefined || MY.DroverMaxHops > 0"));
        else if (o->servers.n && o->hops_left == 0)
                require(p, arena, STR("TARGET.DroverServer =?= undefined"));
}

/* Adds the origin's labels to the job's own DataLabels. */
static void add_label(struct submission_part *p, struct arena *arena, struct str label)
{
        const struct submission_attribute *a = find_attribute(p, "DataLabels");
        BUF_CLEANUP struct buf b = {0};

        if (a)
                buf_printf(&b, "strcat(" STR_FMT ", \",\", ", STR_ARG(a->text));
        print_string(&b, label);
        if (a)
                buf_char(&b, ')');
        set_attribute(p, arena, "DataLabels", &b);
}

static int may_come(const struct submission_origin *o, const char *uuid, struct err *err)
{
        struct str rest = o->servers, one;
        unsigned n = 0;

        while (rest.n && str_cut(&rest, ' ', &one)) {
                n++;
                if (str_ieqz(one, uuid))
                        return err_set(err, ORIGIN_LOOP,
                                       "a loop: job " STR_FMT
                                       " has passed this server (%s) before, as number %u of its path",
                                       STR_ARG(o->job), uuid, n);
        }
        if (n >= SUBMISSION_HOPS_MAX)
                return err_set(err, ORIGIN_TOO_LONG, "its path is longer than %u servers",
                               SUBMISSION_HOPS_MAX);
        return 0;
}

/* Checks that a text is one complete expression. Clauses are written around it, and a text such as "true)
 * || (true" would escape from its parentheses. A text with macros cannot be checked yet. Returns 0, or
 * -EINVAL with err. */
static int check_whole(struct submission_part *p, const char *name, bool may_be_late, struct err *err)
{
        const struct submission_attribute *a = find_attribute(p, name);
        struct symbols *symbols;
        struct err why = {""};
        struct expr *e = NULL;
        int r;

        if (!a || (a->late && may_be_late))
                return 0;
        if (a->late)
                return err_set(err, -EINVAL, "%s must be the same for all jobs of a request with an origin",
                               name);
        symbols = symbols_new();
        r = expr_parse(symbols, a->text, &e, &why);
        expr_free(e);
        symbols_free(symbols);
        return r ? err_set(err, -EINVAL, "%s: %s", name, why.text) : 0;
}

int origin_apply(struct submission *s, const char *server_uuid, struct arena *arena, struct err *err)
{
        const struct submission_origin *o = &s->origin;
        int r = may_come(o, server_uuid, err);

        for (size_t i = 0; i < s->part_count && r == 0; i++) {
                struct submission_part *p = &s->parts[i];
                struct str path = o->path;

                if (o->servers.n)
                        r = check_whole(p, "Requirements", true, err);
                if (r == 0 && o->label.n)
                        r = check_whole(p, "DataLabels", false, err);
                if (r != 0)
                        return r;
                if (o->servers.n) {
                        set_text(p, arena, "DroverPath", o->path);
                        set_text(p, arena, "DroverOriginOwner", o->owner);
                        set_text(p, arena, "DroverOriginJob", o->job);
                        avoid_passed(p, arena, o->servers);
                } else {
                        r = own_path(p, &path, err);
                }
                if (r == 0)
                        r = fix_first(p, arena, path, err);
                if (r == 0)
                        stay_here(p, arena, o);
                if (o->label.n)
                        add_label(p, arena, o->label);
        }
        return r;
}
