#include "agent/config/users.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/job/owners.h"

#define OWN_USER "drover-agent" /* a user different from the server's, which could read the agent's key */

/* Splits an entry, which is kept in the shepherd's form: "owner user". */
static struct str owner_of(const char *entry, struct str *ret_user)
{
        struct str rest = str_of(entry), owner;

        str_cut(&rest, ' ', &owner);
        *ret_user = rest;
        return owner;
}

/* Returns why no job may run as this user; NULL: jobs may. */
static const char *unfit(const struct config *c, const struct passwd *pw, char room[64])
{
        gid_t groups[64];
        int n = 64;

        if (pw->pw_uid == 0)
                return "which is root: no job runs as uid 0";
        if (pw->pw_uid < c->min_uid) {
                snprintf(room, 64, "whose uid %u is below min_uid, %llu", (unsigned)pw->pw_uid,
                         (unsigned long long)c->min_uid);
                return room;
        }
        if (pw->pw_uid == c->agent_uid)
                return "which is the agent's own user";
        if (getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) < 0)
                return "who is in more than 64 groups";
        for (int i = 0; i < n; i++)
                if (groups[i] == 0)
                        return "who is in root's group";
        return NULL;
}

/* Finds the user that the map names, which may not exist. */
static bool map_says(const struct config *c, const char *owner, struct str *ret)
{
        const char *at = strchr(owner, '@');
        struct str all = {0}, user;

        if (!at || at == owner)
                return false;
        for (size_t i = 0; i < c->users.n; i++) {
                struct str o = owner_of(c->users.v[i], &user);

                if (str_eqz(o, owner)) {
                        *ret = user;
                        return true;
                }
                if (str_starts(o, STR("*@")) && str_eqz(str_skip(o, 1), at))
                        all = str_eqz(user, "*") ? str_make(owner, (size_t)(at - owner)) : user;
        }
        *ret = all;
        return all.n > 0;
}

int users_find(const struct config *c, const char *owner, struct users_entry *ret, struct err *err)
{
        struct str user;
        char room[64];

        if (!map_says(c, owner, &user))
                return err_set(err, -EPERM, "the agent's `users` name no local user for %s", owner);
        MEM_CLEANUP char *name = str_dupz(user);
        const struct passwd *pw = getpwnam(name);
        if (!pw || strlen(name) >= sizeof(ret->name) || strlen(pw->pw_dir) >= sizeof(ret->home))
                return err_set(err, -EPERM,
                               "the agent's machine has no user %s, as whom jobs of %s would run", name,
                               owner);
        const char *why = unfit(c, pw, room);
        if (why)
                return err_set(err, -EPERM, "jobs of %s would run as %s, %s", owner, name, why);
        snprintf(ret->name, sizeof(ret->name), "%s", name);
        snprintf(ret->home, sizeof(ret->home), "%s", *pw->pw_dir ? pw->pw_dir : "/");
        return 0;
}

char *users_owner(const struct config *c, uid_t uid)
{
        const struct passwd *pw = getpwuid(uid);

        for (size_t i = 0; pw && i < c->users.n; i++) {
                struct str user, owner = owner_of(c->users.v[i], &user);
                struct buf b = {0};

                if (str_starts(owner, STR("*@")))
                        buf_printf(&b, "%s" STR_FMT, pw->pw_name, STR_ARG(str_skip(owner, 1)));
                else
                        buf_str(&b, owner);
                struct users_entry e;
                if (users_find(c, buf_z(&b), &e, NULL) == 0 && !strcmp(e.name, pw->pw_name))
                        return buf_take(&b);
                buf_deinit(&b);
        }
        return NULL;
}

void users_print(const struct config *c, struct buf *out)
{
        buf_addz(out, "# made by drover-agent from `users` in its configuration\n");
        for (size_t i = 0; i < c->users.n; i++)
                buf_printf(out, "%s\n", c->users.v[i]);
}

static int check_line(const struct config *c, const char *line, struct err *err)
{
        struct str user, owner = owner_of(line, &user);
        char room[64];
        int at = str_rfind(owner, '@') > 0;

        if (!at || !user.n || memchr(user.p, ' ', user.n) ||
            (str_eqz(user, "*") && !str_starts(owner, STR("*@"))))
                return err_set(err, -EINVAL,
                               "users: '%s' is not understood; write name@domain: user, or "
                               "\"*@domain\": same name",
                               line);
        if (str_eqz(user, "*"))
                return 0;
        MEM_CLEANUP char *name = str_dupz(user);
        const struct passwd *pw = getpwnam(name);
        const char *why = pw ? unfit(c, pw, room) : NULL; /* a missing user may be added later */
        return why ? err_set(err, -EINVAL, "users: " STR_FMT " is mapped to %s, %s", STR_ARG(owner), name,
                             why)
                   : 0;
}

int users_check(struct config *c, struct err *err)
{
        if (geteuid() != 0)
                return err_set(err, -EINVAL, "`users` is for an agent that root starts");
        if (c->owners.n)
                return err_set(err, -EINVAL, "give either `users` or `owner`, not both");
        if (c->min_uid == 0)
                return err_set(err, -EINVAL, "min_uid is at least 1");
        const struct passwd *pw = getpwnam(c->user ? c->user : OWN_USER);
        if (!pw && !c->user)
                pw = getpwnam("nobody");
        if (!pw)
                return err_set(err, -EINVAL, "there is no user %s for the agent itself",
                               c->user ? c->user : OWN_USER " or nobody");
        if (pw->pw_uid == 0 || pw->pw_gid == 0)
                return err_set(err, -EINVAL, "the agent's own user cannot be root");
        c->agent_uid = pw->pw_uid;
        c->agent_gid = pw->pw_gid;
        for (size_t i = 0; i < c->users.n; i++) {
                struct str user, owner = owner_of(c->users.v[i], &user);
                int r = check_line(c, c->users.v[i], err);

                if (r < 0)
                        return r;
                c->owners.v[c->owners.n++] = str_dupz(owner);
        }
        return 0;
}

bool users_own(const struct config *c, const char *owner)
{
        const struct config_list *l = &c->owners;
        bool own = l->n == 0;

        for (size_t i = 0; i < l->n; i++) {
                struct str entry = str_of(l->v[i]);
                const struct owners one = {&entry, 1};

                if (owners_deny(&one, str_of(owner)).p)
                        return false;
                own |= str_eqz(entry, "any") || owners_allow(&one, str_of(owner));
        }
        return own;
}
