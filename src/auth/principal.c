#include "auth/principal.h"

#include <errno.h>
#include <pwd.h>

static const char *const role_names[] = {
        [ROLE_USER] = "user", [ROLE_OPERATOR] = "operator", [ROLE_ADMIN] = "admin"};

const char *role_name(enum role r)
{
        return role_names[r];
}

int role_parse(struct str text, enum role *ret)
{
        for (size_t i = 0; i < sizeof(role_names) / sizeof(role_names[0]); i++)
                if (str_eqz(text, role_names[i])) {
                        *ret = (enum role)i;
                        return 0;
                }
        return -EINVAL;
}

static bool valid(struct str s, size_t max, const char *others)
{
        if (s.n == 0 || s.n > max || s.p[0] == '-' || s.p[0] == '.')
                return false;
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];
                bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

                if (!plain && (c == '\0' || !strchr(others, c)))
                        return false;
        }
        return true;
}

static bool principal_name_valid(struct str name)
{
        return valid(name, PRINCIPAL_NAME_MAX, "._-+$@\\");
}

static bool principal_domain_valid(struct str domain)
{
        return valid(domain, PRINCIPAL_DOMAIN_MAX, ".-");
}

int principal_split(struct str text, struct str *ret_name, struct str *ret_domain)
{
        ptrdiff_t at = str_rfind(text, '@');
        struct str name, domain;

        if (at < 0)
                return -EINVAL;
        name = str_head(text, (size_t)at);
        domain = str_skip(text, (size_t)at + 1);
        if (!principal_name_valid(name) || !principal_domain_valid(domain))
                return -EINVAL;
        *ret_name = name;
        *ret_domain = domain;
        return 0;
}

int principal_print(struct buf *out, struct str name, struct str domain)
{
        if (!principal_name_valid(name) || !principal_domain_valid(domain))
                return -EINVAL;
        buf_str(out, name);
        buf_char(out, '@');
        buf_str(out, domain);
        return 0;
}

#define PASSWD_BYTES_MAX (1 << 20) /* of one user's entry in the user database */

/* Calls getpwuid_r with enough memory. Returns 0, -ENOENT or -errno. */
static int look_up(uid_t uid, struct passwd *ret, char **ret_room)
{
        struct passwd *found = NULL;
        int number = ERANGE;

        *ret_room = NULL;
        for (size_t size = 4096; number == ERANGE && size <= PASSWD_BYTES_MAX; size *= 2) {
                *ret_room = mem_realloc(*ret_room, size);
                number = getpwuid_r(uid, ret, *ret_room, size, &found);
        }
        if (found)
                return 0;
        /* "Not found" has several error numbers, see getpwuid(3). */
        return number == 0 || number == ESRCH || number == EBADF || number == EPERM ? -ENOENT : -number;
}

int principal_of_uid(struct buf *out, uid_t uid, struct str domain, struct err *err)
{
        MEM_CLEANUP char *room = NULL;
        struct passwd pw;
        int r = look_up(uid, &pw, &room);

        if (r)
                return err_set(err, r, "no user of this machine has the uid %lu: %s", (unsigned long)uid,
                               strerror(-r));
        r = principal_print(out, str_of(pw.pw_name), domain);
        return r ? err_set(err, r, "the user name \"%s\" has characters that Drover does not take",
                           pw.pw_name)
                 : 0;
}
