/* Templates and expressions: what is written, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jdl/galaxy/template.h"

static struct arena arena;

static struct expressions begin(void)
{
        struct expressions x = {.arena = &arena};
        struct datum *d = datum_new(&arena, DATUM_MAP), *list = datum_new(&arena, DATUM_LIST),
                     *flag = datum_bool(&arena, true), *file = datum_new(&arena, DATUM_MAP);

        x.names = datum_new(&arena, DATUM_MAP);
        datum_put(&arena, x.names, STR("n"), datum_int(&arena, 5));
        datum_put(&arena, x.names, STR("s"), datum_text(&arena, STR("a b")));
        datum_put(&arena, x.names, STR("none"), datum_none(&arena));
        for (int i = 1; i < 4; i++)
                datum_add(&arena, list, datum_int(&arena, i));
        datum_put(&arena, x.names, STR("list"), list);
        flag->written = true;
        flag->text = STR("--on");
        datum_put(&arena, x.names, STR("flag"), flag);
        file->written = true;
        file->text = STR("/in.bed");
        datum_put(&arena, file, STR("ext"), datum_text(&arena, STR("bed")));
        datum_put(&arena, d, STR("file"), file);
        datum_put(&arena, d, STR("x"), datum_text(&arena, STR("deep")));
        datum_put(&arena, x.names, STR("d"), d);
        return x;
}

static void written(const char *text, const char *want)
{
        struct expressions x = begin();
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        if (template_render(&x, "t", 1, str_of(text), &out, &err) != 0)
                fail_msg("%s: %s", text, err.text);
        assert_string_equal(buf_z(&out), want);
        arena_reset(&arena);
}

static void refused(const char *text, const char *why)
{
        struct expressions x = begin();
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        assert_true(template_render(&x, "t", 1, str_of(text), &out, &err) < 0);
        if (!strstr(err.text, why))
                fail_msg("'%s' is not in '%s'", why, err.text);
        arena_reset(&arena);
}

static void placeholders(void **state)
{
        (void)state;
        written("a $n ${n}b $s.$n, $d.x; $d['x']!", "a 5 5b a b.5, deep; deep!");
        written("\\$n $ 1 $5 \\${HOME} \\#if", "$n $ 1 $5 ${HOME} #if");
        written("$flag $none $list $d.file $d.file.ext", "--on None [1, 2, 3] /in.bed bed");
        written("${n + 1} ${list[-1]} $(1 + 1) $str($n)$len($list)", "6 3 2 53");
        written("$s.upper().split(' ')[1]x", "Bx");
        refused("x\n$nothing", "t:2: $nothing: there is no variable nothing");
        refused("$d", "a dict has no text");
        refused("$d.y", ".y is not known");
        refused("${n", "'}' is missing");
        refused("$s.center(3)", "center() is not supported");
}

static void expressions(void **state)
{
        static const struct {
                const char *text, *want;
        } cases[] = {{"1 + 2 * 3 - -4", "11"},
                     {"(1 + 2) * 3", "9"},
                     {"7 / 2", "3.5"},
                     {"7 // 2", "3"},
                     {"-7 % 3", "2"},
                     {"1e3", "1000.0"},
                     {"'a' + \"b\\n\"", "ab\n"},
                     {"'%s-%d' % [1, 2.5]", "1-2"},
                     {"1 < 2 <= 2", "True"},
                     {"3 < 2 < zero", ""},
                     {"not $n == 5 or $flag", "--on"},
                     {"$none and $none.x", "None"},
                     {"$flag or $no_such", "--on"},
                     {"str($flag) == '--on'", "True"},
                     {"$flag == True", "True"},
                     {"$n == '5'", "True"},
                     {"$none is None", "False"}, /* it is a parameter */
                     {"None is None", "True"},
                     {"$n is not None", "True"},
                     {"2 in $list", "True"},
                     {"'x' not in $s", "True"},
                     {"'x' in $d", "True"},
                     {"'a' if $n > 3 else $no_such", "a"},
                     {"$no_such if $n > 9 else 'b'", "b"},
                     {"[x * 2 for x in $list if x != 2]", "[2, 6]"},
                     {"','.join(str(x) for x in $list)", "1,2,3"},
                     {"[a + b for a, b in zip($list, range(3))]", "[1, 3, 5]"},
                     {"max($list) - min(1, 2) + abs(-1)", "3"},
                     {"int('7') + float('0.5')", "7.5"},
                     {"sorted(['b', 'a'])", "['a', 'b']"},
                     {"'a-b-c'.replace('-', '').strip('a')", "bc"},
                     {"$d.file.is_of_type('txt', 'bed')", "True"},
                     {"$d.get('y', 1)", "1"},
                     {"len('abc') > 2 and True", "True"}};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                BUF_CLEANUP struct buf text = {0};

                buf_printf(&text, "#echo %s#", cases[i].text);
                if (*cases[i].want)
                        written(buf_z(&text), cases[i].want);
                else
                        refused(buf_z(&text), "no variable");
        }
}

static void directives(void **state)
{
        (void)state;
        written("a\n  #if $n > 3\n  b\n  #else\n  c\n  #end if\nd\n", "a\n  b\nd\n");
        written("#if $n == 1\n1\n#elif $n == 5:\n5\n#else if $no\n6\n#else\n7\n#end if\n", "5\n");
        written("#if $none\n#if $x then 1 else 2\n#for $i in $y\n#end for\n#end if\nz", "z");
        written("x #if $flag# y #else# z #end if#.", "x  y .");
        written("#if $n then 'one' else 'two'#!", "one!");
        written("#for $i, $x in enumerate($list)\n$i:$x\n#end for\n", "0:1\n1:2\n2:3\n");
        written("#for x in $list\n#if $x == 2\n#continue\n#end if\n#if x == 3\n#break\n#end if\n$x\n#end "
                "for\n$x",
                "1\n3");
        written("#for $x in []\n$no\n#end for\nend", "end");
        written("#set $a = [1,\n  2]\n#silent $a.append(3)\n#set $a += [4]\n$a", "[1, 2, 3, 4]");
        written("#unless $none\nu\n#end unless\n", "u\n");
        written("a #slurp\nb ## c\n## d\ne#* f\n *#g", "a b \neg");
        written("#raw\n$n #if\n#end raw\n", "$n #if\n");
        written("#!/bin/sh\n# a comment of the shell\n", "#!/bin/sh\n# a comment of the shell\n");
        refused("#if 1\n", "no #end if");
        refused("#end for\n", "#end for without its beginning");
        refused("\n#while f(x)\n", "t:2: #while is not supported");
        refused("#if $n 5\n#end if", "'5' behind #if is not understood");
        refused("#for $x in $n\n#end for", "a for goes through a list, not a int");
        refused("#set $d.x = 1\n", "#set is supported as");
        refused("#set $a, 1 = 1, 2\n", "#set is supported as");
        refused("#for $x of $list\n#end for\n", "#for is supported as");
        refused("#echo lambda x: x\n", "lambda is not supported");
}

static void targets(void **state)
{
        BUF_CLEANUP struct buf deep = {0};

        (void)state;
        written("#set $a, $b = $s.split()\n$b$a", "ba");
        written("#set ($a, $b) = [1, 2]#$a$b#set a, (b, $c) = 3, (4, 5)#$a$b$c", "12345");
        written("#set $a, $b = 1, 2\n#set $a, $b = $b, $a\n$a$b", "21");
        written("#set $t = $n, 'x'\n$t#set $u = 1,#$u", "(5, 'x')(1,)");
        written("#for $i, ($a, $b) in enumerate([(1, 2), (3, 4)])#$i$a$b #end for#", "012 134 ");
        written("#for $x in 1, 'b'#$x#end for# ${ [a + c for (a, (b, c)) in [(1, (2, 3))]] }", "1b [4]");
        written("#def f(x)\n#return $x, $x + 1\n#end def\n#set $a, $b = $f(1)\n$a$b", "12");
        written("#set global $a, $b = 1, 2\n#def f()\n#return $a + $b\n#end def\n$f()", "3");
        written("#set $m = {}\n#set $k = 'a'\n#set $m[$k] = 1\n#set $m['b'] = {'c': [1, 2]}\n"
                "#set $m['b']['c'][-1] = 3\n#set $m[$k] += 1\n$m['a'] $m['b']['c']",
                "2 [1, 3]");
        written("#set $l = [1, 2]\n#set $l[0], $x = 7, 8\n$l$x", "[7, 2]8");
        refused("\n#set $a, $b = [1, 2, 3]\n", "t:2: 2 names for what is no list of so many");
        refused("#set $a, $b = 'xy'\n", "2 names for");
        refused("#set $a, ($b, $c) = 1, 2\n", "2 names for");
        refused("#set $a, $b += 1, 2\n", "#set is supported as");
        refused("#set $new += 1\n", "no variable new");
        refused("#set $list[3] = 1\n", "there is no item 3 of 3");
        refused("#set $list['x'] = 1\n", "an index is a number");
        refused("#set $s[0] = 'x'\n", "an item of a str cannot be set");
        refused("#set $t = (1, 2)\n#set $t[0] = 1\n", "an item of a tuple cannot be set");
        refused("#set $d['file']['ext'] = 'x'\n", "an item of a dict cannot be set");
        refused("#set $a = [1]\n#set $a[0] = $a\n$a", "has no text");
        refused("#for $a,$b,$c,$d,$e,$f,$g,$h,$i in []\n#end for\n", "more than 8 variables");
        for (int i = 0; i < 200; i++)
                buf_addz(&deep, i ? "(" : "#for ");
        refused(buf_z(&deep), "nested too deep");
}

/* Whatever is written, it ends soon and is small. */
static void limits(void **state)
{
        BUF_CLEANUP struct buf deep = {0};

        (void)state;
        refused("#for $a in range(99999)\n#for $b in range(99999)\n#set $c = $a\n#end for\n#end for\n",
                "steps");
        refused("#for $a in range(99999)\n$a $a $a $a $a $a\n#end for\n", "bytes are written");
        refused("#set $x = 'aaaaaaaa'\n#for $i in range(30)\n#set $x = $x + $x\n#end for\n", "longer than");
        refused("#set $x = [1]\n#for $i in range(30)\n#set $x = $x + $x\n#end for\n", "items");
        refused("#echo range(99999999)\n", "items");
        refused("#set $a = []\n#set $b = [$a]\n#silent $a.append($b)\n$a", "has no text");
        for (int i = 0; i < 300; i++)
                buf_addz(&deep, "(");
        refused((buf_addz(&deep, "1"), "#echo ((((((1\n"), "missing");
        {
                BUF_CLEANUP struct buf echo = {0};

                buf_printf(&echo, "#echo %s\n", buf_z(&deep));
                refused(buf_z(&echo), "nested too deep");
                buf_reset(&deep);
                for (int i = 0; i < 300; i++)
                        buf_addz(&deep, "#if 1\n");
                refused(buf_z(&deep), "nested too deep");
        }
}

static void python(void **state)
{
        (void)state;
        written("$len((1, 2)) ${ {'a': 'x'}['a'] } $s[2:] $list[:2] $list[-2:] $s[0:1]",
                "2 x b [1, 2] [2, 3] a");
        written("#if $s.endswith(('c', 'b'))#yes#end if##if 5 in ($n,)#one#end if#", "yes");
        written("#if $s.endswith(('c', 'b'))#yes#end if# #if 5 in ($n,)#one#end if#", "yes one");
        written("$flag.value $flag ${ ','.join(map(str, $list)) } $sum($list) $any([0, 1]) $all([0, 1])",
                "True --on 1,2,3 6 True False");
        written("#import os, re as r\n#from os.path import basename as base, splitext\n"
                "$os.path.join('a', 'b/c.x') $base('/p/q.r') $os.path.dirname('/p/q') "
                "$splitext('a.b/c.tar.gz')[0] $r.sub('[0-9]+', '-', 'a1b22') "
                "${ 1 if $r.match('b', 'ab') else 2 } ${ 1 if $r.search('b', 'ab') else 2 }",
                "a/b/c.x q.r /p a.b/c.tar a-b- 2 1");
        written("$varExists('d.x') $varExists('d.y') ${ 'a{}b{1}{{'.format(1, $s) }", "True False a1ba b{");
        written("#if $n == 5 \\\n and $s\nyes\n#end if\n", "yes\n");
        written("[$none][${None}] ${str(None)}#set $l = []#$l.append(1)$l", "[None][] None[1]");
        written("#assert $n == 5, 'no'\nok ${1e12} ${1e-06} ${'''a'''} ${r'\\d'}",
                "ok 1000000000000.0 1e-06 a \\d");
        refused("#assert $n == 6, 'six'\n", "t:1: #assert: six");
        refused("#import subprocess\n", "the module subprocess is not supported");
        refused("#import os\n$os.system('x')", "os.system() is not supported");
        refused("#import os\n$os.path.exists('/etc')", "os.path.exists() is not supported");
        refused("#import re\n$re.sub('(', '', 'a')", "the pattern cannot be matched");
        refused("$map(3, $list)", "map() by a int");
        refused("$list[::2]", "[a:b:c]");
        refused("$str", "a function has no text");
}

/* Names within sections are found from outside, but not those of a template's own dicts. */
static void sections(void **state)
{
        struct expressions x = begin();
        struct datum *section = datum_section(&arena), *inner = datum_section(&arena);
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        (void)state;
        datum_put(&arena, x.names, STR("outer"), section);
        datum_put(&arena, section, STR("inner"), inner);
        datum_put(&arena, inner, STR("depth"), datum_int(&arena, 3));
        assert_int_equal(template_render(&x, "t", 1, STR("$depth $outer.depth"), &out, &err), 0);
        assert_string_equal(buf_z(&out), "3 3");
        assert_int_not_equal(template_render(&x, "t", 1, STR("$x"), &out, &err), 0);
        arena_reset(&arena);
}

static void functions(void **state)
{
        BUF_CLEANUP struct buf deep = {0};

        (void)state;
        written("#def f(x, $y='b')\n<$x$y>\n#end def\n${f(1)}${f($n, 'c')}$f(s)", "<1b>\n<5c>\n<a bb>\n");
        written("#def f(x):\n  #if $x is None\n  #return 'none'\n  #end if\n  #for $i in $list\n#if $i == 2\n"
                "#return $i * 10\n#end if\n#end for\n#end def\n$f(None) $f(1)",
                "none 20");
        written("#def f(x)\n#return\n#end def\n[$f(1)] #echo $f(1) is None#", "[] True");
        written("#def g(x)\n#return $x + 1\n#end def\n#def f(x)\n#return $g($x) * 2\n#end def\n"
                "#set $y = [$f(i) for i in $list]\n$y ${map(g, $list)}",
                "[4, 6, 8] [2, 3, 4]");
        written("#def f()#$varExists('n')$getVar('no', 7)#end def#$f()", "True7");
        /* What the caller sets is its own, what a function sets too; modules are everybody's. */
        written("#import re\n#set $n = 6\n#set global $m = 1\n#def f()\n#set $k = $n\n#return re.sub('5', "
                "'x', "
                "str($k)) + str($m)\n#end def\n$f() $n $varExists('k')",
                "x1 6 False");
        written("#if False\n#def f(x='#')\n#end def\n#end if\n$varExists('f')", "False");
        written("#echo hasattr($d.file, 'ext')# #echo hasattr($d.file, 'no')#", "True False");
        refused("\n#def f(x)\n$x\n", "t:3: what began before this line has no #end def");
        refused("#def f(x)\n#end def\n$f()", "f() lacks its argument x");
        refused("#def f(x)\n#end def\n$f(1, 2)", "f() has 2 arguments");
        refused("#def f(*x)\n#end def\n", "#def is supported as");
        refused("#def f(x)\n\n$x.no\n#end def\n\n$f(1)", "t:3: ");
        refused("#def f(x)\n#set $y = 1\n#end def\n#silent $f(1)\n$y", "no variable y");
        refused("#def f(x)\n#set global $y = 1\n#end def\n$f(1)", "within #def");
        refused("#return 1", "outside of #def");
        refused("#def f(x)\n$f($x)\n#end def\n$f(1)", "too deep");
        refused("$getVar('no')", "no such variable");
        refused("#end def", "without its beginning");
        for (int i = 0; i < 17; i++)
                buf_printf(&deep, "%sa%d", i ? ", " : "#def f(", i);
        buf_addz(&deep, ")\n#end def\n");
        refused(buf_z(&deep), "more than 16 parameters");
        /* Work that a function's length makes is bounded. */
        buf_reset(&deep);
        buf_addz(&deep, "#def f(x)\n");
        for (int i = 0; i < 20000; i++)
                buf_addz(&deep, "##\n");
        buf_addz(&deep, "#end def\n#for $i in range(100000)\n$f(i)\n#end for\n");
        refused(buf_z(&deep), "steps");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(placeholders), cmocka_unit_test(expressions), cmocka_unit_test(directives),
                cmocka_unit_test(targets),      cmocka_unit_test(functions),   cmocka_unit_test(limits),
                cmocka_unit_test(python),       cmocka_unit_test(sections),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);

        arena_deinit(&arena);
        return failed;
}
