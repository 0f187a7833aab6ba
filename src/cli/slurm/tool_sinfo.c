/* sinfo: agents and their queues (GET /v1/agents) as nodes and partitions. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/client/api.h"
#include "cli/slurm/document.h"
#include "cli/slurm/node_json.h"
#include "cli/slurm/nodes.h"
#include "cli/slurm/record_json.h"
#include "cli/slurm/select.h"
#include "cli/slurm/slurm.h"

/* Nodes that one line stands for. */
struct row {
        const struct node *nodes[NODES_MAX];
        size_t count;
        const char *partition;
};

static void sum(const struct row *r, int64_t cpus[4], int64_t nodes[4])
{
        for (size_t i = 0; i < r->count; i++) {
                const struct node *n = r->nodes[i];
                bool out = n->state >= NODE_DRAINED;

                cpus[0] += n->cpus - n->free_cpus;
                cpus[out ? 2 : 1] += n->free_cpus;
                cpus[3] += n->cpus;
                nodes[out ? 2 : n->state == NODE_IDLE ? 1 : 0]++;
                nodes[3]++;
        }
}

static void sinfo_add_names(const struct row *r, struct buf *out)
{
        for (size_t i = 0; i < r->count; i++)
                buf_printf(out, "%s%s", i ? "," : "", r->nodes[i]->name);
}

/* The least one, with a plus sign when others are greater. */
static void add_least(const struct row *r, size_t at, struct buf *out)
{
        int64_t least = INT64_MAX, most = 0;

        for (size_t i = 0; i < r->count; i++) {
                int64_t v = *(const int64_t *)(const void *)((const char *)r->nodes[i] + at);

                least = v < least ? v : least;
                most = v > most ? v : most;
        }
        buf_printf(out, "%lld%s", (long long)(r->count ? least : 0), most > least && r->count ? "+" : "");
}

static const struct {
        char letter;
        const char *head;
} heads[] = {{'P', "PARTITION"},
             {'R', "PARTITION"},
             {'a', "AVAIL"},
             {'l', "TIMELIMIT"},
             {'L', "DEFAULTTIME"},
             {'D', "NODES"},
             {'t', "STATE"},
             {'T', "STATE"},
             {'N', "NODELIST"},
             {'n', "HOSTNAMES"},
             {'c', "CPUS"},
             {'m', "MEMORY"},
             {'e', "FREE_MEM"},
             {'d', "TMP_DISK"},
             {'G', "GRES"},
             {'C', "CPUS(A/I/O/T)"},
             {'F', "NODES(A/I/O/T)"},
             {'A', "NODES(A/I)"},
             {'z', "S:C:T"},
             {'O', "CPU_LOAD"},
             {'f', "AVAIL_FEATURES"},
             {'b', "ACTIVE_FEATURES"},
             {'E', "REASON"},
             {'h', "OVERSUBSCRIBE"},
             {'s', "JOB_SIZE"},
             {'w', "WEIGHT"},
             {'g', "GROUPS"},
             {'r', "ROOT"},
             {'o', "NODE_ADDR"},
             {'v', "VERSION"},
             {'p', "PRIO_TIER"},
             {'I', "PRIO_JOB_FACTOR"},
             {'B', "MAX_CPUS_PER_NODE"},
             {'S', "ALLOCNODES"},
             {'H', "TIMESTAMP"},
             {'u', "USER"},
             {'U', "USER"},
             {'X', "SOCKETS"},
             {'Y', "CORES"},
             {'Z', "THREADS"},
             {'M', "PREEMPT_MODE"},
             {'V', "CLUSTER"}};
#define HEADS (sizeof(heads) / sizeof(heads[0]))

static void add_cell(const struct row *r, char letter, bool only_one, struct buf *out)
{
        static const struct {
                char letter;
                const char *text;
        } fixed[] = {{'a', "up"},      {'l', "infinite"}, {'L', "n/a"},       {'h', "NO"},
                     {'s', "1"},       {'w', "1"},        {'g', "all"},       {'r', "no"},
                     {'p', "1"},       {'I', "1"},        {'B', "UNLIMITED"}, {'S', "all"},
                     {'H', "Unknown"}, {'u', "Unknown"},  {'U', "Unknown"},   {'Y', "1"},
                     {'Z', "1"},       {'M', "OFF"},      {'V', "N/A"}};
        const struct node *first = r->count ? r->nodes[0] : NULL;
        int64_t cpus[4] = {0}, nodes[4] = {0};

        sum(r, cpus, nodes);
        for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
                if (fixed[i].letter == letter)
                        buf_addz(out, fixed[i].text);
        switch (letter) {
        case 'P': buf_printf(out, "%s%s", r->partition, only_one ? "*" : ""); break;
        case 'R': buf_addz(out, r->partition); break;
        case 'D': buf_printf(out, "%zu", r->count); break;
        case 't': buf_addz(out, first ? node_state_short(first->state) : "n/a"); break;
        case 'T': buf_addz(out, first ? node_state_name(first->state) : "unknown"); break;
        case 'N': sinfo_add_names(r, out); break;
        case 'n':
        case 'o':
                for (size_t i = 0; i < r->count; i++)
                        buf_printf(out, "%s%s", i ? "," : "", r->nodes[i]->host);
                break;
        case 'c':
        case 'X': add_least(r, offsetof(struct node, cpus), out); break;
        case 'm': add_least(r, offsetof(struct node, memory_mib), out); break;
        case 'e': add_least(r, offsetof(struct node, free_memory_mib), out); break;
        case 'd': add_least(r, offsetof(struct node, disk_mib), out); break;
        case 'z':
                add_least(r, offsetof(struct node, cpus), out);
                buf_addz(out, ":1:1");
                break;
        case 'G':
                if (first && first->gpus)
                        buf_printf(out, "gpu:%lld", (long long)first->gpus);
                else
                        buf_addz(out, "(null)");
                break;
        case 'C':
                buf_printf(out, "%lld/%lld/%lld/%lld", (long long)cpus[0], (long long)cpus[1],
                           (long long)cpus[2], (long long)cpus[3]);
                break;
        case 'F':
                buf_printf(out, "%lld/%lld/%lld/%lld", (long long)nodes[0], (long long)nodes[1],
                           (long long)nodes[2], (long long)nodes[3]);
                break;
        case 'A': buf_printf(out, "%lld/%lld", (long long)nodes[0], (long long)nodes[1]); break;
        case 'O': buf_printf(out, "%.2f", first ? first->load : 0); break;
        case 'f':
        case 'b': buf_addz(out, first && first->features ? first->features : "(null)"); break;
        case 'E': buf_addz(out, first && first->reason ? first->reason : "none"); break;
        case 'v': buf_addz(out, first && first->program ? first->program : "n/a"); break;
        default: break;
        }
}

/* Writes one line; r NULL: the headings. Returns a letter of the format that is not known, or 0. */
static char sinfo_write_line(const struct row *r, struct str format, bool only_one, struct buf *out)
{
        for (; format.n; format = str_skip(format, 1)) {
                BUF_CLEANUP struct buf cell = {0};
                unsigned width = 0;
                bool right = false;
                size_t h = 0;

                if (format.p[0] != '%') {
                        buf_char(out, format.p[0]);
                        continue;
                }
                format = str_skip(format, 1);
                if (format.n && format.p[0] == '.') {
                        right = true;
                        format = str_skip(format, 1);
                }
                if (format.n && format.p[0] == '#')
                        format = str_skip(format, 1);
                for (; format.n && isdigit((unsigned char)format.p[0]) && width < 1000;
                     format = str_skip(format, 1))
                        width = width * 10 + (unsigned)(format.p[0] - '0');
                while (h < HEADS && (format.n == 0 || heads[h].letter != format.p[0]))
                        h++;
                if (h == HEADS)
                        return format.n ? format.p[0] : '%';
                if (r)
                        add_cell(r, format.p[0], only_one, &cell);
                else
                        buf_addz(&cell, heads[h].head);
                if (width && cell.n > width)
                        buf_truncate(&cell, width);
                buf_printf(out, right ? "%*s" : "%-*s", (int)width, buf_z(&cell));
        }
        buf_char(out, '\n');
        return 0;
}

static bool takes(const struct words *w, const struct node *n, const char *partition)
{
        const char *states = words_text(w, "states");

        if (words_has(w, "partition") && !select_in_list(words_text(w, "partition"), str_of(partition)))
                return false;
        if (words_has(w, "nodes") && !select_in_list(words_text(w, "nodes"), str_of(n->name)))
                return false;
        if (words_has(w, "dead") && n->state != NODE_DOWN)
                return false;
        if (words_has(w, "responding") && n->state == NODE_DOWN)
                return false;
        if (words_has(w, "list-reasons") && !n->reason)
                return false;
        return !states || str_ieqz(str_of(states), "all") || node_state_in(n->state, states);
}

/* The widest of what %P and %N may be, for the default listing. */
static size_t widest(const struct nodes *all, bool nodes)
{
        size_t n = nodes ? 8 : 9;

        for (size_t i = 0; i < all->count; i++) {
                if (nodes && strlen(all->items[i].name) > n)
                        n = strlen(all->items[i].name);
                for (size_t k = 0; !nodes && k < all->items[i].partition_count; k++)
                        if (strlen(all->items[i].partitions[k]) > n)
                                n = strlen(all->items[i].partitions[k]);
        }
        return n;
}

static void choose_format(const struct words *w, const struct nodes *all, struct buf *format)
{
        const char *given = words_text(w, "format");
        int p = (int)widest(all, false), n = (int)widest(all, true);

        if (given)
                buf_addz(format, given);
        else if (words_has(w, "list-reasons"))
                buf_addz(format, "%20E %9u %19H %N");
        else if (words_has(w, "summarize"))
                buf_printf(format, "%%%dP %%.5a %%.10l %%.16F %%N", p);
        else if (words_has(w, "Node") && words_has(w, "long"))
                buf_printf(format, "%%%dN %%.6D %%.%dP %%.11T %%.4c %%.8z %%.6m %%.8d %%.6w %%.8f %%20E", n,
                           p);
        else if (words_has(w, "Node"))
                buf_printf(format, "%%%dN %%.6D %%.%dP %%6t", n, p);
        else if (words_has(w, "long"))
                buf_printf(format, "%%%dP %%.5a %%.10l %%.10s %%.4r %%.8h %%.10g %%.6D %%.11T %%N", p);
        else
                buf_printf(format, "%%%dP %%.5a %%.10l %%.6D %%.6t %%N", p);
}

/* Lines are nodes of one partition and one state; with --Node, single nodes; with --summarize, all of it. */
static char write_partition(const struct words *w, const struct nodes *all, const char *partition,
                            bool only_one, struct str format, struct buf *out)
{
        bool by_node = words_has(w, "Node"),
             whole = words_has(w, "summarize") ||
                     (str_search(format, STR("t")) < 0 && str_search(format, STR("T")) < 0 &&
                      str_search(format, STR("N")) < 0 && str_search(format, STR("E")) < 0);
        bool any = false;
        char bad = 0;

        for (enum node_state state = 0; state < NODE_STATES && !bad; state++) {
                MEM_CLEANUP struct row *row = mem_zalloc(sizeof(*row));

                row->partition = partition;
                for (size_t i = 0; i < all->count && !bad; i++) {
                        const struct node *n = &all->items[i];

                        if ((n->state != state && !whole) || !node_has(n, partition) ||
                            !takes(w, n, partition))
                                continue;
                        row->nodes[row->count++] = n;
                        any = true;
                        if (by_node) {
                                bad = sinfo_write_line(row, format, only_one, out);
                                row->count = 0;
                        }
                }
                if (row->count && !bad)
                        bad = sinfo_write_line(row, format, only_one, out);
                if (whole)
                        break;
        }
        (void)any;
        return bad;
}

/* The document lists nodes, each with its partitions, as Slurm's does: options about lines do not change it.
 */
static void sinfo_print_json(const struct words *w, const struct nodes *all)
{
        struct document document = {.list = "nodes"};
        BUF_CLEANUP struct buf out = {0};

        for (size_t i = 0; i < all->count; i++) {
                const struct node *n = &all->items[i];
                bool taken = false;

                for (size_t k = 0; k < n->partition_count && !taken; k++)
                        taken = takes(w, n, n->partitions[k]);
                if (!taken)
                        continue;
                document_item(&document, &out);
                node_json(n, &out);
        }
        document_end(&document, &out);
        cli_print(&out);
}

static int sinfo(struct cli *cli, const struct words *w)
{
        NODES_CLEANUP struct nodes all = {0};
        BUF_CLEANUP struct buf format = {0}, out = {0};
        int code = nodes_read(cli, &all);
        char bad = 0;

        if (code != 0)
                return code;
        if (words_has(w, "json")) {
                sinfo_print_json(w, &all);
                return 0;
        }
        choose_format(w, &all, &format);
        if (words_has(w, "long") && !words_has(w, "noheader"))
                record_print_now(cli);
        if (!words_has(w, "noheader"))
                bad = sinfo_write_line(NULL, buf_view(&format), false, &out);
        for (size_t i = 0; i < all.partition_count && !bad; i++)
                bad = write_partition(w, &all, all.partitions[i], all.partition_count == 1, buf_view(&format),
                                      &out);
        if (bad)
                return slurm_error(1, "Invalid node format specification: %c", bad);
        cli_print(&out);
        return 0;
}

static const struct words_row rows[] = {
        {"Node", 'N', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "A line for each node and queue."},
        {"dead", 'd', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Only agents that are away."},
        {"format", 'o', WORDS_VALUE, WORDS_ACTS, "FORMAT", "SINFO_FORMAT",
         "Columns: `%P %.5a %D %t %N %C %m %G`."},
        {"list-reasons", 'R', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Why nodes are drained."},
        {"long", 'l', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "More columns."},
        {"nodes", 'n', WORDS_VALUE, WORDS_ACTS, "NODES", NULL, "Only these agents."},
        {"noheader", 'h', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "No headings."},
        {"partition", 'p', WORDS_VALUE, WORDS_ACTS, "QUEUES", "SINFO_PARTITION", "Only these queues."},
        {"responding", 'r', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Only agents that are connected."},
        {"states", 't', WORDS_VALUE, WORDS_ACTS, "STATES", NULL,
         "Only nodes of these states: `idle,mix,drain,down`."},
        {"summarize", 's', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "A line for each queue."},
        {"all", 'a', WORDS_PLAIN, WORDS_SO, NULL, "SINFO_ALL", "No queue is hidden."},
        {"exact", 'e', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Nodes of one state are one line."},
        {"hide", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "The default."},
        {"local", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one cluster."},
        {"federation", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one cluster."},
        {"noconvert", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "Memory is in MiB."},
        {"sort", 'S', WORDS_VALUE, WORDS_SO, "FIELDS", "SINFO_SORT", "Lines are in the order of queues."},
        {"verbose", 'v', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Nothing more is told."},
        {"Format", 'O', WORDS_VALUE, WORDS_REFUSED, "NAMES", NULL, "use --format."},
        {"clusters", 'M', WORDS_VALUE, WORDS_REFUSED, "NAMES", NULL,
         "$DROVER_DIR or $DROVER_SERVER name the server."},
        {"iterate", 'i', WORDS_VALUE, WORDS_REFUSED, "SECONDS", NULL, "use watch(1)."},
        {"json", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Print JSON: a list of nodes."},
        {"yaml", 0, WORDS_PLAIN, WORDS_REFUSED, NULL, NULL, "use --json."},
        {"reservation", 'T', WORDS_PLAIN, WORDS_REFUSED, NULL, NULL,
         "drover reserve list shows reservations."},
        {0},
};
const struct words_tool slurm_sinfo = {
        .name = "sinfo",
        .usage = "[OPTIONS]",
        .line = "Lists queues of agents and the agents that have them. One queue that all have is marked "
                "with a star.",
        .rows = rows,
        .run = sinfo,
};
