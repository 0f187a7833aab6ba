/* scontrol: jobs, nodes and partitions as blocks of KEY=VALUE, and what is done to jobs. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/format/json.h"
#include "classad/print.h"
#include "cli/client/api.h"
#include "cli/slurm/actions.h"
#include "cli/slurm/document.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/hosts.h"
#include "cli/slurm/moment.h"
#include "cli/slurm/node_json.h"
#include "cli/slurm/nodes.h"
#include "cli/slurm/record_json.h"
#include "cli/slurm/select.h"
#include "cli/slurm/slurm.h"

static int no_such_job(const char *word)
{
        fflush(stdout);
        fprintf(stderr, "Invalid job id specified for job %s\n", word);
        return 1;
}

/* ---- show job */

struct showing {
        const struct words *w;
        struct document document; /* with --json */
        struct buf out;
        size_t count;
};

/* Ends a line of the block; with --oneliner the block is one line. */
static void end_line(struct showing *s)
{
        buf_addz(&s->out, words_has(s->w, "oneliner") ? " " : "\n   ");
}

static void add_date(struct buf *out, const char *key, int64_t at_s, const char *otherwise)
{
        buf_printf(out, "%s=", key);
        moment_date(out, at_s, otherwise);
}

static void scontrol_add_text(struct buf *out, const char *key, const struct record *r, const char *attribute,
                              const char *otherwise)
{
        buf_printf(out, "%s=", key);
        record_text(r, attribute, otherwise, out);
}

static void scontrol_add_names(struct showing *s, const struct record *r)
{
        BUF_CLEANUP struct buf owner = {0};
        const struct passwd *who;
        struct buf *out = &s->out;

        buf_printf(out, "JobId=%lld ", (long long)record_number(r));
        if (r->task >= 0)
                buf_printf(out, "ArrayJobId=%lld ArrayTaskId=%lld ", (long long)r->request,
                           (long long)r->task);
        if (r->task >= 0 && view_there(view_get(r->ad, "JobMaterializeLimit")))
                buf_printf(out, "ArrayTaskThrottle=%lld ",
                           (long long)view_integer(view_get(r->ad, "JobMaterializeLimit"), 0));
        buf_addz(out, "JobName=");
        record_name(r, out);
        end_line(s);
        record_owner(r, &owner);
        who = getpwnam(buf_z(&owner));
        buf_printf(out, "UserId=%s(%lld) GroupId=%s(%lld) MCS_label=N/A", buf_z(&owner),
                   (long long)record_uid(r), who ? buf_z(&owner) : "nogroup",
                   who ? (long long)who->pw_gid : 4294967294ll);
        end_line(s);
        buf_printf(out, "Priority=%lld Nice=%lld ", (long long)view_integer(view_get(r->ad, "JobPrio"), 0),
                   (long long)-view_integer(view_get(r->ad, "JobPrio"), 0));
        scontrol_add_text(out, "Account", r, "AcctGroup", "(null)");
        scontrol_add_text(out, " QOS", r, "QOS", "(null)");
        end_line(s);
}

static void add_state(struct showing *s, const struct record *r)
{
        struct buf *out = &s->out;
        int64_t starts = view_integer(view_get(r->job, "starts"), 0);

        buf_printf(out, "JobState=%s Reason=%s ", record_state_name(r->state), r->reason);
        if (strcmp(r->reason, "Dependency") == 0)
                scontrol_add_text(out, "Dependency", r, "SlurmDependency", "(null)");
        else
                buf_addz(out, "Dependency=(null)");
        end_line(s);
        buf_printf(out, "Requeue=%d Restarts=%lld BatchFlag=1 Reboot=0 ExitCode=%lld:%lld",
                   view_integer(view_get(r->ad, "SlurmRequeue"), 1) != 0,
                   (long long)(starts > 1 ? starts - 1 : 0), (long long)r->exit_code,
                   (long long)r->exit_signal);
        end_line(s);
        buf_addz(out, "RunTime=");
        moment_long(out, r->elapsed_s);
        buf_addz(out, " TimeLimit=");
        if (r->limit_s)
                moment_long(out, r->limit_s);
        else
                buf_addz(out, "UNLIMITED");
        buf_addz(out, " TimeMin=N/A");
        end_line(s);
}

static void scontrol_add_times(struct showing *s, const struct record *r)
{
        struct buf *out = &s->out;
        int64_t begin_s = view_integer(view_get(r->ad, "DeferralTime"), 0),
                end_s = record_is_over(r)            ? r->ended_s
                        : r->started_s && r->limit_s ? r->started_s + r->limit_s
                                                     : 0;

        add_date(out, "SubmitTime", r->submitted_s, "Unknown");
        add_date(out, " EligibleTime", begin_s ? begin_s : r->submitted_s, "Unknown");
        end_line(s);
        add_date(out, "AccrueTime", r->submitted_s, "Unknown");
        end_line(s);
        add_date(out, "StartTime", r->started_s ? r->started_s : begin_s > r->now_s ? begin_s : 0, "Unknown");
        add_date(out, " EndTime", end_s, "Unknown");
        add_date(out, " Deadline", view_integer(view_get(r->ad, "SlurmDeadline"), 0), "N/A");
        end_line(s);
        buf_printf(out, "SuspendTime=None SecsPreSuspend=0 LastSchedEval=");
        moment_date(out, r->now_s, "Unknown");
        buf_addz(out, " Scheduler=Main");
        end_line(s);
}

static void add_place(struct showing *s, const struct record *r)
{
        struct buf *out = &s->out;
        int64_t mib = view_integer(view_get(r->ad, "RequestMemory"), 0),
                gpus = view_integer(view_get(r->ad, "RequestGPUs"), 0),
                each = view_integer(view_get(r->ad, "SlurmMemoryPerCpu"), 0);
        BUF_CLEANUP struct buf node = {0};

        record_node(r, &node);
        buf_addz(out, "Partition=");
        record_partition(r, out);
        buf_addz(out, " AllocNode:Sid=N/A:0");
        end_line(s);
        buf_addz(out, "ReqNodeList=(null) ExcNodeList=(null)");
        end_line(s);
        buf_printf(out, "NodeList=%s", buf_z(&node));
        end_line(s);
        if (node.n) {
                buf_printf(out, "BatchHost=%s", buf_z(&node));
                end_line(s);
        }
        buf_printf(out, "NumNodes=1 NumCPUs=%lld NumTasks=%lld CPUs/Task=%lld ReqB:S:C:T=0:0:*:*",
                   (long long)r->cpus, (long long)r->tasks,
                   (long long)(r->tasks > 0 ? r->cpus / r->tasks : r->cpus));
        end_line(s);
        buf_printf(out, "TRES=cpu=%lld", (long long)r->cpus);
        if (mib)
                buf_printf(out, ",mem=%lldM", (long long)mib);
        buf_addz(out, ",node=1");
        if (gpus)
                buf_printf(out, ",gres/gpu=%lld", (long long)gpus);
        end_line(s);
        buf_addz(out, "Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*");
        end_line(s);
        buf_printf(out, "MinCPUsNode=%lld %s=%lld%s MinTmpDiskNode=%lld", (long long)r->cpus,
                   each ? "MinMemoryCPU" : "MinMemoryNode", (long long)(each ? each : mib),
                   each || mib ? "M" : "",
                   (long long)(view_integer(view_get(r->ad, "RequestDisk"), 0) / 1024));
        end_line(s);
        buf_addz(out, "Features=(null) DelayBoot=00:00:00");
        end_line(s);
        buf_addz(out, "OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)");
        end_line(s);
}

static void add_files(struct showing *s, const struct record *r)
{
        struct buf *out = &s->out;

        scontrol_add_text(out, "Command", r, "SlurmCommand", "(null)");
        end_line(s);
        scontrol_add_text(out, "WorkDir", r, "Iwd", "");
        end_line(s);
        if (view_there(view_get(r->ad, "SlurmComment"))) {
                scontrol_add_text(out, "Comment", r, "SlurmComment", "");
                end_line(s);
        }
        buf_addz(out, "StdErr=");
        record_error(r, out);
        end_line(s);
        scontrol_add_text(out, "StdIn", r, "In", "/dev/null");
        end_line(s);
        buf_addz(out, "StdOut=");
        record_output(r, out);
        end_line(s);
        buf_addz(out, "Power=");
        buf_addz(out, words_has(s->w, "oneliner") ? "\n" : "\n\n");
}

static void show_job(void *arg, const struct record *r)
{
        struct showing *s = arg;

        s->count++;
        if (words_has(s->w, "json")) {
                document_item(&s->document, &s->out);
                record_json(r, &s->out);
        } else {
                scontrol_add_names(s, r);
                add_state(s, r);
                scontrol_add_times(s, r);
                add_place(s, r);
                add_files(s, r);
        }
        if (s->out.n > 65536)
                cli_print(&s->out);
}

static int show_jobs(struct cli *cli, const struct words *w, const char *word)
{
        SELECT_CLEANUP struct select s = {.any_state = true};
        struct showing showing = {.w = w, .document = {.list = "jobs"}};
        struct err err = {""};
        int code;

        if (word && select_ids(&s, str_of(word), &err) != 0)
                return slurm_error(1, "%s", err.text);
        code = select_fetch(cli, &s, "/v1/jobs", "after", "", show_job, &showing);
        if (words_has(w, "json") && code == 0 && (showing.count || !word))
                document_end(&showing.document, &showing.out);
        cli_print(&showing.out);
        buf_deinit(&showing.out);
        if (code == SELECT_NO_SUCH_ID || (code == 0 && word && showing.count == 0)) {
                fflush(stdout);
                fputs("slurm_load_jobs error: Invalid job id specified\n", stderr);
                return 1;
        }
        if (code == 0 && showing.count == 0 && !words_has(w, "json"))
                printf("No jobs in the system\n");
        return code;
}

/* ---- show node, show partition */

static void show_node(const struct words *w, const struct node *n, struct buf *out)
{
        const char *end = words_has(w, "oneliner") ? " " : "\n   ";
        BUF_CLEANUP struct buf upper = {0};

        for (const char *p = node_state_name(n->state); *p; p++)
                buf_char(&upper, *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p);
        buf_printf(out, "NodeName=%s Arch=%s CoresPerSocket=1%s", n->name, n->arch ? n->arch : "unknown",
                   end);
        buf_printf(out, "CPUAlloc=%lld CPUEfctv=%lld CPUTot=%lld CPULoad=%.2f%s",
                   (long long)(n->cpus - n->free_cpus), (long long)n->cpus, (long long)n->cpus, n->load, end);
        buf_printf(out, "AvailableFeatures=%s%sActiveFeatures=%s%s", n->features ? n->features : "(null)",
                   end, n->features ? n->features : "(null)", end);
        if (n->gpus)
                buf_printf(out, "Gres=gpu:%lld%s", (long long)n->gpus, end);
        else
                buf_printf(out, "Gres=(null)%s", end);
        buf_printf(out, "NodeAddr=%s NodeHostName=%s Version=%s%s", n->host, n->host,
                   n->program ? n->program : "n/a", end);
        buf_printf(out, "RealMemory=%lld AllocMem=%lld FreeMem=%lld Sockets=%lld Boards=1%s",
                   (long long)n->memory_mib, (long long)(n->memory_mib - n->free_memory_mib),
                   (long long)n->free_memory_mib, (long long)n->cpus, end);
        buf_printf(out,
                   "State=%s ThreadsPerCore=1 TmpDisk=%lld Weight=1 Owner=N/A MCS_label=N/A%sPartitions=",
                   buf_z(&upper), (long long)n->disk_mib, end);
        for (size_t i = 0; i < n->partition_count; i++)
                buf_printf(out, "%s%s", i ? "," : "", n->partitions[i]);
        buf_printf(out, "%sCfgTRES=cpu=%lld,mem=%lldM%sAllocTRES=cpu=%lld", end, (long long)n->cpus,
                   (long long)n->memory_mib, end, (long long)(n->cpus - n->free_cpus));
        if (n->reason)
                buf_printf(out, "%sReason=%s", end, n->reason);
        buf_addz(out, words_has(w, "oneliner") ? "\n" : "\n\n");
}

static void show_partition(const struct words *w, const struct nodes *all, const char *name, struct buf *out)
{
        const char *end = words_has(w, "oneliner") ? " " : "\n   ";
        BUF_CLEANUP struct buf nodes = {0};
        int64_t cpus = 0, memory = 0;
        size_t count = 0;

        for (size_t i = 0; i < all->count; i++)
                if (node_has(&all->items[i], name)) {
                        buf_printf(&nodes, "%s%s", count++ ? "," : "", all->items[i].name);
                        cpus += all->items[i].cpus;
                        memory += all->items[i].memory_mib;
                }
        buf_printf(out,
                   "PartitionName=%s%sAllowGroups=ALL AllowAccounts=ALL AllowQos=ALL%sAllocNodes=ALL "
                   "Default=%s QoS=N/A%s",
                   name, end, end, all->partition_count == 1 ? "YES" : "NO", end);
        buf_printf(
                out,
                "MaxNodes=1 MaxTime=UNLIMITED MinNodes=0%sNodes=%s%sState=UP TotalCPUs=%lld TotalNodes=%zu%s",
                end, buf_z(&nodes), end, (long long)cpus, count, end);
        buf_printf(out, "TRES=cpu=%lld,mem=%lldM,node=%zu%s", (long long)cpus, (long long)memory, count,
                   words_has(w, "oneliner") ? "\n" : "\n\n");
}

static int show_nodes(struct cli *cli, const struct words *w, const char *names, bool partitions)
{
        NODES_CLEANUP struct nodes all = {0};
        struct document document = {.list = partitions ? "partitions" : "nodes"};
        BUF_CLEANUP struct buf out = {0}, hosts = {0};
        bool json = words_has(w, "json");
        size_t shown = 0;
        int code = nodes_read(cli, &all);

        if (code != 0)
                return code;
        if (names && !partitions && hosts_expand(str_of(names), &hosts, NULL) != 0)
                buf_addz(&hosts, names);
        for (size_t i = 0; i < (partitions ? all.partition_count : all.count); i++) {
                const char *name = partitions ? all.partitions[i] : all.items[i].name;

                if (names && !select_in_list(partitions ? names : buf_z(&hosts), str_of(name)))
                        continue;
                shown++;
                if (json)
                        document_item(&document, &out);
                if (json && partitions)
                        partition_json(&all, name, &out);
                else if (json)
                        node_json(&all.items[i], &out);
                else if (partitions)
                        show_partition(w, &all, name, &out);
                else
                        show_node(w, &all.items[i], &out);
        }
        if (json && (shown || !names))
                document_end(&document, &out);
        cli_print(&out);
        if (names && shown == 0) {
                printf("%s %s not found\n", partitions ? "Partition" : "Node", names);
                return 1;
        }
        return 0;
}

static int show_hosts(const char *list)
{
        BUF_CLEANUP struct buf hosts = {0};
        struct err err = {""};
        struct str rest, one;

        if (!list)
                list = getenv("SLURM_JOB_NODELIST");
        if (!list || hosts_expand(str_of(list), &hosts, &err) != 0)
                return slurm_error(1, "%s", list ? err.text : "a list of hosts is missing");
        rest = buf_view(&hosts);
        while (str_cut(&rest, ',', &one))
                printf(STR_FMT "\n", STR_ARG(one));
        return 0;
}

static bool begins(const char *word, const char *name, size_t least)
{
        return strlen(word) >= least && strncasecmp(name, word, strlen(word)) == 0;
}

/* "show job 7", "show job=7", "show jobid 7" */
static int show_entity(struct cli *cli, const struct words *w)
{
        BUF_CLEANUP struct buf entity = {0};
        const char *what, *which = w->word_count > 2 ? w->words[2] : NULL, *equals;

        if (w->word_count < 2)
                return slurm_error(1, "show: job, node, partition, hostnames or config");
        equals = strchr(w->words[1], '=');
        if (equals) {
                which = equals + 1;
                buf_str(&entity, str_make(w->words[1], (size_t)(equals - w->words[1])));
        } else {
                buf_addz(&entity, w->words[1]);
        }
        what = buf_z(&entity);
        if (begins(what, "jobs", 1) || begins(what, "jobid", 1))
                return show_jobs(cli, w, which);
        if (begins(what, "nodes", 1))
                return show_nodes(cli, w, which, false);
        if (begins(what, "partitions", 1))
                return show_nodes(cli, w, which, true);
        if (begins(what, "hostnames", 5))
                return show_hosts(which);
        if (begins(what, "config", 2)) {
                printf("ClusterName             = drover\nMaxArraySize            = 10000000\nMinJobAge      "
                       "         = 300 sec\n");
                return 0;
        }
        return slurm_error(1, "show %s is not supported: job, node, partition, hostnames and config are",
                           what);
}

/* ---- doing */

static int do_list(struct cli *cli, const struct action *a, const char *list, const char *word)
{
        struct str rest = str_of(list), one;
        int code = 0;

        while (str_cut(&rest, ',', &one)) {
                BUF_CLEANUP struct buf id = {0};
                struct err err = {""};
                int rc;

                if (one.n == 0)
                        continue;
                buf_str(&id, one);
                rc = action_do(cli, a, buf_z(&id), STR_NONE, &err);
                if (rc == ACTION_NO_JOB)
                        code = no_such_job(buf_z(&id));
                else if (rc == ACTION_NOTHING && *err.text)
                        code = slurm_error(1, "%s: job %s: %s", word, buf_z(&id), err.text);
                else if (rc == ACTION_NOTHING && strcmp(a->name, "hold") != 0 &&
                         strcmp(a->name, "release") != 0)
                        code = slurm_error(1, "%s: job %s: its state does not allow it", word, buf_z(&id));
                else if (rc < 0)
                        code = slurm_error(1, "%s", err.text);
        }
        return code;
}

static int act_on_jobs(struct cli *cli, const struct words *w, const struct action *a)
{
        int code = 0;

        if (w->word_count < 2)
                return slurm_error(1, "too few arguments for keyword: %s", w->words[0]);
        for (size_t i = 1; i < w->word_count; i++) {
                const char *ids = w->words[i];

                if (strncasecmp(ids, "jobid=", 6) == 0)
                        ids += 6;
                code |= do_list(cli, a, ids, w->words[0]);
        }
        return code;
}

/* ---- update */

struct update {
        struct buf members; /* members of the body: "attributes":{...} */
        struct json json;
        unsigned attributes;
        const char *ids;
        bool has_priority, hold;
        int64_t priority;
        int64_t now_s;
};

static void set_attribute(struct update *u, const char *attribute, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void set_attribute(struct update *u, const char *attribute, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        json_kstr(&u->json, attribute, buf_view(&text));
        u->attributes++;
}

static void set_string(struct update *u, const char *attribute, const char *value)
{
        BUF_CLEANUP struct buf text = {0};

        print_string(&text, str_of(value));
        set_attribute(u, attribute, "%s", buf_z(&text));
}

/* 0, or -1: the value cannot be meant; 1: the key is not one that can be changed. */
static int take_key(struct update *u, const char *key, const char *value)
{
        struct str text = str_of(value);
        int64_t n;

        if (strcasecmp(key, "JobId") == 0 || strcasecmp(key, "Job") == 0) {
                u->ids = value;
                return 0;
        }
        if (strcasecmp(key, "TimeLimit") == 0) {
                if (moment_limit(text, &n) != 0)
                        return -1;
                set_attribute(u, "AllowedExecuteDuration", n ? "%lld" : "undefined", (long long)n);
        } else if (strcasecmp(key, "Name") == 0 || strcasecmp(key, "JobName") == 0) {
                set_string(u, "SlurmName", value);
        } else if (strcasecmp(key, "Comment") == 0) {
                set_string(u, "SlurmComment", value);
        } else if (strcasecmp(key, "QOS") == 0) {
                set_string(u, "QOS", value);
        } else if (strcasecmp(key, "NumCPUs") == 0 || strcasecmp(key, "MinCPUsNode") == 0) {
                if (str_to_i64(text, &n) != 0 || n < 1)
                        return -1;
                set_attribute(u, "RequestCpus", "%lld", (long long)n);
        } else if (strcasecmp(key, "MinMemoryNode") == 0) {
                if (str_to_i64(text, &n) != 0 || n < 1)
                        return -1;
                set_attribute(u, "RequestMemory", "%lld", (long long)n);
        } else if (strcasecmp(key, "StartTime") == 0) {
                if (moment_read(text, u->now_s, &n) != 0)
                        return -1;
                set_attribute(u, "DeferralTime", "%lld", (long long)n);
                set_attribute(u, "DeferralWindow", "2147483647");
        } else if (strcasecmp(key, "Nice") == 0 || strcasecmp(key, "Priority") == 0) {
                if (str_to_i64(text, &u->priority) != 0)
                        return -1;
                if (strcasecmp(key, "Nice") == 0)
                        u->priority = -u->priority;
                else
                        u->hold = u->priority == 0;
                u->has_priority = !u->hold;
        } else {
                return 1;
        }
        return 0;
}

static int read_update(struct update *u, const struct words *w)
{
        u->json = (struct json){.out = &u->members};
        buf_addz(&u->members, ",\"attributes\":");
        json_open(&u->json, '{');
        for (size_t i = 1; i < w->word_count; i++) {
                BUF_CLEANUP struct buf key = {0};
                const char *equals = strchr(w->words[i], '=');
                int rc;

                buf_str(&key,
                        equals ? str_make(w->words[i], (size_t)(equals - w->words[i])) : str_of(w->words[i]));
                if (!equals && i + 1 < w->word_count)
                        equals = w->words[++i];
                else if (equals)
                        equals++;
                rc = equals ? take_key(u, buf_z(&key), equals) : -1;
                if (rc < 0)
                        return slurm_error(1, "Invalid %s value: %s", buf_z(&key), equals ? equals : "");
                if (rc > 0) {
                        fprintf(stderr, "Update of this parameter is not supported: %s\nRequest aborted\n",
                                w->words[i]);
                        return 1;
                }
        }
        json_close(&u->json, '}');
        if (!u->ids)
                return slurm_error(1,
                                   "update: JobId=... is missing; nodes and partitions are not changed here");
        return 0;
}

static int job_update(struct cli *cli, const struct words *w)
{
        struct update u = {.now_s = cli->now_ms / 1000};
        int code = read_update(&u, w);

        if (code == 0 && u.attributes)
                code = do_list(cli, &(struct action){.name = "edit", .members = buf_view(&u.members)}, u.ids,
                               "update");
        if (code == 0 && u.has_priority)
                code = do_list(cli,
                               &(struct action){.name = "priority", .value = u.priority, .has_value = true},
                               u.ids, "update");
        if (code == 0 && u.hold)
                code = do_list(cli, &(struct action){.name = "hold"}, u.ids, "update");
        buf_deinit(&u.members);
        return code;
}

static int ping(struct cli *cli)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        char host[256] = "";

        gethostname(host, sizeof(host) - 1);
        if (api_call(cli, &(struct api_request){.path = "/healthz"}, &answer, NULL) != 0) {
                printf("Slurmctld(primary) at %s is DOWN\n", host);
                return 1;
        }
        printf("Slurmctld(primary) at %s is UP\n", host);
        return 0;
}

static int scontrol(struct cli *cli, const struct words *w)
{
        static const struct {
                const char *word, *action;
        } actions[] = {{"hold", "hold"},       {"uhold", "hold"},      {"release", "release"},
                       {"requeue", "vacate"},  {"suspend", "suspend"}, {"resume", "resume"},
                       {"requeuehold", "hold"}};
        const char *word = w->word_count ? w->words[0] : NULL;

        if (!word)
                return slurm_error(
                        1, "a keyword is missing: show, hold, release, requeue, suspend, resume, update");
        if (strcasecmp(word, "show") == 0)
                return show_entity(cli, w);
        if (strcasecmp(word, "update") == 0)
                return job_update(cli, w);
        if (strcasecmp(word, "ping") == 0)
                return ping(cli);
        if (strcasecmp(word, "version") == 0) {
                slurm_version_print();
                return 0;
        }
        for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
                if (strcasecmp(word, actions[i].word) == 0)
                        return act_on_jobs(cli, w, &(struct action){.name = actions[i].action});
        return slurm_error(
                1, "%s is not supported: show, hold, release, requeue, suspend, resume and update are", word);
}

static const struct words_row rows[] = {
        {"json", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Print jobs, nodes or queues as JSON."},
        {"oneliner", 'o', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "A line for each job, node or queue."},
        {"details", 'd', WORDS_PLAIN, WORDS_SO, NULL, NULL, "All that is known is shown."},
        {"all", 'a', WORDS_PLAIN, WORDS_SO, NULL, NULL, "No queue is hidden."},
        {"hide", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "The default."},
        {"quiet", 'Q', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Errors only are told."},
        {"verbose", 'v', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Nothing more is told."},
        {"local", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one cluster."},
        {"federation", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one cluster."},
        {"future", 'F', WORDS_PLAIN, WORDS_SO, NULL, NULL, "All agents are shown."},
        {"clusters", 'M', WORDS_VALUE, WORDS_REFUSED, "NAMES", NULL,
         "$DROVER_DIR or $DROVER_SERVER name the server."},
        {"uid", 'u', WORDS_VALUE, WORDS_REFUSED, "USER", NULL, "one acts as oneself."},
        {0},
};
const struct words_tool slurm_scontrol = {
        .name = "scontrol",
        .usage = "[OPTIONS] show job|node|partition|hostnames|config [WHICH] | "
                 "hold|release|requeue|suspend|resume ID... | "
                 "update JobId=ID KEY=VALUE... | ping",
        .line = "Shows jobs, nodes and queues, and changes jobs: TimeLimit, Name, Comment, QOS, NumCPUs, "
                "MinMemoryNode, "
                "StartTime, Nice and Priority.",
        .rows = rows,
        .run = scontrol,
};
