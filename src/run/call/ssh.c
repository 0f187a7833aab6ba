#include "run/call/ssh.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "run/call/command.h"

#define SOCKET_MAX 85 /* of 107 bytes, since ssh appends a suffix while it makes the socket */

int ssh_check(const struct ssh *s, struct err *err)
{
        if (!*s->host || s->host[0] == '-' || strpbrk(s->host, " \t\n'\""))
                return err_set(err, -EINVAL, "ssh is the name of a host, or user@host, not '%.60s'", s->host);
        if (strlen(s->socket) > SOCKET_MAX || strpbrk(s->socket, "% \t\n\"'"))
                return err_set(
                        err, -EINVAL,
                        "the socket %.200s of the connection has more than %d bytes in its path, or signs "
                        "that ssh has a meaning for: give the agent another folder",
                        s->socket, SOCKET_MAX);
        return 0;
}

static void add_options(const struct ssh *s, struct args *ret)
{
        BUF_CLEANUP struct buf path = {0};

        args_add(ret, STR("ssh"));
        if (s->config) {
                args_add(ret, STR("-F"));
                args_add(ret, str_of(s->config));
        }
        buf_printf(&path, "-oControlPath=%s", s->socket);
        args_add(ret, buf_view(&path));
}

void ssh_words(const struct ssh *s, const char *script, const struct args *words, struct args *ret)
{
        static const char *const options[] = {
                "-T",
                "-oBatchMode=yes",
                "-oControlMaster=auto",
                "-oControlPersist=120",
                "-oConnectTimeout=20",
                "-oServerAliveInterval=15",
                "-oServerAliveCountMax=3",
                "-oForwardAgent=no",
                "-oForwardX11=no",
                "-oClearAllForwardings=yes",
                "-oLogLevel=ERROR",
        };
        BUF_CLEANUP struct buf text = {0};

        add_options(s, ret);
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
                args_add(ret, str_of(options[i]));
        args_add(ret, STR("--"));
        args_add(ret, str_of(s->host));
        buf_addz(&text, "exec /bin/sh -c ");
        command_quote(&text, str_of(script));
        for (size_t i = 0; i < words->n; i++) {
                buf_char(&text, ' ');
                command_quote(&text, str_of(words->v[i]));
        }
        args_add(ret, buf_view(&text));
}

void ssh_end_words(const struct ssh *s, struct args *ret)
{
        add_options(s, ret);
        args_add(ret, STR("-Oexit"));
        args_add(ret, STR("--"));
        args_add(ret, str_of(s->host));
}
