#include "core/model/submission.h"

#include <errno.h>

#include "base/map.h"
#include "base/pack.h"

#define SUBMISSION_VERSION                                                                                   \
        4 /* older versions: 1 lacks lease, hold_results and origin; 2 lacks digest; 3 lacks edges */

void submission_deinit(struct submission *s)
{
        for (size_t i = 0; i < s->part_count; i++) {
                free(s->parts[i].attributes);
                free(s->parts[i].variables);
        }
        for (size_t i = 0; i < s->ended_parent_count; i++)
                set_deinit(&s->ended_parents[i].ok);
        free(s->ended_parents);
        free(s->parts);
        free(s->spooled);
        *s = (struct submission){0};
}

/* The arrays below grow by doubling at powers of two, so that no capacity needs to be kept. */
static void *grown(void *array, size_t count, size_t size)
{
        if (count == 0 || (count >= 4 && (count & (count - 1)) == 0))
                return mem_array(array, count < 4 ? 4 : count * 2, size);
        return array;
}

struct submission_part *submission_add_part(struct submission *s)
{
        s->parts = grown(s->parts, s->part_count, sizeof(*s->parts));
        s->parts[s->part_count] = (struct submission_part){.rows = 1, .steps = 1};
        return &s->parts[s->part_count++];
}

void submission_add_attribute(struct submission_part *p, struct str name, struct str text, bool late)
{
        p->attributes = grown(p->attributes, p->attribute_count, sizeof(*p->attributes));
        p->attributes[p->attribute_count++] = (struct submission_attribute){name, text, late};
}

void submission_add_variable(struct submission_part *p, struct str name)
{
        p->variables = grown(p->variables, p->variable_count, sizeof(*p->variables));
        p->variables[p->variable_count++] = name;
}

struct submission_file *submission_add_file(struct submission *s)
{
        s->spooled = grown(s->spooled, s->spooled_count, sizeof(*s->spooled));
        s->spooled[s->spooled_count] = (struct submission_file){0};
        return &s->spooled[s->spooled_count++];
}

struct ended_parent *submission_add_ended_parent(struct submission *s)
{
        s->ended_parents = grown(s->ended_parents, s->ended_parent_count, sizeof(*s->ended_parents));
        s->ended_parents[s->ended_parent_count] = (struct ended_parent){0};
        return &s->ended_parents[s->ended_parent_count++];
}

uint64_t submission_members(const struct submission *s)
{
        uint64_t n = 0;

        for (size_t i = 0; i < s->part_count; i++)
                n += s->parts[i].rows * s->parts[i].steps;
        return n;
}

#define REQUEST_BYTES 1024u /* for a request, a part or a file, beside its text */
#define PART_BYTES    256u
#define FILE_BYTES    64u
#define WORD_BYTES    16u /* for a word of a compiled expression */
#define MARK_BYTES    24u /* for another character of a compiled expression */
#define OWN_FILE_MAX  16u /* input files of one member (inputs.h) */
#define OWN_BYTES     24u /* for one such file */
#define EDGE_BYTES    8u  /* for each character of the text of edges */
#define OUTER_BYTES   16u /* for each character of DependsOn */

enum character { OTHER, MARK, IN_WORD, QUOTE };

static const uint8_t characters[256] = {['!'] = MARK,
                                        [',' ... '/'] = MARK,
                                        ['#' ... '+'] = MARK,
                                        [':' ... '@'] = MARK,
                                        ['[' ... '^'] = MARK,
                                        ['`'] = MARK,
                                        ['{' ... 127] = MARK,
                                        ['0' ... '9'] = IN_WORD,
                                        ['_'] = IN_WORD,
                                        ['A' ... 'Z'] = IN_WORD,
                                        ['a' ... 'z'] = IN_WORD,
                                        ['"'] = QUOTE};

/* Returns the position after the closing quote of a literal whose opening quote is before p. */
static const char *skip_quoted(const char *p, const char *end)
{
        const char *quote = memchr(p, '"', (size_t)(end - p));

        if (!quote || !memchr(p, '\\', (size_t)(quote - p)))
                return quote ? quote + 1 : end;
        for (; p < end && *p != '"'; p++)
                p += *p == '\\';
        return p < end ? p + 1 : end;
}

/* Estimates the bytes of a compiled expression beside its text; quoted texts in it take none. */
static uint64_t compiled_bytes(struct str text)
{
        uint64_t words = 0, marks = 0;
        bool in_word = false;

        for (const char *p = text.p, *end = p + text.n; p < end;) {
                enum character kind = characters[(unsigned char)*p++];
                bool word = kind == IN_WORD;

                if (kind == QUOTE)
                        p = skip_quoted(p, end);
                words += word & !in_word;
                marks += kind == MARK;
                in_word = word;
        }
        return words * WORD_BYTES + marks * MARK_BYTES;
}

/* Counts the input files that a late list gives to each member. */
static uint64_t own_files(const struct submission_attribute *a)
{
        uint64_t files = 1;

        if (!a->late || !str_ieqz(a->name, "TransferInput"))
                return 0;
        for (size_t i = 0; i < a->text.n && files < OWN_FILE_MAX; i++)
                files += a->text.p[i] == ',';
        return files;
}

uint32_t submission_kib(const struct submission *s)
{
        uint64_t bytes = REQUEST_BYTES + (uint64_t)s->edges.n * EDGE_BYTES, kib;

        for (size_t i = 0; i < s->part_count; i++) {
                const struct submission_part *p = &s->parts[i];

                bytes += PART_BYTES + p->items.n;
                for (size_t k = 0; k < p->attribute_count; k++) {
                        const struct submission_attribute *a = &p->attributes[k];

                        bytes += a->name.n + a->text.n + compiled_bytes(a->text);
                        bytes += own_files(a) * p->rows * p->steps * OWN_BYTES;
                        if (str_ieqz(a->name, "DependsOn"))
                                bytes += (uint64_t)a->text.n * OUTER_BYTES;
                }
        }
        for (size_t i = 0; i < s->spooled_count; i++)
                bytes += FILE_BYTES + s->spooled[i].name.n;
        kib = (bytes + 1023) / 1024;
        return kib < UINT32_MAX ? (uint32_t)kib : UINT32_MAX;
}

static uint64_t digest_str(struct str s)
{
        return map_hash_stable(s.p, s.n);
}

static uint64_t digest_words(const uint64_t *words, size_t count)
{
        return map_hash_stable(words, count * sizeof(*words));
}

static uint64_t digest_part(const struct submission_part *p)
{
        uint64_t sum[5] = {p->rows, p->steps, digest_str(p->items)};

        for (size_t i = 0; i < p->attribute_count; i++) {
                const struct submission_attribute *a = &p->attributes[i];
                const uint64_t one[] = {digest_str(a->name), digest_str(a->text), a->late};

                sum[3] += digest_words(one, 3);
        }
        for (size_t i = 0; i < p->variable_count; i++) {
                const uint64_t both[] = {sum[4], digest_str(p->variables[i])};

                sum[4] = digest_words(both, 2);
        }
        return digest_words(sum, 5);
}

uint64_t submission_digest(const struct submission *s)
{
        uint64_t sum[4] = {s->hold}, digest;

        for (size_t i = 0; i < s->part_count; i++) {
                const uint64_t both[] = {sum[1], digest_part(&s->parts[i])};

                sum[1] = digest_words(both, 2);
        }
        for (size_t i = 0; i < s->spooled_count; i++) {
                const struct submission_file *f = &s->spooled[i];
                const uint64_t one[] = {digest_str(f->name), map_hash_stable(f->sha256, sizeof(f->sha256)),
                                        f->executable};

                sum[2] += digest_words(one, 3);
        }
        if (s->edges.n)
                sum[3] = digest_str(s->edges);
        digest = digest_words(sum, s->edges.n ? 4 : 3);
        return digest ? digest : 1;
}

uint64_t submission_digest_text(struct str text)
{
        uint64_t digest = digest_str(text);

        return digest ? digest : 1;
}

static uint64_t count_rows(struct str items)
{
        uint64_t n = 0;

        for (const char *p = items.p, *end = items.p + items.n; p && p < end; n++) {
                p = memchr(p, '\n', (size_t)(end - p));
                if (!p)
                        return UINT64_MAX;
                p++;
        }
        return n;
}

int submission_check(const struct submission *s, struct err *err)
{
        uint64_t members = 0;

        if (s->part_count == 0)
                return err_set(err, -EINVAL, "a request needs at least one job: add a queue statement");
        if (s->part_count > SUBMISSION_PARTS_MAX)
                return err_set(err, -E2BIG, "more than %u queue statements in one request",
                               SUBMISSION_PARTS_MAX);
        for (size_t i = 0; i < s->part_count; i++) {
                const struct submission_part *p = &s->parts[i];

                if (p->attribute_count > SUBMISSION_ATTRIBUTES_MAX)
                        return err_set(err, -E2BIG, "more than %u attributes", SUBMISSION_ATTRIBUTES_MAX);
                if (p->variable_count > SUBMISSION_VARIABLES_MAX)
                        return err_set(err, -E2BIG, "more than %u item variables", SUBMISSION_VARIABLES_MAX);
                for (size_t k = 0; k < p->attribute_count; k++)
                        if (p->attributes[k].text.n > SUBMISSION_TEXT_MAX)
                                return err_set(err, -E2BIG, STR_FMT " is longer than %u bytes",
                                               STR_ARG(p->attributes[k].name), SUBMISSION_TEXT_MAX);
                if (p->rows > SUBMISSION_MEMBERS_MAX || p->steps > SUBMISSION_MEMBERS_MAX ||
                    (members += p->rows * p->steps) > SUBMISSION_MEMBERS_MAX)
                        return err_set(err, -E2BIG, "a request can hold at most %u jobs: split it",
                                       SUBMISSION_MEMBERS_MAX);
                if (p->variable_count ? count_rows(p->items) != p->rows : p->rows != 1 || p->items.n)
                        return err_set(err, -EINVAL,
                                       "the number of item rows is not the number of rows given");
        }
        if (members == 0)
                return err_set(err, -EINVAL,
                               "a request needs at least one job: every queue statement is empty");
        return 0;
}

void submission_pack(struct buf *out, const struct submission *s)
{
        pack_u64(out, SUBMISSION_VERSION);
        buf_add(out, s->uuid, sizeof(s->uuid));
        pack_str(out, s->owner);
        pack_i64(out, s->at_ms);
        pack_u64(out, s->hold);
        pack_u64(out, s->part_count);
        for (size_t i = 0; i < s->part_count; i++) {
                const struct submission_part *p = &s->parts[i];

                pack_u64(out, p->attribute_count);
                for (size_t k = 0; k < p->attribute_count; k++) {
                        pack_str(out, p->attributes[k].name);
                        pack_str(out, p->attributes[k].text);
                        pack_u64(out, p->attributes[k].late);
                }
                pack_u64(out, p->variable_count);
                for (size_t k = 0; k < p->variable_count; k++)
                        pack_str(out, p->variables[k]);
                pack_u64(out, p->rows);
                pack_u64(out, p->steps);
                pack_str(out, p->items);
        }
        pack_u64(out, s->spooled_count);
        for (size_t i = 0; i < s->spooled_count; i++) {
                pack_str(out, s->spooled[i].name);
                buf_add(out, s->spooled[i].sha256, 32);
                pack_u64(out, s->spooled[i].size);
                pack_u64(out, s->spooled[i].executable);
        }
        pack_u64(out, s->lease_ms);
        pack_u64(out, s->hold_results);
        pack_str(out, s->origin.servers);
        pack_str(out, s->origin.owner);
        pack_str(out, s->origin.label);
        pack_str(out, s->origin.path);
        pack_str(out, s->origin.job);
        pack_u64(out, s->origin.hops_left);
        pack_u64(out, s->digest);
        pack_str(out, s->edges);
        pack_u64(out, s->ended_parent_count);
        for (size_t i = 0; i < s->ended_parent_count; i++) {
                pack_u64(out, s->ended_parents[i].request);
                pack_u64(out, s->ended_parents[i].jobs);
                set_pack(out, &s->ended_parents[i].ok);
        }
}

static void unpack_graph(struct unpack *u, struct submission *s)
{
        s->edges = unpack_str(u);
        for (uint64_t n = unpack_max(u, SUBMISSION_ENDED_PARENTS_MAX); n > 0 && !u->bad; n--) {
                struct ended_parent *p = submission_add_ended_parent(s);

                p->request = unpack_u64(u);
                p->jobs = (uint32_t)unpack_max(u, SUBMISSION_MEMBERS_MAX);
                set_unpack(&p->ok, u);
        }
}

static void unpack_origin(struct unpack *u, struct submission *s)
{
        s->lease_ms = unpack_u64(u);
        s->hold_results = unpack_max(u, 1);
        s->origin.servers = unpack_str(u);
        s->origin.owner = unpack_str(u);
        s->origin.label = unpack_str(u);
        s->origin.path = unpack_str(u);
        s->origin.job = unpack_str(u);
        s->origin.hops_left = (uint32_t)unpack_max(u, SUBMISSION_HOPS_MAX);
}

static void unpack_bytes(struct unpack *u, unsigned char *to, size_t n)
{
        if (u->bad || (size_t)(u->end - u->p) < n) {
                u->bad = true;
                return;
        }
        memcpy(to, u->p, n);
        u->p += n;
}

/* The beginning of a record, which differs between requests that are alike. */
struct head {
        uint64_t version;
        unsigned char uuid[16];
        struct str owner;
        int64_t at_ms;
};

static struct head unpack_head(struct unpack *u)
{
        struct head h = {.version = unpack_u64(u)};

        unpack_bytes(u, h.uuid, sizeof(h.uuid));
        h.owner = unpack_str(u);
        h.at_ms = unpack_i64(u);
        return h;
}

static void head_take(struct submission *s, const struct head *h)
{
        memcpy(s->uuid, h->uuid, sizeof(s->uuid));
        s->owner = h->owner;
        s->at_ms = h->at_ms;
}

bool submission_unpack_alike(struct submission *s, struct str before, struct str record)
{
        struct unpack a = unpack_from(before), b = unpack_from(record);
        struct head had = unpack_head(&a), has = unpack_head(&b);

        if (a.bad || b.bad || had.version != has.version || a.end - a.p != b.end - b.p ||
            memcmp(a.p, b.p, (size_t)(a.end - a.p)) != 0)
                return false;
        head_take(s, &has);
        return true;
}

int submission_unpack(struct submission *s, struct str record, struct err *err)
{
        struct unpack u = unpack_from(record);
        struct head head = unpack_head(&u);
        uint64_t n, version = head.version;

        *s = (struct submission){0};
        if (version == 0 || version > SUBMISSION_VERSION)
                return err_set(err, -EBADMSG, "a request record of a version that is not known here");
        head_take(s, &head);
        s->hold = unpack_max(&u, 1);
        for (n = unpack_max(&u, SUBMISSION_PARTS_MAX); n > 0 && !u.bad; n--) {
                struct submission_part *p = submission_add_part(s);

                for (uint64_t k = unpack_max(&u, SUBMISSION_ATTRIBUTES_MAX); k > 0 && !u.bad; k--) {
                        struct str name = unpack_str(&u), text = unpack_str(&u);

                        submission_add_attribute(p, name, text, unpack_max(&u, 1));
                }
                for (uint64_t k = unpack_max(&u, SUBMISSION_VARIABLES_MAX); k > 0 && !u.bad; k--)
                        submission_add_variable(p, unpack_str(&u));
                p->rows = unpack_max(&u, SUBMISSION_MEMBERS_MAX);
                p->steps = unpack_max(&u, SUBMISSION_MEMBERS_MAX);
                p->items = unpack_str(&u);
        }
        for (n = unpack_max(&u, 1u << 20); n > 0 && !u.bad; n--) {
                struct submission_file *f = submission_add_file(s);

                f->name = unpack_str(&u);
                unpack_bytes(&u, f->sha256, 32);
                f->size = unpack_u64(&u);
                f->executable = unpack_max(&u, 1);
        }
        if (version > 1)
                unpack_origin(&u, s);
        if (version > 2)
                s->digest = unpack_u64(&u);
        if (version > 3)
                unpack_graph(&u, s);
        if (unpack_done(&u))
                return 0;
        submission_deinit(s);
        return err_set(err, -EBADMSG, "a request record is damaged");
}
