#include "cli/slurm/fields.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"
#include "cli/slurm/moment.h"
#include "cli/terminal/human.h"

#define LONG_WIDTH  20 /* default width of a column of squeue -O */

#define WRITE(name) static void write_##name(const struct record *r, struct str group, struct buf *out)

WRITE(id)
{
        if (group.n) {
                buf_printf(out, "%lld_[" STR_FMT "]", (long long)r->request, STR_ARG(group));
                return;
        }
        record_id(r, out);
}
WRITE(number)
{
        (void)group;
        buf_printf(out, "%lld", (long long)(group.n ? r->request : record_number(r)));
        if (r->step)
                buf_printf(out, ".%s", r->step);
}
WRITE(array_id)
{
        (void)group;
        buf_printf(out, "%lld", (long long)r->request);
}
WRITE(task)
{
        if (group.n)
                buf_str(out, group);
        else if (r->task >= 0)
                buf_printf(out, "%lld", (long long)r->task);
        else
                buf_addz(out, "N/A");
}
WRITE(name)
{
        (void)group;
        if (r->step)
                buf_addz(out, r->step);
        else
                record_name(r, out);
}
WRITE(partition)
{
        (void)group;
        if (!r->step)
                record_partition(r, out);
}
WRITE(user)
{
        (void)group;
        if (!r->step)
                record_owner(r, out);
}
WRITE(uid)
{
        (void)group;
        buf_printf(out, "%lld", (long long)record_uid(r));
}
WRITE(group)
{
        BUF_CLEANUP struct buf owner = {0};
        const struct passwd *who;
        const struct group *g;

        (void)group;
        record_owner(r, &owner);
        who = getpwnam(buf_z(&owner));
        g = who ? getgrgid(who->pw_gid) : NULL;
        buf_addz(out, g ? g->gr_name : "nogroup");
}
WRITE(gid)
{
        BUF_CLEANUP struct buf owner = {0};
        const struct passwd *who;

        (void)group;
        record_owner(r, &owner);
        who = getpwnam(buf_z(&owner));
        buf_printf(out, "%lld", who ? (long long)who->pw_gid : 4294967294ll);
}
WRITE(state)
{
        (void)group;
        buf_addz(out, record_state_name(r->state));
}
WRITE(state_account)
{
        (void)group;
        buf_addz(out, record_state_name(r->state));
        if (r->state == RECORD_CANCELLED && !r->step)
                buf_printf(out, " by %lld", (long long)record_uid(r));
}
WRITE(state_short)
{
        (void)group;
        buf_addz(out, record_state_short(r->state));
}
WRITE(reason)
{
        (void)group;
        buf_addz(out, r->reason);
}
WRITE(node)
{
        (void)group;
        record_node(r, out);
}
WRITE(node_account)
{
        size_t before = out->n;

        (void)group;
        record_node(r, out);
        if (out->n == before)
                buf_addz(out, "None assigned");
}
WRITE(host)
{
        size_t before = out->n;

        (void)group;
        record_node(r, out);
        if (out->n == before)
                buf_addz(out, "n/a");
}
WRITE(node_reason)
{
        (void)group;
        if (r->state == RECORD_PENDING || record_is_over(r))
                buf_printf(out, r->state == RECORD_PENDING || strcmp(r->reason, "None") != 0 ? "(%s)" : "%s",
                           r->state == RECORD_PENDING || strcmp(r->reason, "None") != 0 ? r->reason : "");
        if (r->state != RECORD_PENDING && (!record_is_over(r) || strcmp(r->reason, "None") == 0))
                record_node(r, out);
}
WRITE(elapsed)
{
        (void)group;
        moment_short(out, r->elapsed_s);
}
WRITE(elapsed_long)
{
        (void)group;
        moment_long(out, r->elapsed_s);
}
WRITE(elapsed_raw)
{
        (void)group;
        buf_printf(out, "%lld", (long long)r->elapsed_s);
}
WRITE(cpu_time)
{
        (void)group;
        moment_long(out, r->elapsed_s * r->cpus);
}
WRITE(cpu_time_raw)
{
        (void)group;
        buf_printf(out, "%lld", (long long)(r->elapsed_s * r->cpus));
}
WRITE(limit)
{
        (void)group;
        if (r->limit_s)
                moment_short(out, r->limit_s);
        else
                buf_addz(out, "UNLIMITED");
}
WRITE(limit_account)
{
        (void)group;
        if (r->limit_s)
                moment_long(out, r->limit_s);
        else
                buf_addz(out, "UNLIMITED");
}
WRITE(limit_raw)
{
        (void)group;
        if (r->limit_s)
                buf_printf(out, "%lld", (long long)((r->limit_s + 59) / 60));
}
WRITE(left)
{
        (void)group;
        if (r->limit_s)
                moment_short(out, r->limit_s - r->elapsed_s);
        else
                buf_addz(out, "UNLIMITED");
}
WRITE(submitted)
{
        (void)group;
        moment_date(out, r->submitted_s, "N/A");
}
WRITE(started)
{
        int64_t begin_s = view_integer(view_get(r->ad, "DeferralTime"), 0);

        (void)group;
        moment_date(out, r->started_s ? r->started_s : begin_s > r->now_s ? begin_s : 0, "N/A");
}
WRITE(started_account)
{
        (void)group;
        moment_date(out, r->started_s, record_is_over(r) ? "None" : "Unknown");
}
WRITE(ended)
{
        (void)group;
        moment_date(out,
                    record_is_over(r)            ? r->ended_s
                    : r->started_s && r->limit_s ? r->started_s + r->limit_s
                                                 : 0,
                    "N/A");
}
WRITE(ended_account)
{
        (void)group;
        moment_date(out, record_is_over(r) ? r->ended_s : 0, "Unknown");
}
WRITE(cpus)
{
        (void)group;
        buf_printf(out, "%lld", (long long)r->cpus);
}
WRITE(cpus_given)
{
        (void)group;
        buf_printf(out, "%lld", (long long)(r->started_s ? r->cpus : 0));
}
WRITE(tasks)
{
        (void)group;
        buf_printf(out, "%lld", (long long)r->tasks);
}
WRITE(nodes)
{
        (void)group;
        buf_printf(out, "%lld", (long long)r->nodes);
}
/* Of each processor, when it was asked for so. */
WRITE(memory_asked)
{
        int64_t each = view_integer(view_get(r->ad, "SlurmMemoryPerCpu"), 0),
                mib = each ? each : view_integer(view_get(r->ad, "RequestMemory"), 0);

        (void)group;
        if (mib && mib % 1024 == 0)
                buf_printf(out, "%lldG", (long long)(mib / 1024));
        else
                buf_printf(out, mib ? "%lldM" : "%lld", (long long)mib);
}
WRITE(memory)
{
        int64_t mib = view_integer(view_get(r->ad, "RequestMemory"), 0);

        (void)group;
        if (mib && mib % 1024 == 0)
                buf_printf(out, "%lldG", (long long)(mib / 1024));
        else
                buf_printf(out, mib ? "%lldM" : "%lld", (long long)mib);
}
WRITE(memory_used)
{
        int64_t kib = view_integer(view_get(r->ad, "ResidentSetSize"), 0);

        (void)group;
        if (kib)
                buf_printf(out, "%lldK", (long long)kib);
}
WRITE(exit_code)
{
        (void)group;
        buf_printf(out, "%lld:%lld", (long long)r->exit_code, (long long)r->exit_signal);
}
WRITE(account)
{
        (void)group;
        record_text(r, "AcctGroup", "(null)", out);
}
WRITE(account_plain)
{
        (void)group;
        record_text(r, "AcctGroup", "", out);
}
WRITE(qos)
{
        (void)group;
        record_text(r, "QOS", "(null)", out);
}
WRITE(qos_plain)
{
        (void)group;
        record_text(r, "QOS", "", out);
}
WRITE(comment)
{
        (void)group;
        record_text(r, "SlurmComment", "(null)", out);
}
WRITE(comment_plain)
{
        (void)group;
        record_text(r, "SlurmComment", "", out);
}
WRITE(command)
{
        BUF_CLEANUP struct buf cmd = {0};

        (void)group;
        if (view_there(view_get(r->ad, "SlurmCommand"))) {
                record_text(r, "SlurmCommand", "(null)", out);
                return;
        }
        view_text(view_get(r->job, "cmd"), &cmd);
        human_safe(out, buf_view(&cmd));
}
WRITE(folder)
{
        (void)group;
        record_text(r, "Iwd", "", out);
}
WRITE(output)
{
        (void)group;
        record_output(r, out);
}
WRITE(error)
{
        (void)group;
        record_error(r, out);
}
WRITE(input)
{
        (void)group;
        record_text(r, "In", "/dev/null", out);
}
WRITE(dependency)
{
        (void)group;
        if (strcmp(r->reason, "Dependency") == 0 || strcmp(r->reason, "DependencyNeverSatisfied") == 0)
                record_text(r, "SlurmDependency", "(null)", out);
        else
                buf_addz(out, "(null)");
}
WRITE(priority)
{
        (void)group;
        buf_printf(out, "%lld", (long long)view_integer(view_get(r->ad, "JobPrio"), 0));
}
WRITE(nice)
{
        (void)group;
        buf_printf(out, "%lld", (long long)-view_integer(view_get(r->ad, "JobPrio"), 0));
}
WRITE(user_cpu)
{
        (void)group;
        moment_long(out, view_integer(view_get(r->ad, "RemoteUserCpu"), 0));
}
WRITE(system_cpu)
{
        (void)group;
        moment_long(out, view_integer(view_get(r->ad, "RemoteSysCpu"), 0));
}
WRITE(total_cpu)
{
        (void)group;
        moment_long(out, view_integer(view_get(r->ad, "RemoteUserCpu"), 0) +
                                 view_integer(view_get(r->ad, "RemoteSysCpu"), 0));
}
WRITE(gpus)
{
        int64_t n = view_integer(view_get(r->ad, "RequestGPUs"), 0);

        (void)group;
        if (n)
                buf_printf(out, "gres:gpu:%lld", (long long)n);
        else
                buf_addz(out, "N/A");
}
WRITE(tres)
{
        int64_t n = view_integer(view_get(r->ad, "RequestGPUs"), 0),
                mib = view_integer(view_get(r->ad, "RequestMemory"), 0);

        (void)group;
        buf_printf(out, "cpu=%lld", (long long)r->cpus);
        if (mib)
                buf_printf(out, ",mem=%lldM", (long long)mib);
        buf_addz(out, ",node=1");
        if (n)
                buf_printf(out, ",gres/gpu=%lld", (long long)n);
}
WRITE(cluster)
{
        (void)r;
        (void)group;
        buf_addz(out, "drover");
}
WRITE(restarts)
{
        int64_t starts = view_integer(view_get(r->job, "starts"), 0);

        (void)group;
        buf_printf(out, "%lld", (long long)(starts > 1 ? starts - 1 : 0));
}
WRITE(suspended)
{
        (void)group;
        moment_long(out, view_integer(view_get(r->ad, "CumulativeSuspensionTime"), 0));
}
WRITE(waited)
{
        (void)group;
        moment_long(out, (r->started_s        ? r->started_s
                          : record_is_over(r) ? r->ended_s
                                              : r->now_s) -
                                 r->submitted_s);
}
WRITE(disk)
{
        (void)group;
        buf_printf(out, "%lld", (long long)((view_integer(view_get(r->ad, "RequestDisk"), 0) + 1023) / 1024));
}
/* Fields that Slurm knows and nobody here does. */
WRITE(null)
{
        (void)r;
        (void)group;
        buf_addz(out, "(null)");
}
WRITE(star)
{
        (void)r;
        (void)group;
        buf_addz(out, "*");
}
WRITE(stars)
{
        (void)r;
        (void)group;
        buf_addz(out, "*:*:*");
}
WRITE(empty)
{
        (void)r;
        (void)group;
        (void)out;
}
WRITE(zero)
{
        (void)r;
        (void)group;
        buf_addz(out, "0");
}
WRITE(shared)
{
        (void)r;
        (void)group;
        buf_addz(out, "OK");
}
WRITE(not_known)
{
        (void)r;
        (void)group;
        buf_addz(out, "N/A");
}

static const struct field fields[] = {
        {'i', "JobArrayID", "JOBID", "JobID", 12, true, write_id},
        {'A', "JobID", "JOBID", "JobIDRaw", 12, true, write_number},
        {'F', "ArrayJobID", "ARRAY_JOB_ID", NULL, 0, false, write_array_id},
        {'K', "ArrayTaskID", "ARRAY_TASK_ID", NULL, 0, false, write_task},
        {'j', "Name", "NAME", "JobName", 10, false, write_name},
        {'P', "Partition", "PARTITION", "Partition", 10, false, write_partition},
        {'a', "Account", "ACCOUNT", NULL, 0, false, write_account},
        {0, NULL, NULL, "Account", 10, false, write_account_plain},
        {'u', "UserName", "USER", "User", 9, false, write_user},
        {'U', "UserID", "UID", "UID", 6, false, write_uid},
        {'g', "GroupName", "GROUP", "Group", 9, false, write_group},
        {'G', "GroupID", "GROUP_ID", "GID", 6, false, write_gid},
        {'t', "StateCompact", "ST", NULL, 0, false, write_state_short},
        {'T', "State", "STATE", NULL, 0, false, write_state},
        {0, NULL, NULL, "State", 10, false, write_state_account},
        {'r', "Reason", "REASON", "Reason", 22, false, write_reason},
        {'R', "ReasonList", "NODELIST(REASON)", NULL, 0, false, write_node_reason},
        {'N', "NodeList", "NODELIST", NULL, 0, false, write_node},
        {0, NULL, NULL, "NodeList", 15, false, write_node_account},
        {'B', "BatchHost", "EXEC_HOST", NULL, 0, false, write_host},
        {'M', "TimeUsed", "TIME", NULL, 0, false, write_elapsed},
        {0, NULL, NULL, "Elapsed", 10, false, write_elapsed_long},
        {0, NULL, NULL, "ElapsedRaw", 10, false, write_elapsed_raw},
        {0, NULL, NULL, "CPUTime", 10, false, write_cpu_time},
        {0, NULL, NULL, "CPUTimeRAW", 10, false, write_cpu_time_raw},
        {'l', "TimeLimit", "TIME_LIMIT", NULL, 0, false, write_limit},
        {0, NULL, NULL, "Timelimit", 10, false, write_limit_account},
        {0, NULL, NULL, "TimelimitRaw", 13, false, write_limit_raw},
        {'L', "TimeLeft", "TIME_LEFT", NULL, 0, false, write_left},
        {'V', "SubmitTime", "SUBMIT_TIME", "Submit", 19, false, write_submitted},
        {0, "EligibleTime", "ELIGIBLE_TIME", "Eligible", 19, false, write_submitted},
        {'S', "StartTime", "START_TIME", NULL, 0, false, write_started},
        {0, NULL, NULL, "Start", 19, false, write_started_account},
        {'e', "EndTime", "END_TIME", NULL, 0, false, write_ended},
        {0, NULL, NULL, "End", 19, false, write_ended_account},
        {'C', "NumCPUs", "CPUS", "NCPUS", 10, false, write_cpus},
        {0, NULL, NULL, "AllocCPUS", 10, false, write_cpus_given},
        {'c', "MinCpus", "MIN_CPUS", "ReqCPUS", 8, false, write_cpus},
        {0, "NumTasks", "TASKS", "NTasks", 8, false, write_tasks},
        {'D', "NumNodes", "NODES", "NNodes", 8, false, write_nodes},
        {0, NULL, NULL, "AllocNodes", 10, false, write_nodes},
        {0, NULL, NULL, "ReqNodes", 8, false, write_nodes},
        {'m', "MinMemory", "MIN_MEMORY", NULL, 0, false, write_memory_asked},
        {0, NULL, NULL, "ReqMem", 10, false, write_memory},
        {0, NULL, NULL, "MaxRSS", 10, false, write_memory_used},
        {0, NULL, NULL, "AveRSS", 10, false, write_memory_used},
        {0, "exit_code", "EXIT_CODE", "ExitCode", 8, false, write_exit_code},
        {0, NULL, NULL, "DerivedExitCode", 15, false, write_exit_code},
        {'q', "QOS", "QOS", NULL, 0, false, write_qos},
        {0, NULL, NULL, "QOS", 10, false, write_qos_plain},
        {'k', "Comment", "COMMENT", NULL, 0, false, write_comment},
        {0, NULL, NULL, "Comment", 14, false, write_comment_plain},
        {'o', "Command", "COMMAND", "SubmitLine", 20, false, write_command},
        {'Z', "WorkDir", "WORK_DIR", "WorkDir", 20, false, write_folder},
        {0, "STDOUT", "STDOUT", NULL, 0, false, write_output},
        {0, "STDERR", "STDERR", NULL, 0, false, write_error},
        {0, "STDIN", "STDIN", NULL, 0, false, write_input},
        {'E', "Dependency", "DEPENDENCY", NULL, 0, false, write_dependency},
        {'p', "Priority", "PRIORITY", "Priority", 10, false, write_priority},
        {'Q', "PriorityLong", "PRIORITY", NULL, 0, false, write_priority},
        {'y', "Nice", "NICE", NULL, 0, false, write_nice},
        {0, NULL, NULL, "UserCPU", 10, false, write_user_cpu},
        {0, NULL, NULL, "SystemCPU", 10, false, write_system_cpu},
        {0, NULL, NULL, "TotalCPU", 10, false, write_total_cpu},
        {'b', "tres-per-node", "TRES_PER_NODE", NULL, 0, false, write_gpus},
        {0, "tres-alloc", "TRES_ALLOC", "AllocTRES", 10, false, write_tres},
        {0, "gres", "TRES_PER_NODE", "ReqTRES", 10, false, write_tres},
        {0, "Cluster", "CLUSTER", "Cluster", 10, false, write_cluster},
        {0, "RestartCnt", "RESTART_COUNT", "Restarts", 8, false, write_restarts},
        {0, NULL, NULL, "Suspended", 10, false, write_suspended},
        {0, "PendingTime", "PENDING_TIME", "Reserved", 10, false, write_waited},
        {0, NULL, NULL, "Planned", 10, false, write_waited},
        {'d', "MinTmpDisk", "MIN_TMP_DISK", NULL, 0, false, write_disk},
        {'f', "Feature", "FEATURES", "Constraints", 20, false, write_null},
        {'v', "Reservation", "RESERVATION", NULL, 0, false, write_null},
        {'w', "WCKey", "WCKEY", "WCKey", 10, false, write_null},
        {'W', "Licenses", "LICENSES", NULL, 0, false, write_null},
        {'x', "ExcNodes", "EXC_NODES", NULL, 0, false, write_empty},
        {'n', "ReqNodes", "REQ_NODES", NULL, 0, false, write_empty},
        {'Y', "SchedNodes", "SCHEDNODES", NULL, 0, false, write_null},
        {'z', "SCT", "S:C:T", NULL, 0, false, write_stars},
        {'H', "NumSockets", "SOCKETS_PER_NODE", NULL, 0, false, write_star},
        {'I', "NumCores", "CORES_PER_SOCKET", NULL, 0, false, write_star},
        {'J', "NumThreads", "THREADS_PER_CORE", NULL, 0, false, write_star},
        {'O', "Contiguous", "CONTIGUOUS", NULL, 0, false, write_zero},
        {'X', "CoreSpec", "CORE_SPEC", NULL, 0, false, write_not_known},
        {'h', "OverSubscribe", "OVER_SUBSCRIBE", NULL, 0, false, write_shared},
        {'s', "SelectJobInfo", "", NULL, 0, false, write_empty},
        {0, NULL, NULL, "AdminComment", 14, false, write_empty},
        {0, NULL, NULL, "SystemComment", 14, false, write_empty},
        {0, NULL, NULL, "AveCPU", 10, false, write_total_cpu},
        {0, NULL, NULL, "MaxVMSize", 10, false, write_empty},
        {0, NULL, NULL, "AveVMSize", 10, false, write_empty},
        {0, NULL, NULL, "MaxDiskRead", 12, false, write_empty},
        {0, NULL, NULL, "MaxDiskWrite", 12, false, write_empty},
        {0, NULL, NULL, "AveDiskRead", 14, false, write_empty},
        {0, NULL, NULL, "AveDiskWrite", 14, false, write_empty},
        {0, NULL, NULL, "ConsumedEnergy", 14, false, write_empty},
        {0, NULL, NULL, "Flags", 16, false, write_empty},
        {0, NULL, NULL, "Layout", 9, false, write_empty},
        {0, NULL, NULL, "Reservation", 20, false, write_empty},
        {0, NULL, NULL, "TRESUsageInTot", 14, false, write_empty},
        {0, NULL, NULL, "TRESUsageInMax", 14, false, write_empty},
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

void columns_deinit(struct columns *c)
{
        for (size_t i = 0; i < c->count; i++)
                free(c->items[i].behind);
        free(c->items);
        free(c->before);
        *c = (struct columns){0};
}

static struct column *add_column(struct columns *c, const struct field *field)
{
        MEM_GROW(c->items, c->cap, c->count + 1);
        c->items[c->count] = (struct column){.field = field};
        return &c->items[c->count++];
}

/* Text up to the next percent sign, which a pair of them writes. */
static struct str take_text(struct str s, char **ret)
{
        BUF_CLEANUP struct buf text = {0};

        while (s.n && (s.p[0] != '%' || (s.n > 1 && s.p[1] == '%'))) {
                if (s.p[0] == '\\' && s.n > 1 && (s.p[1] == 'n' || s.p[1] == 't')) {
                        buf_char(&text, s.p[1] == 'n' ? '\n' : '\t');
                        s = str_skip(s, 2);
                        continue;
                }
                buf_char(&text, s.p[0]);
                s = str_skip(s, s.p[0] == '%' ? 2 : 1);
        }
        *ret = buf_take(&text);
        return s;
}

int columns_read(struct columns *c, struct str format, struct err *err)
{
        struct str s = take_text(format, &c->before);

        while (s.n) {
                unsigned width = 0;
                bool right = false;
                size_t i = 1, f = 0;
                struct column *column;

                if (i < s.n && s.p[i] == '.') {
                        right = true;
                        i++;
                }
                for (; i < s.n && isdigit((unsigned char)s.p[i]) && width < 1000; i++)
                        width = width * 10 + (unsigned)(s.p[i] - '0');
                while (i < s.n && f < FIELDS && fields[f].letter != s.p[i])
                        f++;
                if (i >= s.n || f == FIELDS)
                        return err_set(err, -EINVAL, "Invalid job format specification: %c",
                                       i < s.n ? s.p[i] : '%');
                column = add_column(c, &fields[f]);
                column->width = width;
                column->right = right;
                s = take_text(str_skip(s, i + 1), &column->behind);
        }
        return 0;
}

int columns_read_long(struct columns *c, struct str format, struct err *err)
{
        struct str one;

        while (str_cut(&format, ',', &one)) {
                struct str width = one, name;
                struct column *column;
                uint64_t n = LONG_WIDTH;
                size_t f = 0;
                bool right = false;

                str_cut(&width, ':', &name);
                while (f < FIELDS && (!fields[f].long_name || !str_ieqz(str_trim(name), fields[f].long_name)))
                        f++;
                if (width.n && (width.p[0] == '.' || width.p[0] == '-')) {
                        right = width.p[0] == '.';
                        width = str_skip(width, 1);
                }
                if (f == FIELDS || (width.n && (str_to_u64(width, &n) != 0 || n > 10000)))
                        return err_set(err, -EINVAL, "Invalid job format specification: " STR_FMT,
                                       STR_ARG(one));
                column = add_column(c, &fields[f]);
                column->width = (unsigned)n;
                column->right = right;
        }
        return 0;
}

int columns_read_account(struct columns *c, struct str format, struct err *err)
{
        struct str one;

        c->account = true;
        while (str_cut(&format, ',', &one)) {
                struct str width = one, name;
                struct column *column;
                int64_t n = 0;
                size_t f = 0;

                str_cut(&width, '%', &name);
                name = str_trim(name);
                if (name.n == 0)
                        continue;
                while (f < FIELDS && (!fields[f].account_name || !str_ieqz(name, fields[f].account_name)))
                        f++;
                for (size_t i = 0; f == FIELDS && i < FIELDS; i++)
                        if (fields[i].account_name && str_istarts(str_of(fields[i].account_name), name)) {
                                f = i;
                                break;
                        }
                if (f == FIELDS || (width.n && (str_to_i64(width, &n) != 0 || n > 10000 || n < -10000)))
                        return err_set(err, -EINVAL, "Invalid field requested: \"" STR_FMT "\"",
                                       STR_ARG(name));
                column = add_column(c, &fields[f]);
                column->width = n ? (unsigned)(n < 0 ? -n : n) : fields[f].account_width;
                column->right = n < 0 ? false : !fields[f].account_left;
        }
        return 0;
}

static void write_cell(const struct column *c, struct str text, struct buf *out)
{
        size_t width = 0, bytes = 0;

        while (bytes < text.n && (c->width == 0 || width < c->width)) {
                size_t n = str_utf8(str_skip(text, bytes));

                bytes += n ? n : 1;
                width++;
        }
        for (size_t i = width; c->right && i < c->width; i++)
                buf_char(out, ' ');
        buf_str(out, str_head(text, bytes));
        for (size_t i = width; !c->right && i < c->width; i++)
                buf_char(out, ' ');
}

/* sacct marks what it has cut. */
static void write_cut(const struct column *c, struct str text, struct buf *out)
{
        if (c->width && text.n > c->width && human_width(text) > c->width) {
                BUF_CLEANUP struct buf cut = {0};

                buf_str(&cut, str_head(text, c->width - 1));
                buf_char(&cut, '+');
                write_cell(c, buf_view(&cut), out);
                return;
        }
        write_cell(c, text, out);
}

void columns_heads(const struct columns *c, struct buf *out)
{
        buf_addz(out, c->before ? c->before : "");
        for (size_t i = 0; i < c->count; i++) {
                const struct field *f = c->items[i].field;

                write_cell(&c->items[i], str_of(c->account ? f->account_name : f->head), out);
                buf_addz(out, c->account ? " " : c->items[i].behind ? c->items[i].behind : "");
        }
        buf_char(out, '\n');
        if (!c->account)
                return;
        for (size_t i = 0; i < c->count; i++) {
                for (unsigned k = 0; k < c->items[i].width; k++)
                        buf_char(out, '-');
                buf_char(out, ' ');
        }
        buf_char(out, '\n');
}

void columns_line(const struct columns *c, const struct record *r, struct str group, struct buf *out)
{
        BUF_CLEANUP struct buf text = {0};

        buf_addz(out, c->before ? c->before : "");
        for (size_t i = 0; i < c->count; i++) {
                const struct column *column = &c->items[i];

                buf_reset(&text);
                column->field->write(r, group, &text);
                if (c->account)
                        write_cut(column, buf_view(&text), out);
                else
                        write_cell(column, buf_view(&text), out);
                buf_addz(out, c->account ? " " : column->behind ? column->behind : "");
        }
        buf_char(out, '\n');
}

void columns_parsable(const struct columns *c, const struct record *r, const char *mark, bool last,
                      struct buf *out)
{
        for (size_t i = 0; i < c->count; i++) {
                if (r)
                        c->items[i].field->write(r, STR_NONE, out);
                else
                        buf_addz(out, c->items[i].field->account_name);
                if (last || i + 1 < c->count)
                        buf_addz(out, mark);
        }
        buf_char(out, '\n');
}

void fields_help(struct buf *out)
{
        unsigned n = 0;

        for (size_t i = 0; i < FIELDS; i++)
                if (fields[i].account_name)
                        buf_printf(out, "%-19s%s", fields[i].account_name, ++n % 4 ? " " : "\n");
        if (n % 4)
                buf_char(out, '\n');
}
