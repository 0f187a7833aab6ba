#include "base/job/file_key.h"

#include "base/format/url.h"

void file_asker_who(struct str owner, struct str first_server, struct str first_owner, struct buf *out)
{
        url_escape(out, owner);
        if (first_server.n == 0)
                return;
        buf_char(out, ' ');
        url_escape(out, first_server);
        buf_char(out, ' ');
        url_escape(out, first_owner);
}

static bool has_user(struct str url)
{
        ptrdiff_t at = str_search(url, STR("://"));
        struct str rest = at < 0 ? STR_NONE : str_skip(url, (size_t)at + 3), authority = STR_NONE;

        str_cut(&rest, '/', &authority);
        return str_find(authority, '@') >= 0;
}

/* ---- credentials */

/* Returns the length of the credential's longest prefix that matches the URL; 0: none does. */
static size_t credential_fits(const struct file_credential *c, struct str canonical)
{
        struct str rest = c->urls, prefix;
        size_t best = 0;

        while (rest.n && str_cut(&rest, ' ', &prefix))
                if (prefix.n > best && file_is_below(canonical, prefix))
                        best = prefix.n;
        if (c->urls.n == 0 && c->s3 && str_starts(canonical, STR("s3://")))
                return 1;
        return best;
}

size_t file_asker_shows(const struct file_asker *r, struct str url)
{
        BUF_CLEANUP struct buf canonical = {0};
        size_t best = r->credential_count, length = 0;

        if (r->credential_count == 0 || !file_url(url, NULL, 0, &canonical, NULL))
                return r->credential_count;
        for (size_t i = 0; i < r->credential_count; i++) {
                size_t n = credential_fits(&r->credentials[i], buf_view(&canonical));

                if (n > length) {
                        best = i;
                        length = n;
                }
        }
        return best;
}

bool file_other_way(struct str url, const struct store_urls *store, size_t n, struct buf *out)
{
        BUF_CLEANUP struct buf name = {0}, own = {0};
        struct str rest;
        size_t found;

        if (has_user(url) || !file_url(url, store, 1, &name, &found) || found == FILE_STORE_NONE ||
            !file_url(url, NULL, 0, &own, NULL))
                return false;
        rest = str_skip(buf_view(&name), store->prefixes[0].n);
        for (size_t i = 0; i < store->prefix_count; i++) {
                if (str_starts(buf_view(&own), store->prefixes[i]))
                        continue;
                if (n-- == 0) {
                        buf_str(out, store->prefixes[i]);
                        buf_str(out, rest);
                        return true;
                }
        }
        return false;
}

bool file_own_way(struct str url, const struct store_urls *store, struct buf *out)
{
        BUF_CLEANUP struct buf own = {0};
        struct store_urls way = {.prefix_count = 1};

        if (has_user(url) || !file_url(url, NULL, 0, &own, NULL))
                return false;
        for (size_t i = 0; i < store->prefix_count; i++)
                if (file_is_below(buf_view(&own), store->prefixes[i]) &&
                    (!way.prefixes || store->prefixes[i].n > way.prefixes->n))
                        way.prefixes = &store->prefixes[i];
        return way.prefixes && file_url(url, &way, 1, out, NULL);
}

/* Returns the credential that is shown to the URL, or to the first of its alternative URLs that has one:
 * which of them will be fetched is not known yet. */
static size_t shown_on_any_way(const struct file_asker *r, struct str url, const struct store_urls *store)
{
        size_t found = file_asker_shows(r, url);

        for (size_t n = 0; store && found == r->credential_count; n++) {
                BUF_CLEANUP struct buf other = {0};

                if (!file_other_way(url, store, n, &other))
                        break;
                found = file_asker_shows(r, buf_view(&other));
        }
        return found;
}

/* ---- keys */

bool file_key_is_common(struct str key)
{
        return str_find(key, '\n') < 0;
}

bool file_key(struct str url, const struct file_asker *r, const struct store_urls *stores, size_t count,
              struct buf *out, size_t *ret_store)
{
        BUF_CLEANUP struct buf name = {0};
        bool by_user = has_user(url);
        size_t store, shown = r->credential_count;

        if (!file_url(url, stores, count, &name, &store))
                return false;
        if (r->credential_count)
                shown = shown_on_any_way(r, url, store == FILE_STORE_NONE ? NULL : &stores[store]);
        if (shown < r->credential_count || store == FILE_STORE_NONE || by_user) {
                buf_str(out, r->who);
                if (shown < r->credential_count) {
                        buf_char(out, '\t');
                        buf_str(out, r->credentials[shown].name);
                }
                buf_char(out, '\n');
        }
        buf_str(out, by_user ? url : buf_view(&name));
        if (ret_store)
                *ret_store = store;
        return true;
}
