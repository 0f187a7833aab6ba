/* What the bank costs when it is old: so many charges (10 million, or argv[1]) of 100 accounts over two
 * years, as a server makes and stores them, fifty to a page. Then, in turns, balances, and statements of an
 * account for one of the first months and for the last. On $TMPDIR (or /var/tmp: it must be a real disk), or,
 * only stored and not read, in the database of argv[3], that of a server which is not running.
 * Prints `name value unit higher|lower` lines. */
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "bench.h"
#include "server/history/ledger.h"

#define PAGE     50u  /* movements of an account in one turn */
#define COMMIT   100u /* turns in one batch here: the disk's waits are not what is measured */
#define ROUNDS   20u
#define BEGIN_MS 1735689600000ll /* 2025-01-01 */
#define YEARS_MS (2 * 365 * 86400000ll)

static struct server server;
static struct ledger *ledger;
static uint64_t term;
static unsigned accounts = 100;

static void appended(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                     const struct err *err)
{
        (void)last_seq, (void)err;
        store_batch_free(batch);
        must(result == STORE_DURABLE, "append");
        sem_post(arg);
}

static void append(struct store_batch *batch)
{
        sem_t done;

        sem_init(&done, 0, 0);
        store_append(server.store, term, batch, appended, &done);
        sem_wait(&done);
        sem_destroy(&done);
}

static void on_movement(void *arg, const struct bank_entry *e)
{
        ledger_add(arg, e);
}

static void order(struct bank *b, struct bank_order *o, int64_t at_ms)
{
        struct err err = {""};

        if (bank_apply(b, o, at_ms, on_movement, ledger, NULL, &err) != 0) {
                fprintf(stderr, "bench_ledger: %s\n", err.text);
                exit(1);
        }
}

static void name_print(char ret[static 32], unsigned account)
{
        snprintf(ret, 32, "project%02u", account);
}

static void open_accounts(struct bank *b)
{
        for (unsigned i = 0; i < accounts; i++) {
                char name[32];

                name_print(name, i);
                order(b, &(struct bank_order){.op = BANK_OPEN, .account = str_of(name)}, BEGIN_MS);
                order(b,
                      &(struct bank_order){
                              .op = BANK_DEPOSIT, .account = str_of(name), .amount = 1000000000000},
                      BEGIN_MS);
        }
}

static void charge_all(struct bank *b, uint64_t count)
{
        struct store_batch *batch = store_batch_new();
        uint64_t pages = count / PAGE;

        for (uint64_t page = 0; page < pages; page++) {
                int64_t at_ms = BEGIN_MS + (int64_t)((double)YEARS_MS * (double)page / (double)pages);
                char name[32];

                name_print(name, (unsigned)(page % accounts));
                for (unsigned i = 0; i < PAGE; i++)
                        order(b,
                              &(struct bank_order){.op = BANK_CHARGE,
                                                   .account = str_of(name),
                                                   .user = STR("somebody@lab.example"),
                                                   .place = STR("cluster/long"),
                                                   .amount = 57600},
                              at_ms + i);
                ledger_flush_to(ledger, batch);
                if (page % COMMIT == COMMIT - 1) {
                        append(batch);
                        batch = store_batch_new();
                }
        }
        append(batch);
}

struct sum {
        uint64_t count;
        int64_t amount;
};

static int on_entry(void *arg, const struct bank_entry *e)
{
        struct sum *s = arg;

        s->count++;
        s->amount += e->amount;
        return 0;
}

/* Reads a month of an account; returns its time in ms. */
static double statement(const char *account, int64_t from_ms, struct sum *ret)
{
        int64_t begun = clock_mono_ns();

        *ret = (struct sum){0};
        must(ledger_read(&server, str_of(account), from_ms, from_ms + 30 * 86400000ll, 0, on_entry, ret,
                         NULL) == 0,
             "ledger_read");
        return (double)(clock_mono_ns() - begun) / 1e6;
}

static double median(double *v, size_t count)
{
        for (size_t i = 0; i < count; i++)
                for (size_t k = i + 1; k < count; k++)
                        if (v[k] < v[i]) {
                                double x = v[i];

                                v[i] = v[k];
                                v[k] = x;
                        }
        return v[count / 2];
}

static void measure(struct bank *b, uint64_t count)
{
        double early[ROUNDS], late[ROUNDS], balance[ROUNDS];
        struct sum sum;

        for (unsigned i = 0; i < ROUNDS; i++) {
                int64_t begun;
                char name[32];

                name_print(name, i * 7 % accounts);
                early[i] = statement(name, BEGIN_MS + 40 * 86400000ll, &sum);
                must(sum.count > 0, "a month without movements");
                late[i] = statement(name, BEGIN_MS + YEARS_MS - 31 * 86400000ll, &sum);
                begun = clock_mono_ns();
                for (unsigned k = 0; k < 1000; k++)
                        must(bank_available(bank_account(b, str_of(name)), STR("somebody@lab.example"),
                                            STR("cluster/long"), BEGIN_MS + YEARS_MS) > 0,
                             "a balance");
                balance[i] = (double)(clock_mono_ns() - begun) / 1e6;
        }
        line("ledger", "movements_of_a_month", count, (double)sum.count, "1", "higher");
        line("ledger", "statement_of_an_early_month", count, median(early, ROUNDS), "ms", "lower");
        line("ledger", "statement_of_the_last_month", count, median(late, ROUNDS), "ms", "lower");
        line("ledger", "balance", count, median(balance, ROUNDS), "us",
             "lower"); /* of 1000 the ms are one's us */
}

int main(int argc, char **argv)
{
        uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
        const char *tmp = getenv("TMPDIR");
        BUF_CLEANUP struct buf folder = {0}, address = {0};
        struct bank *b = bank_new();
        int64_t begun;

        if (argc > 2)
                accounts = (unsigned)strtoul(argv[2], NULL, 10);
        must(accounts > 0, "usage: bench_ledger [MOVEMENTS [ACCOUNTS [DATABASE]]]");
        if (argc > 3) {
                buf_printf(&address, "sqlite:%s", argv[3]);
        } else {
                buf_printf(&folder, "%s/drover-bench-ledger-XXXXXX", tmp ? tmp : "/var/tmp");
                buf_z(&folder);
                must(mkdtemp(folder.p) != NULL, "mkdtemp");
                buf_printf(&address, "sqlite:%s/ledger.db", folder.p);
        }
        must(store_open(buf_z(&address), &server.store, NULL, NULL) == 0, "store_open");
        must(store_term_take(server.store, &term, NULL) == 0, "store_term_take");
        ledger = ledger_new();
        open_accounts(b);
        begun = clock_mono_ns();
        charge_all(b, count);
        line("ledger", "charges_stored", count, (double)count / ((double)(clock_mono_ns() - begun) / 1e9),
             "1/s", "higher");
        if (argc <= 3)
                measure(b, count);
        ledger_free(ledger);
        bank_free(b);
        store_close(server.store);
        if (argc <= 3)
                fs_remove_tree(AT_FDCWD, folder.p);
        return 0;
}
