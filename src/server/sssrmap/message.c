/* What is signed is looked for in the text, and what is asked for is read from the tree. Both are the same
 * because a '<' in the text can only begin a tag: the text may have neither "<!" nor "<?" behind its
 * declaration, XML allows no '<' in attributes, and there is one <Body and one </Body>. The declaration is
 * not given to the parser, so that nobody can change the encoding of a signed body. */
#include "server/sssrmap/message.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/format/base64.h"
#include "base/mem.h"

#define TAG_ATTRIBUTES_MAX 16u
#define SHA1_SIZE          20u
#define SHA256_SIZE        32u

/* ---- reading */

/* Takes the declaration <?xml … ?> off the text. Returns false if it names an encoding other than UTF-8. */
static bool take_declaration(struct str *text)
{
        static const char *const utf8[] = {"encoding=\"UTF-8\"", "encoding='UTF-8'"};
        ptrdiff_t end, at;
        struct str head;
        bool good = false;

        *text = str_trim(*text);
        if (!str_starts(*text, STR("<?xml")))
                return true;
        end = str_search(*text, STR("?>"));
        if (end < 0)
                return false;
        head = str_head(*text, (size_t)end);
        *text = str_trim(str_skip(*text, (size_t)end + 2));
        at = str_search(head, STR("encoding"));
        for (size_t i = 0; at >= 0 && i < 2; i++)
                good |= str_istarts(str_skip(head, (size_t)at), str_of(utf8[i]));
        return at < 0 || good;
}

/* Finds the body's text. Returns false if the text has something in it that hides what is a tag. */
static bool find_body(struct str text, struct str *ret)
{
        ptrdiff_t begin = str_search(text, STR("<Body")), end = str_search(text, STR("</Body>"));
        const size_t end_size = strlen("</Body>");

        if (str_search(text, STR("<!")) >= 0 || str_search(text, STR("<?")) >= 0 || begin < 0 ||
            end < begin || str_search(str_skip(text, (size_t)begin + 1), STR("<Body")) >= 0 ||
            str_search(str_skip(text, (size_t)end + 1), STR("</Body")) >= 0)
                return false;
        *ret = str_head(str_skip(text, (size_t)begin), (size_t)(end - begin) + end_size);
        return true;
}

/* Returns whether a tag has more attributes than any of the format has. libxml2 compares each with all others
 * of its tag, and strangers may send a message. */
static bool has_long_tag(struct str text)
{
        unsigned attributes = 0;
        char quote = 0;
        bool inside = false;

        for (size_t i = 0; i < text.n; i++) {
                char c = text.p[i];

                if (!inside || quote) {
                        if (c == quote)
                                quote = 0;
                        if (!inside && c == '<') {
                                inside = true;
                                attributes = 0;
                        }
                } else if (c == '"' || c == '\'') {
                        quote = c;
                        if (++attributes > TAG_ATTRIBUTES_MAX)
                                return true;
                } else if (c == '>') {
                        inside = false;
                }
        }
        return false;
}

/* Reads a base64 sum of 20 or 32 bytes. Returns its size; 0: it is none. */
static unsigned read_sum(const struct xml *x, unsigned char ret[static SHA256_SIZE])
{
        BUF_CLEANUP struct buf bytes = {0};

        if (!x || base64_decode(&bytes, xml_text(x)) != 0 || (bytes.n != SHA1_SIZE && bytes.n != SHA256_SIZE))
                return 0;
        memcpy(ret, bytes.p, bytes.n);
        return (unsigned)bytes.n;
}

static int read_signature(struct sssrmap_message *m, struct err *err)
{
        struct sssrmap_signature *s = &m->signature;
        const struct xml *x = xml_child(m->root, "Signature"), *token = xml_child(x, "SecurityToken");
        const char *type = xml_get(token, "type");

        if (!x)
                return 0;
        s->given = true;
        s->token_name = xml_get(token, "name");
        if (type && strcmp(type, "Symmetric") != 0 && strcmp(type, "Cleartext") != 0)
                return err_set(err, SSSRMAP_SIGNATURE,
                               "a token of the type %.64s is not supported: use Symmetric, with a key of the "
                               "server, or Cleartext, with a user token",
                               type);
        if (type && strcmp(type, "Cleartext") == 0) {
                s->cleartext = xml_text(token);
                if (s->cleartext.n == 0)
                        return err_set(err, SSSRMAP_SIGNATURE, "the token is empty");
                return 0;
        }
        s->size = read_sum(xml_child(x, "DigestValue"), s->digest);
        if (s->size == 0 || read_sum(xml_child(x, "SignatureValue"), s->value) != s->size)
                return err_set(err, SSSRMAP_SIGNATURE,
                               "the digest and the signature must both be of SHA-1 or both of SHA-256");
        s->keyed = true;
        return 0;
}

bool sssrmap_is_query(const struct sssrmap_message *m)
{
        return strcmp(m->action, "Query") == 0;
}

static bool is_equality(const struct xml *x)
{
        const char *op = xml_get(x, "op");

        return !op || strcmp(op, "EQ") == 0 || strcmp(op, "eq") == 0 || strcmp(op, "Assign") == 0;
}

/* Returns whether a Where is joined to the others in another way than by And. */
static bool is_joined(const struct xml *x)
{
        const char *conj = xml_get(x, "conj"), *group = xml_get(x, "group");

        group = group ? group : xml_get(x, "groups");
        return (conj && strcmp(conj, "And") != 0) || (group && strspn(group, "+-0") < strlen(group));
}

static bool has_joined(const struct xml *request)
{
        const struct xml *x = xml_child(request, "Where");

        while (x && !is_joined(x))
                x = xml_next(x, "Where");
        return x;
}

static void read_attributes(struct sssrmap_message *m)
{
        m->action = xml_get(m->request, "action");
        m->actor = xml_get(m->request, "actor");
        m->id = xml_get(m->request, "id");
        m->object = NULL;
}

bool sssrmap_is_condition(const struct sssrmap_message *m, const struct xml *x)
{
        return xml_is(x, "Where") && (m->joined || !is_equality(x));
}

int sssrmap_request(struct sssrmap_message *m, struct err *err)
{
        const struct xml *object = xml_child(m->request, "Object");

        if (!object || xml_next(object, "Object"))
                return err_set(err, SSSRMAP_OBJECT,
                               "a request is about one object, such as Job, Node, Account, Quote or "
                               "Reservation");
        m->object = object->text;
        m->joined = has_joined(m->request);
        for (const struct xml *x = m->request->first; x && !sssrmap_is_query(m); x = x->next)
                if (sssrmap_is_condition(m, x))
                        return err_set(err, SSSRMAP_VALUE,
                                       "%s of %.64s takes no condition but equality: query the objects first",
                                       m->action, m->object);
        if (xml_child(m->request, "Data") && xml_next(xml_child(m->request, "Data"), "Data"))
                return err_set(err, SSSRMAP_VALUE, "a request has one Data at most");
        return 0;
}

int sssrmap_read(struct str text, struct xml_schema *schema, struct sssrmap_message *ret, struct err *err)
{
        int r;

        *ret = (struct sssrmap_message){0};
        if (text.n > SSSRMAP_MESSAGE_MAX)
                return err_set(err, SSSRMAP_MALFORMED, "a message may have %u bytes", SSSRMAP_MESSAGE_MAX);
        if (memchr(text.p ? text.p : "", 0, text.n) || !take_declaration(&text) ||
            !str_starts(text, STR("<Envelope")) || !find_body(text, &ret->body) || has_long_tag(text))
                return err_set(
                        err, SSSRMAP_MALFORMED,
                        "a message is an <Envelope> in UTF-8 with one <Body>, without comments, "
                        "document types, CDATA sections and processing instructions, and with at most 16 "
                        "attributes in a tag");
        r = xml_parse_valid("message", text, schema, &ret->root, err);
        if (r != 0)
                return r == -EINVAL ? SSSRMAP_MALFORMED : r;
        ret->request = xml_child(xml_child(ret->root, "Body"), "Request");
        if (ret->request)
                read_attributes(ret);
        return read_signature(ret, err);
}

bool sssrmap_next(struct sssrmap_message *m)
{
        const struct xml *next = xml_next(m->request, "Request");

        if (!next)
                return false;
        m->request = next;
        read_attributes(m);
        return true;
}

void sssrmap_deinit(struct sssrmap_message *m)
{
        xml_free(m->root);
        *m = (struct sssrmap_message){0};
}

/* ---- signatures */

static const EVP_MD *function_of(unsigned size)
{
        return size == SHA256_SIZE ? EVP_sha256() : EVP_sha1();
}

/* Computes both sums of a body. Returns false if OpenSSL refuses. */
static bool sign(struct str body, struct str key, unsigned size, unsigned char digest[static SHA256_SIZE],
                 unsigned char value[static EVP_MAX_MD_SIZE])
{
        unsigned n = 0, m = 0;

        return key.n <= 65536 && EVP_Digest(body.p, body.n, digest, &n, function_of(size), NULL) == 1 &&
               n == size && HMAC(function_of(size), key.p, (int)key.n, digest, n, value, &m) && m == size;
}

bool sssrmap_is_signed(const struct sssrmap_message *m, struct str key)
{
        const struct sssrmap_signature *s = &m->signature;
        unsigned char digest[SHA256_SIZE], value[EVP_MAX_MD_SIZE];

        return s->keyed && key.n && sign(m->body, key, s->size, digest, value) &&
               CRYPTO_memcmp(digest, s->digest, s->size) == 0 && CRYPTO_memcmp(value, s->value, s->size) == 0;
}

/* ---- parameters */

static bool is_parameter(const struct sssrmap_message *m, const struct xml *x)
{
        return xml_is(x, "Set") || xml_is(x, "Option") || (xml_is(x, "Where") && !sssrmap_is_condition(m, x));
}

/* Returns the one element of Data, which the schema allows; NULL: there is no Data. */
static const struct xml *object_of(const struct sssrmap_message *m)
{
        const struct xml *data = xml_child(m->request, "Data");

        return data ? data->first : NULL;
}

int sssrmap_parameter(const struct sssrmap_message *m, const char *name, struct str *ret, struct err *err)
{
        const struct xml *x = object_of(m) ? xml_child(object_of(m), name) : NULL;
        unsigned times = x != NULL;

        *ret = xml_text(x);
        for (x = m->request->first; x; x = x->next)
                if (is_parameter(m, x) && strcmp(xml_get(x, "name"), name) == 0) {
                        *ret = xml_text(x);
                        times++;
                }
        return times > 1 ? err_set(err, SSSRMAP_VALUE, "%s is given %u times", name, times) : 0;
}

static bool is_one_of(const char *name, const char *const *names)
{
        while (*names && strcmp(*names, name) != 0)
                names++;
        return *names;
}

int sssrmap_only(const struct sssrmap_message *m, const char *const *names, struct err *err)
{
        for (const struct xml *x = m->request->first; x; x = x->next) {
                if (xml_is(x, "Where") && sssrmap_is_query(m))
                        continue; /* sssrmap_selection_new checks it */
                if (is_parameter(m, x) && !is_one_of(xml_get(x, "name"), names))
                        return err_set(err, SSSRMAP_VALUE, "%s of %s takes no %.64s", m->action, m->object,
                                       xml_get(x, "name"));
        }
        for (const struct xml *x = object_of(m) ? object_of(m)->first : NULL; x; x = x->next)
                if (!is_one_of(x->name, names))
                        return err_set(err, SSSRMAP_VALUE, "%s of %s takes no %.64s", m->action, m->object,
                                       x->name);
        return 0;
}

/* ---- writing */

void sssrmap_write(struct buf *out, struct str content, struct str key, const char *key_name, unsigned size)
{
        unsigned char digest[SHA256_SIZE], value[EVP_MAX_MD_SIZE];
        BUF_CLEANUP struct buf body = {0};

        buf_printf(&body, "<Body>" STR_FMT "</Body>", STR_ARG(content));
        buf_addz(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Envelope>");
        buf_str(out, buf_view(&body));
        if (key.n && sign(buf_view(&body), key, size, digest, value)) {
                buf_addz(out, "<Signature><DigestValue>");
                base64_encode(out, str_make((const char *)digest, size));
                buf_addz(out, "</DigestValue><SignatureValue>");
                base64_encode(out, str_make((const char *)value, size));
                buf_addz(out, "</SignatureValue><SecurityToken type=\"Symmetric\"");
                if (key_name) {
                        buf_addz(out, " name=\"");
                        xml_escape(out, str_of(key_name));
                        buf_char(out, '"');
                }
                buf_addz(out, "></SecurityToken></Signature>");
        }
        buf_addz(out, "</Envelope>\n");
}
