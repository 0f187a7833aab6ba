#include "server/config/sssrmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/format/doc.h"
#include "base/system/fs.h"

#define KEY_MIN 16u
#define KEY_MAX 4096u

void config_sssrmap_deinit(struct config_sssrmap *s)
{
        for (size_t i = 0; i < s->key_count; i++) {
                free(s->keys[i].name);
                free(s->keys[i].key);
                owners_deinit(&s->keys[i].actors);
        }
        free(s->keys);
        *s = (struct config_sssrmap){.on = false};
}

static int sssrmap_refuse_setting(const struct doc *d, struct err *err, const char *why)
{
        err_set(err, -EINVAL, "%s", why);
        return doc_where(err, -EINVAL, d);
}

/* The key is the file's first line, as in Gold's auth_key. */
static int read_key_file(const struct doc *d, char **ret, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        struct str path, rest, line = STR_NONE;
        int r = doc_text(d, &path, err);

        if (r != 0)
                return r;
        if (!str_starts(path, STR("/")))
                return sssrmap_refuse_setting(d, err, "the file of a key must be an absolute path");
        MEM_CLEANUP char *name = str_dupz(path);
        r = fs_read_secret(AT_FDCWD, name, KEY_MAX, &text, err);
        if (r != 0)
                return doc_where(err, r, d);
        rest = buf_view(&text);
        str_cut(&rest, '\n', &line);
        line = str_trim(line);
        if (line.n < KEY_MIN)
                return sssrmap_refuse_setting(
                        d, err, "the first line of the file must be a key of at least 16 bytes");
        *ret = str_dupz(line);
        return 0;
}

static int add_actor(void *arg, struct str word, struct err *err)
{
        struct buf *actors = arg;

        (void)err;
        buf_addz(actors, actors->n ? "," : "");
        buf_str(actors, word);
        return 0;
}

static int read_actors(const struct doc *d, struct owners *ret, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        int r = doc_words(d, add_actor, &text, err);

        if (r == 0 && (text.n == 0 || !owners_parse(buf_view(&text), ret)))
                r = sssrmap_refuse_setting(d, err, "actors must be users, as ann@lab or *@lab, or any");
        return r;
}

static int read_key(struct config_sssrmap *s, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"name", "file", "actors", "role", "digest", NULL};
        const struct doc *name = doc_get(d, "name"), *role = doc_get(d, "role"),
                         *digest = doc_get(d, "digest");
        struct config_sssrmap_key *k;
        struct str text;
        int r = doc_only(d, keys, err);

        if (r != 0)
                return r;
        if (!doc_get(d, "file") || !doc_get(d, "actors"))
                return sssrmap_refuse_setting(d, err, "a key needs 'file' and 'actors'");
        s->keys = mem_array(s->keys, s->key_count + 1, sizeof(*s->keys));
        k = &s->keys[s->key_count++];
        *k = (struct config_sssrmap_key){.name = NULL};
        r = name ? doc_text(name, &text, err) : 0;
        if (r == 0 && name)
                k->name = str_dupz(text);
        if (r == 0)
                r = read_key_file(doc_get(d, "file"), &k->key, err);
        if (r == 0)
                r = read_actors(doc_get(d, "actors"), &k->actors, err);
        if (r == 0 && role) {
                r = doc_text(role, &text, err);
                if (r == 0 && role_parse(text, &k->role) != 0)
                        r = sssrmap_refuse_setting(role, err, "role must be user, operator or admin");
        }
        if (r == 0 && digest) {
                r = doc_text(digest, &text, err);
                k->sha1 = r == 0 && str_eqz(text, "sha1");
                if (r == 0 && !k->sha1 && !str_eqz(text, "sha256"))
                        r = sssrmap_refuse_setting(digest, err,
                                                   "digest must be sha256, or sha1 to accept both");
        }
        return r;
}

static int check_names(const struct config_sssrmap *s, const struct doc *d, struct err *err)
{
        for (size_t i = 0; i < s->key_count; i++)
                for (size_t k = 0; k < i; k++)
                        if (str_eq(str_of(s->keys[i].name), str_of(s->keys[k].name)))
                                return sssrmap_refuse_setting(d, err, "two keys have the same name, or none");
        return 0;
}

int config_sssrmap_read(void *place, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"keys", NULL};
        struct config_sssrmap *s = place;
        const struct doc *list = doc_get(d, "keys");
        int r = doc_only(d, keys, err);

        config_sssrmap_deinit(s);
        s->on = true;
        if (r == 0 && list && (list->kind != DOC_LIST || list->count > SSSRMAP_KEYS_MAX))
                r = sssrmap_refuse_setting(list, err, "keys must be a list of at most 100 keys");
        for (const struct doc *one = r == 0 && list ? list->first : NULL; one && r == 0; one = one->next)
                r = read_key(s, one, err);
        return r ? r : check_names(s, d, err);
}

const struct config_sssrmap_key *config_sssrmap_key(const struct config_sssrmap *s, const char *name)
{
        for (size_t i = 0; i < s->key_count; i++)
                if (str_eq(str_of(s->keys[i].name), str_of(name)))
                        return &s->keys[i];
        return NULL;
}
