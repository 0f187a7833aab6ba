/* The section "notify" of the server's settings. */
#include <errno.h>
#include <stdlib.h>

#include "base/format/doc.h"
#include "server/config/notify.h"

#define GATHER_MS  2000
#define RETRY_MS   10000
#define GIVE_UP_MS (24 * 3600000LL)
#define PER_HOUR   60
#define TIMEOUT_MS 10000

void config_notify_default(struct config_notify *n)
{
        *n = (struct config_notify){.gather_ms = GATHER_MS,
                                    .retry_ms = RETRY_MS,
                                    .give_up_ms = GIVE_UP_MS,
                                    .per_hour = PER_HOUR,
                                    .out.timeout_ms = TIMEOUT_MS};
}

void config_notify_deinit(struct config_notify *n)
{
        for (size_t i = 0; n->out.mailer[i]; i++)
                free(n->out.mailer[i]);
        free(n->out.from);
        free(n->domain);
        for (size_t i = 0; n->nodes[i]; i++)
                free(n->nodes[i]);
        *n = (struct config_notify){0};
}

static int notify_add_word(void *arg, struct str word, struct err *err)
{
        struct notify_config *c = arg;
        size_t n = 0;

        while (c->mailer[n])
                n++;
        if (n == NOTIFY_LIST_MAX)
                return err_set(err, -E2BIG, "more than %d words", NOTIFY_LIST_MAX);
        if (n == 0 && (word.n == 0 || word.p[0] != '/'))
                return err_set(err, -EINVAL,
                               "the mailer's path must begin with /, and its options be words of a "
                               "list: [/usr/sbin/sendmail, -i]");
        c->mailer[n] = str_dupz(word);
        return 0;
}

static int add_hook(void *arg, struct str word, struct err *err)
{
        struct notify_config *c = arg;

        if (c->hook_count == NOTIFY_LIST_MAX)
                return err_set(err, -E2BIG, "more than %d hosts", NOTIFY_LIST_MAX);
        return address_entry_parse(word, &c->hooks[c->hook_count++], err);
}

static int notify_read_time(const struct doc *d, int64_t *ret, struct err *err)
{
        uint64_t ms = 0;
        int r = d ? doc_duration(d, &ms, err) : 0;

        if (r == 0 && d)
                *ret = (int64_t)ms;
        return r;
}

static int notify_read_from(const struct doc *d, char **ret, struct err *err)
{
        struct str text;
        int r = doc_text(d, &text, err);

        if (r != 0)
                return r;
        r = address_mail_check(text, err);
        if (r != 0)
                return doc_where(err, r, d);
        free(*ret);
        *ret = str_dupz(text);
        return 0;
}

/* Reads the domain of a mail address, which is checked with a name before it. */
static int read_domain(const struct doc *d, char **ret, struct err *err)
{
        BUF_CLEANUP struct buf b = {0};
        struct str text;
        int r = doc_text(d, &text, err);

        if (r != 0)
                return r;
        buf_printf(&b, "x@" STR_FMT, STR_ARG(text));
        r = address_mail_check(buf_view(&b), err);
        if (r != 0) {
                err_set(err, r, "'" STR_FMT "' is not a domain of mail addresses", STR_ARG(text));
                return doc_where(err, r, d);
        }
        free(*ret);
        *ret = str_dupz(text);
        return 0;
}

static int notify_read_rate(const struct doc *d, uint32_t *ret, struct err *err)
{
        uint64_t n = 0;
        int r = doc_count(d, &n, err);

        if (r == 0 && (n == 0 || n > 1000000)) {
                r = err_set(err, -EINVAL, "per_hour must be between 1 and 1000000");
                return doc_where(err, r, d);
        }
        if (r == 0)
                *ret = (uint32_t)n;
        return r;
}

static int add_node_address(void *arg, struct str word, struct err *err)
{
        struct config_notify *n = arg;
        struct address_url url;
        size_t i = 0;
        int r;

        while (n->nodes[i])
                i++;
        if (i == NOTIFY_LIST_MAX)
                return err_set(err, -E2BIG, "more than %d addresses", NOTIFY_LIST_MAX);
        if (str_search(word, STR("://")) >= 0) {
                r = address_url_parse(word, &url, err);
                if (r == 0)
                        r = notify_hook_allowed(&n->out, &url, err);
        } else {
                r = address_mail_check(word, err);
                if (r == 0 && !n->out.mailer[0])
                        r = err_set(err, -EINVAL, "an address of mail needs a mailer");
        }
        if (r == 0)
                n->nodes[i] = str_dupz(word);
        return r;
}

int config_notify_read(void *place, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"mailer", "from",    "domain",   "hooks", "timeout", "gather",
                                           "retry",  "give_up", "per_hour", "nodes", NULL};
        struct config_notify *n = place;
        const struct doc *at;
        int r = doc_only(d, keys, err);

        config_notify_deinit(n);
        config_notify_default(n);
        if (r == 0 && (at = doc_get(d, "mailer")))
                r = doc_words(at, notify_add_word, &n->out, err);
        if (r == 0 && (at = doc_get(d, "hooks")))
                r = doc_words(at, add_hook, &n->out, err);
        if (r == 0 && (at = doc_get(d, "from")))
                r = notify_read_from(at, &n->out.from, err);
        if (r == 0 && (at = doc_get(d, "domain")))
                r = read_domain(at, &n->domain, err);
        if (r == 0 && (at = doc_get(d, "per_hour")))
                r = notify_read_rate(at, &n->per_hour, err);
        if (r == 0)
                r = notify_read_time(doc_get(d, "timeout"), &n->out.timeout_ms, err);
        if (r == 0)
                r = notify_read_time(doc_get(d, "gather"), &n->gather_ms, err);
        if (r == 0)
                r = notify_read_time(doc_get(d, "retry"), &n->retry_ms, err);
        if (r == 0)
                r = notify_read_time(doc_get(d, "give_up"), &n->give_up_ms, err);
        if (r == 0 && n->out.timeout_ms == 0)
                r = err_set(err, -EINVAL, "%s:%u: the timeout must be longer than that", d->file, d->line);
        if (r == 0 && n->out.mailer[0] && !n->out.from)
                r = err_set(err, -EINVAL, "%s:%u: a mailer needs an address in from", d->file, d->line);
        if (r == 0 && (at = doc_get(d, "nodes"))) /* the mailer and the hosts are known now */
                r = doc_words(at, add_node_address, n, err);
        return r;
}
