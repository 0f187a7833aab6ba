/* The map of owners to users. The file belongs to root: lines "owner user", "*@domain *" for the same name,
 * "#" comments. Whatever it says, nobody becomes uid 0, a user below min_uid, or the agent's own user. It is
 * read for each request: it is short, and a change then applies from the next job on. */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/shepherd/shepherd.h"

/* Returns whether the line maps this owner to this user. */
static bool line_says(const char *pattern, const char *as, const char *owner, const char *user)
{
        const char *at = strchr(owner, '@');

        if (!strncmp(pattern, "*@", 2)) {
                if (!at || strcmp(pattern + 1, at) != 0)
                        return false;
        } else if (strcmp(pattern, owner) != 0) {
                return false;
        }
        if (!strcmp(as, "*"))
                return at && strlen(user) == (size_t)(at - owner) && !strncmp(user, owner, strlen(user));
        return !strcmp(as, user);
}

static bool file_says(const char *path, const char *owner, const char *user)
{
        FILE *f = fopen(path, "re");
        struct stat st;

        if (!f)
                return false;
        bool found = false;
        if (fstat(fileno(f), &st) == 0 && st.st_uid == 0 && !(st.st_mode & 022)) {
                char line[1024], pattern[512], as[256];

                while (!found && fgets(line, sizeof(line), f))
                        found = line[0] != '#' && sscanf(line, "%511s %255s", pattern, as) == 2 &&
                                line_says(pattern, as, owner, user);
        }
        fclose(f);
        return found;
}

bool users_find(const struct shepherd *s, const char *owner, const char *user, struct user *ret)
{
        if (!s->users_path || !*user || !file_says(s->users_path, owner, user))
                return false;
        const struct passwd *pw = getpwnam(user);
        if (!pw || pw->pw_uid == 0 || pw->pw_uid < s->min_uid || pw->pw_gid == 0 ||
            (s->agent_uid != s->uid && pw->pw_uid == s->agent_uid)) /* such a job could read its key */
                return false;
        *ret = (struct user){.uid = pw->pw_uid, .gid = pw->pw_gid, .group_count = 64};
        if (getgrouplist(user, pw->pw_gid, ret->groups, &ret->group_count) < 0)
                return false;
        for (int i = 0; i < ret->group_count; i++)
                if (ret->groups[i] == 0)
                        return false;
        return true;
}
