/* The most that a step of an evaluation costs. For each function and operator a seeded search looks for the
 * call that takes most processor time for the steps that it is charged: arguments are drawn from a pool of
 * values that are bad for somebody, and the best call so far is changed in one argument at a time.
 * Evaluations have the core's number of steps. Each number is the least of several runs of the call, because
 * what disturbs a run only ever makes it slower. Lines: name value unit which-way-is-better; on standard
 * error the calls.
 *
 * bench_steps [TRIALS [SEED [FUNCTION]]] */
#include <inttypes.h>

#include "bench.h"
#include "classad/functions.h"
#include "classad/print.h"

#define RUNS      3
#define RUN_NS    20000
#define STEPS_MAX 20000u
#define ARGS_MAX_ 4

struct pool {
        char **names;
        size_t n, cap;
        struct symbols *symbols;
        struct ad *my, *target;
        struct eval ev;
        uint64_t random;
};

static uint64_t next(struct pool *p)
{
        uint64_t z = (p->random += 0x9e3779b97f4a7c15u);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

static void add_text(struct pool *p, struct str text)
{
        struct err err = {0};
        char name[32];

        snprintf(name, sizeof(name), "p%zu", p->n);
        MEM_GROW(p->names, p->cap, p->n + 1);
        p->names[p->n++] = str_dupz(str_of(name));
        must(ad_set_text(p->my, symbols_intern(p->symbols, str_of(name)), text, &err) == 0, err.text);
}

static void add(struct pool *p, const char *text)
{
        add_text(p, str_of(text));
}

/* A string of n bytes: a piece repeated. */
static void add_string(struct pool *p, const char *piece, size_t n, const char *end)
{
        struct buf text BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};

        while (text.n < n)
                buf_addz(&text, piece);
        buf_truncate(&text, n);
        buf_addz(&text, end);
        print_string(&out, buf_view(&text));
        add_text(p, buf_view(&out));
}

static void add_repeated(struct pool *p, const char *open, const char *piece, const char *close, size_t n)
{
        struct buf out BUF_CLEANUP = {0};

        buf_addz(&out, open);
        for (size_t i = 0; i < n; i++)
                buf_printf(&out, "%s%s", i ? "," : "", piece);
        buf_addz(&out, close);
        add_text(p, buf_view(&out));
}

/* A regular expression from a small grammar. */
static void put_pattern(struct pool *p, struct buf *out, unsigned depth)
{
        static const char *const atoms[] = {"a", "a",     ".", "[ab]", "[^b]", "\\\\w", "(?:)",
                                            "b", "\\\\b", "^", "$",    "(a)",  "aa"};
        static const char *const repeats[] = {"*",    "+",      "?",     "*?", "+?", "*+", "{2,5}",
                                              "{20}", "{0,9}?", "{300}", "",   "",   ""};
        static const char *const opens[] = {"(", "(?:", "(?=", "(?!", "(?>", "(?<="};
        unsigned parts = 1 + (unsigned)(next(p) % 4);

        for (unsigned i = 0; i < parts; i++) {
                if (depth && next(p) % 2) {
                        bool behind;

                        buf_addz(out, opens[next(p) % 6]);
                        behind = out->p[out->n - 1] == '=' && out->p[out->n - 2] == '<';
                        put_pattern(p, out, behind ? 0 : depth - 1);
                        buf_addz(out, ")");
                } else {
                        buf_addz(out, atoms[next(p) % 13]);
                }
                buf_addz(out, repeats[next(p) % 13]);
                buf_addz(out, next(p) % 6 ? "" : "|");
                buf_addz(out, next(p) % 12 || !depth ? "" : "\\\\1");
        }
}

static void fill_patterns(struct pool *p)
{
        for (unsigned i = 0; i < 100; i++) {
                struct buf out BUF_CLEANUP = {0};

                buf_char(&out, '"');
                put_pattern(p, &out, 3);
                buf_char(&out, '"');
                add_text(p, buf_view(&out));
        }
}

static void fill(struct pool *p)
{
        static const char *const plain[] = {
                "0",
                "-1",
                "1",
                "63",
                "9223372036854775807",
                "1e-300",
                "1.7976931348623157e308",
                "4.9e-324",
                "0.5",
                "true",
                "undefined",
                "error",
                "\"\"",
                "\"a\"",
                "\"i\"",
                "\"fg\"",
                "\"fgi\"",
                "\"ix\"",
                "\"<=\"",
                "\"is\"",
                "\", \"",
                "\"%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%"
                "c%c\"",
                "\"%U%V%G%j%U%V%G%j%U%V%G%j%U%V%G%j%U%V%G%j%U%V%G%j%U%V%G%j%U%V%G%j%U%V%G%j%U%V%G%j%U%V%G%j%"
                "U%V%G%j\"",
                "\"2024-02-29T12:30:00+01:00\"",
                "\"1+02:03:04.5\"",
                "absTime(0, 3600)",
                "relTime(93784.5)",
                "\"(?:a?){12}[bc]d\"",
                "\"(a+)+$\"",
                "\"(a*)*b\"",
                "\"a*b\"",
                "\"(?:a{500}b?)*c\"",
                "\"(a*)\\\\1$\"",
                "\"(?=(a*))\\\\1b\"",
                "\"a{4000}b?c\"",
                "\"(?:(?:(?:a{1,9}){1,9}){1,9}){1,9}\"",
                "\"[^b]*b\"",
                "\"(?s).*(?<!a)b\"",
                "\"x*\"",
                "\"\\\\B\"",
                "\"(?:|||||||||||||||||)*b\"",
                "\"(?R)?b\"",
                "\"(a|b(?1))*c\"",
                "\"(?i)(?:\\\\w|\\\\W)*?z\"",
                "\"[[:alpha:]]{1,200}?[[:digit:]]\"",
                "\"\\\\p{L}+\\\\d\"",
                "\"(*UTF)a*?b\"",
                "\"(*UTF)x*\"",
                "\"(\"",
                "\"(?:a?){3000}\"",
                "\"((((((((((a*)*)*)*)*)*)*)*)*)*b\"",
                "\"(?<=a{200})b\"",
                "\"\\\\X*b\"",
                "\"aaaa.*aaaa.*b\"",
                "[ a = 1; b = \"x\" ]",
                "p0 + p1",
                "{ p40, p41, p42 }",
                "unparse(p41)",
                "\"p41\"",
                "{}",
                "\"\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\"",
                "TARGET.t0",
                "[ x = [ y = [ z = w ] ] ]",
                "\"(?:(?:a|b)|(?:a|c)|(?:a|d))*e\"",
                "\"0.000000000000000000000000000000000000000000000000000000001e-250\"",
        };
        static const char *const pieces[] = {"a",        "1",        " ",    ",",   "a,",
                                             "a ",       "A=1 ",     "A=1;", "aB",  "1e-300,",
                                             "a@",       "\\",       "'",    "1+",  "node12.example.org, ",
                                             "\xcc\x81", "aaaaaaab", "0",    "(a)", "a|",
                                             "\n"};
        static const char *const ends[] = {"b", "d", "bce"};
        static const size_t sizes[] = {40, 250, 4000, 60000, 900000};
        struct buf deep BUF_CLEANUP = {0};

        for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
                add(p, plain[i]);
        for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
                for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
                        add_string(p, pieces[i], sizes[k], ends[(i + k) % 3]);
        for (size_t n = 10; n <= 100000; n *= 100) {
                add_repeated(p, "{", "1", "}", n);
                add_repeated(p, "{", "1e-300", "}", n);
                add_repeated(p, "{", "\"a\"", "}", n);
                add_repeated(p, "{", "\"node12.example.org\"", "}", n);
                add_repeated(p, "{", "[a=1;b=2]", "}", n);
                add_repeated(p, "{", "p41", "}", n);
                add_repeated(p, "{", "nobody", "}", n);
                add_repeated(p, "strcat(", "\"a\"", ")", n);
        }
        for (int i = 0; i < 150; i++) {
                buf_printf(&deep, "[ d%d = 1; a%d = ", i, i);
                for (int k = 0; k < 28; k++)
                        buf_printf(&deep, "1; e%d_%d = ", i, k);
        }
        buf_addz(&deep, "nobody");
        for (int i = 0; i < 150; i++)
                buf_addz(&deep, " ]");
        add_text(p, buf_view(&deep));
        buf_reset(&deep);
        for (int i = 0; i < 20000; i++)
                buf_printf(&deep, "%strue", i ? " && p9 && " : "p9 && ");
        add_text(p, buf_view(&deep));
        fill_patterns(p);
}

/* A call: a function of the table, or an operator by its form. */
static const char *const forms[] = {"(%s) == (%s)",    "(%s) < (%s)",  "(%s) =?= (%s)", "(%s) + (%s)",
                                    "(%s)[%s]",        "(%s) && (%s)", "(%s) ?: (%s)",  "!(%s)",
                                    "(%s) ? (%s) : 1", "(%s).a",       "{%s, %s}",      "[ q = %s ].q",
                                    "(%s) % (%s)",     "(%s) >> (%s)"};
#define FORMS (sizeof(forms) / sizeof(*forms))

struct shape {
        size_t what;
        unsigned argc;
        struct arg {
                size_t value;
                int inside; /* a function around it, or -1 */
                size_t second;
        } args[ARGS_MAX_];
};

static void put_arg(const struct pool *p, const struct arg *a, struct buf *out)
{
        const struct function *f = a->inside < 0 ? NULL : &functions[a->inside];

        if (!f)
                buf_addz(out, p->names[a->value]);
        else if (f->args_min >= 2)
                buf_printf(out, "%s(%s, %s%s)", f->name, p->names[a->value], p->names[a->second],
                           f->args_min == 3 ? ", \"a\"" : "");
        else
                buf_printf(out, "%s(%s)", f->name, p->names[a->value]);
}

static void put(const struct pool *p, const struct shape *s, struct buf *out)
{
        if (s->what < functions_count) {
                buf_printf(out, "%s(", functions[s->what].name);
                for (unsigned i = 0; i < s->argc; i++) {
                        buf_addz(out, i ? ", " : "");
                        put_arg(p, &s->args[i], out);
                }
                buf_char(out, ')');
                return;
        }
        unsigned at = 0;
        for (const char *f = forms[s->what - functions_count]; *f; f++) {
                if (f[0] == '%' && f[1] == 's') {
                        put_arg(p, &s->args[at++], out);
                        f++;
                } else {
                        buf_char(out, *f);
                }
        }
}

static void draw(struct pool *p, struct arg *a)
{
        a->value = next(p) % p->n;
        a->second = next(p) % p->n;
        a->inside = next(p) % 8 ? -1 : (int)(next(p) % functions_count);
}

static struct shape random_shape(struct pool *p, size_t what)
{
        struct shape s = {.what = what, .argc = 2};

        if (what < functions_count) {
                unsigned low = functions[what].args_min, high = functions[what].args_max;

                high = high > ARGS_MAX_ ? ARGS_MAX_ : high;
                s.argc = low + (unsigned)(next(p) % (high - low + 1));
        }
        for (unsigned i = 0; i < ARGS_MAX_; i++)
                draw(p, &s.args[i]);
        return s;
}

/* Nanoseconds for a step. */
static double cost(struct pool *p, struct str text, uint32_t *ret_steps)
{
        struct expr *e;
        struct value v;
        double best = 1e18;

        if (expr_parse(p->symbols, text, &e, NULL) != 0)
                return 0;
        *ret_steps = 0;
        for (int run = 0; run < RUNS; run++) {
                int64_t from = cpu_ns(), took;
                uint64_t steps = 0;

                do {
                        unsigned batch = 1;

                        do {
                                p->ev.steps = 0;
                                eval_expr(&p->ev, e, p->my, p->target, &v);
                                eval_reset(&p->ev);
                                /* one that a limit ended took all of them, whatever was left */
                                steps +=
                                        p->ev.steps ? (p->ev.steps < STEPS_MAX ? p->ev.steps : STEPS_MAX) : 1;
                        } while (p->ev.steps < 100 && batch++ < 32); /* the clock takes time, too */
                        took = cpu_ns() - from;
                } while (took < RUN_NS);
                if ((double)took / (double)steps < best)
                        best = (double)took / (double)steps;
                *ret_steps = p->ev.steps;
        }
        expr_free(e);
        return best;
}

static double search(struct pool *p, size_t what, unsigned trials, struct buf *ret_text)
{
        struct shape best = random_shape(p, what), s;
        double most = 0;

        for (unsigned i = 0; i < trials; i++) {
                struct buf text BUF_CLEANUP = {0};
                uint32_t steps = 0;
                double ns;

                s = best;
                if (next(p) % 3 == 0)
                        s = random_shape(p, what);
                else
                        draw(p, &s.args[s.argc ? next(p) % s.argc : 0]);
                put(p, &s, &text);
                ns = cost(p, buf_view(&text), &steps);
                if (ns <= most)
                        continue;
                most = ns;
                best = s;
                buf_reset(ret_text);
                buf_printf(ret_text, "%-70s %u steps", buf_z(&text), steps);
        }
        return most;
}

/* What a name of the pool stands for, shortened. */
static void say_pool(const struct pool *p)
{
        for (size_t i = 0; i < p->n; i++) {
                struct buf text BUF_CLEANUP = {0};

                expr_print(&text, ad_find(p->my, symbols_find(p->symbols, str_of(p->names[i]))), p->symbols);
                fprintf(stderr, "%s = " STR_FMT " (%zu bytes)\n", p->names[i],
                        STR_ARG(str_head(buf_view(&text), 60)), text.n);
        }
}

int main(int argc, char **argv)
{
        unsigned trials = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 300;
        struct pool p = {.symbols = symbols_new(), .random = argc > 2 ? strtoull(argv[2], NULL, 10) : 1};
        double worst = 0;

        p.my = ad_new(p.symbols);
        p.target = ad_new(p.symbols);
        must(ad_set_text(p.target, symbols_intern(p.symbols, STR("t0")), STR("strcat(Machine, \"x\")"),
                         NULL) == 0,
             "an attribute");
        fill(&p);
        eval_init(&p.ev, 1700000000, 1);
        p.ev.steps_max = STEPS_MAX;
        say_pool(&p);
        for (size_t what = 0; what < functions_count + FORMS; what++) {
                struct buf text BUF_CLEANUP = {0};
                double ns;

                if (argc > 3 && (what >= functions_count || strcmp(argv[3], functions[what].name) != 0))
                        continue;
                ns = search(&p, what, trials, &text);
                fprintf(stderr, "%8.0f ns  %s\n", ns, buf_z(&text));
                worst = ns > worst ? ns : worst;
        }
        printf("classad_worst_step %.0f ns lower\n", worst);
        eval_deinit(&p.ev);
        ad_free(p.my);
        ad_free(p.target);
        for (size_t i = 0; i < p.n; i++)
                free(p.names[i]);
        free(p.names);
        symbols_free(p.symbols);
        return 0;
}
