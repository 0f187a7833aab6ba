#include "cli/command/completion.h"

static void bash_options(struct buf *out, const struct option_row *rows)
{
        for (; rows->name; rows++) {
                buf_printf(out, " --%s", rows->name);
                if (rows->letter)
                        buf_printf(out, " -%c", rows->letter);
        }
}

static void add_bash(struct buf *out)
{
        buf_addz(out,
                 "# Completion of drover for bash. Made by `drover completion bash`: the table of commands "
                 "is the "
                 "source.\n"
                 "_drover()\n"
                 "{\n"
                 "        local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} options= words=\n"
                 "        COMPREPLY=()\n"
                 "        if ((COMP_CWORD == 1)); then\n"
                 "                mapfile -t COMPREPLY < <(compgen -W '");
        for (const struct command *c = commands; c->name; c++)
                buf_printf(out, "%s%s", c == commands ? "" : " ", c->name);
        buf_addz(out, "' -- \"$word\")\n"
                      "                return\n"
                      "        fi\n"
                      "        case $command in\n");
        for (const struct command *c = commands; c->name; c++) {
                buf_printf(out, "        %s)\n                options='", c->name);
                if (c->options)
                        bash_options(out, c->options);
                bash_options(out, options_common);
                buf_printf(out, "'\n                words='%s'\n                ;;\n", c->completes);
        }
        buf_addz(out, "        *)\n"
                      "                return\n"
                      "                ;;\n"
                      "        esac\n"
                      "        case $word in\n"
                      "        -*)\n"
                      "                words=$options\n"
                      "                ;;\n"
                      "        *)\n"
                      "                case $words in\n"
                      "                requests | jobs)\n"
                      "                        words=$(drover completion ids 2>/dev/null)\n"
                      "                        ;;\n"
                      "                files)\n"
                      "                        compopt -o default\n"
                      "                        return\n"
                      "                        ;;\n"
                      "                esac\n"
                      "                ;;\n"
                      "        esac\n"
                      "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                      "}\n"
                      "complete -F _drover drover\n");
}

/* ---- zsh */

/* Appends a text in single quotes of a shell; the special characters get a backslash. */
static void add_quoted(struct buf *out, const char *text, const char *special)
{
        for (; *text; text++) {
                if (strchr(special, *text))
                        buf_char(out, '\\');
                else if (*text == '\'')
                        buf_addz(out, "'\\'");
                buf_char(out, *text);
        }
}

static void zsh_options(struct buf *out, const struct option_row *rows)
{
        for (; rows->name; rows++) {
                buf_addz(out, " \\\n                        ");
                if (rows->letter)
                        buf_printf(out, "'*'{-%c,--%s%s}'[", rows->letter, rows->name,
                                   rows->value ? "=" : "");
                else
                        buf_printf(out, "'*--%s%s[", rows->name, rows->value ? "=" : "");
                add_quoted(out, rows->text, "[]:\\");
                buf_char(out, ']');
                if (rows->value) {
                        buf_char(out, ':');
                        add_quoted(out, rows->value, "[]:\\");
                        buf_addz(out, strcmp(rows->value, "FILE") == 0 || strcmp(rows->value, "DIR") == 0
                                              ? ":_files"
                                              : ": ");
                }
                buf_char(out, '\'');
        }
}

static void zsh_words(struct buf *out, const char *completes)
{
        if (strcmp(completes, "requests") == 0 || strcmp(completes, "jobs") == 0)
                buf_addz(out, "'*:id:($(drover completion ids 2>/dev/null))'");
        else if (strcmp(completes, "files") == 0)
                buf_addz(out, "'*:file:_files'");
        else
                buf_printf(out, "'*:word:(%s)'", completes);
}

static void add_zsh(struct buf *out)
{
        buf_addz(out, "#compdef drover\n"
                      "# Completion of drover for zsh. Made by `drover completion zsh`.\n"
                      "_drover()\n"
                      "{\n"
                      "        local -a commands\n"
                      "        if ((CURRENT == 2)); then\n"
                      "                commands=(\n");
        for (const struct command *c = commands; c->name; c++) {
                buf_printf(out, "                        '%s:", c->name);
                add_quoted(out, c->line, "");
                buf_addz(out, "'\n");
        }
        buf_addz(out, "                )\n"
                      "                _describe command commands\n"
                      "                return\n"
                      "        fi\n"
                      "        local command=${words[2]}\n"
                      "        shift words\n"
                      "        ((CURRENT--))\n"
                      "        case $command in\n");
        for (const struct command *c = commands; c->name; c++) {
                buf_printf(out, "        %s)\n                _arguments -s", c->name);
                if (c->options)
                        zsh_options(out, c->options);
                zsh_options(out, options_common);
                buf_addz(out, " \\\n                        ");
                zsh_words(out, c->completes);
                buf_addz(out, "\n                ;;\n");
        }
        buf_addz(out, "        esac\n"
                      "}\n"
                      "if [[ ${funcstack[1]} == _drover ]]; then\n"
                      "        _drover \"$@\"\n"
                      "else\n"
                      "        compdef _drover drover\n"
                      "fi\n");
}

/* ---- fish */

static void fish_options(struct buf *out, const char *command, const struct option_row *rows)
{
        for (; rows->name; rows++) {
                buf_printf(out, "complete -c drover -n '__fish_seen_subcommand_from %s' -l %s", command,
                           rows->name);
                if (rows->letter)
                        buf_printf(out, " -s %c", rows->letter);
                if (rows->value)
                        buf_addz(out, " -r");
                if (rows->value && (strcmp(rows->value, "FILE") == 0 || strcmp(rows->value, "DIR") == 0))
                        buf_addz(out, " -F");
                buf_addz(out, " -d '");
                add_quoted(out, rows->text, "\\'");
                buf_addz(out, "'\n");
        }
}

static void add_fish(struct buf *out)
{
        buf_addz(out, "# Completion of drover for fish. Made by `drover completion fish`.\n"
                      "complete -c drover -f\n");
        for (const struct command *c = commands; c->name; c++) {
                buf_printf(out, "complete -c drover -n __fish_use_subcommand -a %s -d '", c->name);
                add_quoted(out, c->line, "\\'");
                buf_addz(out, "'\n");
                if (c->options)
                        fish_options(out, c->name, c->options);
                fish_options(out, c->name, options_common);
                buf_printf(out, "complete -c drover -n '__fish_seen_subcommand_from %s' ", c->name);
                if (strcmp(c->completes, "requests") == 0 || strcmp(c->completes, "jobs") == 0)
                        buf_addz(out, "-a '(drover completion ids 2>/dev/null)'\n");
                else if (strcmp(c->completes, "files") == 0)
                        buf_addz(out, "-F\n");
                else
                        buf_printf(out, "-a '%s'\n", c->completes);
        }
}

bool completion_script(struct buf *out, struct str shell)
{
        if (str_eqz(shell, "bash"))
                add_bash(out);
        else if (str_eqz(shell, "zsh"))
                add_zsh(out);
        else if (str_eqz(shell, "fish"))
                add_fish(out);
        else
                return false;
        return true;
}
