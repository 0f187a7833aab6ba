"""ClassAd expressions made from a seed, for comparing what two libraries make of them.

An expression comes with the syntax that it is written in: n (new) or o (old). Nothing in one depends on the time, the
zone or chance. MY and TARGET are the ads that it stands in.
"""
import random

MY = r"""[ i = 7; r = 2.5; s = "Abc"; b = true; u = undefined; e = error; l = { 1, 2, 3 }; words = { "a", "B", "c" };
  mixed = { 1, "x", undefined, 2.5 }; n = [ a = 1; i = 8; up = r; deep = [ a = 2; s = "in" ] ]; both = 1; ref = i + 1;
  cycle = cycle + 1; other1 = TARGET.both; list = "a, b,c"; numbers = "1, 2.5,3"; ads = { [ a = 1 ], [ a = 2; b = 3 ], [ b = 4 ] };
  want = a > 1; RequestCpus = 2; RequestMemory = 1024; Owner = "ann"; ver = "8.9.7"; t = absTime("2024-02-29T12:34:56+00:00");
  d = relTime(93784); empty = ""; none = {}; neg = -3; big = 9223372036854775807 ]"""
TARGET = r"""[ i = 70; both = 2; x = 5; name = "slot1@node1.example"; Memory = 4096; Cpus = 4; s = "abc"; back = both; yours = TARGET.i;
  Arch = "X86_64"; OpSys = "LINUX"; HasIt = true; l = { 10, 20 }; n = [ a = 9; c = both ];
  CondorVersion = "$CondorVersion: 25.0.0 2025-06-05 BuildID: 1 $"; sites = "T1,T2 , t3"; devs = { dev_a, dev_b };
  dev_a = [ Capability = 8.0; Mb = 100 ]; dev_b = [ Capability = 4.0; Mb = 50 ] ]"""

STRINGS = ["", "a", "A", "abc", "Abc", "ABC", "a,b,c", "a, b ,c", "A B", "12", "12abc", " 7 ", "1.5", "-3", "1e3", "1, 2,3", "1;2;3",
           "true", "FALSE", "T", "yes", "undefined", "error", "1 + 2", "i", "x=1", "slot1_2@node.example", "ann@site.org", "8.9.7",
           "10.0.1", "8.9", "X86_64", "/usr/bin/env", "a.b", "a\\\\d", "say \\\"hi\\\"", "tab\\there", "[a-c]+", "^a", "b$", "(a)(b)?",
           "\\\\d+", "A=1 B=2", "A=1;B=2", "one two", "'a b' c", "a''b", "2024-02-29T12:34:56+00:00", "1+02:03:04", "00:10",
           "%Y-%m-%d", "%H:%M", "<", "==", ">="]
INTEGERS = ["0", "1", "2", "3", "7", "10", "64", "100", "-1", "-5", "1000000", "4096", "12"] * 40 + ["2147483648", "9223372036854775807"]
REALS = ["0.0", "0.5", "1.0", "1.5", "2.5", "-2.5", "3.5", "1e3", "1.5E-3", ".25", "123456.789"] * 40 + ["-0.0", "1e300"]
NAMES = ["i", "r", "s", "b", "u", "e", "l", "words", "mixed", "n.a", "n.up", "n.deep.a", "n.deep.i", "n.nosuch", "both", "TARGET.both", "MY.both",
         "TARGET.i", "TARGET.back", "TARGET.yours", "x", "Memory", "Cpus", "TARGET.Memory", "MY.nosuch", "TARGET.nosuch", "nosuch",
         "ref", "cycle", "other1", "list", "numbers", "ads.a", "ads[1].b", "l[1]", "l[9]", "words[0]", "n[\"a\"]", "RequestCpus", "Owner",
         "TARGET.Arch", "OpSys", "HasIt", "TARGET.l[0]", "TARGET.n.c", "ver", "sites", "empty", "none", "neg", "t", "d", "name",
         ".i", "self.i", "n.self.i", "n.parent.i", "root.r", "n.root.s"]
BINARY = ["+", "-", "*", "/", "%", "<<", ">>", ">>>", "<", "<=", ">=", ">", "==", "!=", "=?=", "=!=", "is", "isnt", "&", "^", "|", "&&", "||"]
COMMON = ["+", "-", "*", "/", "<", ">=", "==", "!=", "=?=", "=!=", "&&", "||"]

# name and kinds of arguments: i integer, r real, n number, s string, b boolean, a anything, l list, N list of numbers, S list of strings,
# c list in a string, p pattern, o options, v version, x expression over ads, A list of ads, t time, d duration, O operator; ? optional.
FUNCTIONS = {
    "isUndefined": "a", "isError": "a", "isString": "a", "isInteger": "a", "isReal": "a", "isList": "a", "isClassAd": "a", "isBoolean": "a",
    "isAbstime": "a", "isReltime": "a", "member": "al", "identicalMember": "al", "size": "l", "sum": "N", "avg": "N", "min": "N", "max": "N",
    "anyCompare": "ONn", "allCompare": "ONn", "strcat": "saa", "join": "sSs", "toUpper": "s", "toLower": "s", "substr": "sii?",
    "strcmp": "ss", "stricmp": "ss", "versioncmp": "vv", "versionLE": "vv", "versionLT": "vv", "versionGE": "vv", "versionGT": "vv",
    "versionEQ": "vv", "version_in_range": "vvv", "regexp": "pso?", "regexpMember": "pSo?", "regexps": "psso?", "replace": "psso?",
    "replaceAll": "psso?", "int": "a", "real": "a", "string": "a", "bool": "a", "absTime": "t", "relTime": "d", "unparse": "N1", "floor": "n",
    "ceil": "n", "ceiling": "n", "round": "n", "pow": "nh", "quantize": "ng", "ifThenElse": "baa", "interval": "i", "eval": "s",
    "stringListsIntersect": "ccm?", "stringListSize": "cm?", "stringListSum": "k", "stringListAvg": "k", "stringListMin": "k",
    "stringListMax": "k", "stringListMember": "scm?", "stringListIMember": "scm?", "stringListSubsetMatch": "ccm?",
    "stringListISubsetMatch": "ccm?", "stringList_regexpMember": "pcm?o?", "envV1ToV2": "q", "mergeEnvironment": "qq?", "listToArgs": "S",
    "argsToList": "s", "split": "sm?", "splitUserName": "s", "splitSlotName": "s", "evalInEachContext": "xA", "countMatches": "xA",
    "getYear": "T", "getMonth": "T", "getDayOfMonth": "T", "getDayOfYear": "T", "getDayOfWeek": "T", "getHours": "D", "getMinutes": "D",
    "getSeconds": "D", "getDays": "E", "formatTime": "Tf", "nosuchfunction": "a"}
# What files and configurations are full of.
USUAL = ["isUndefined", "isError", "ifThenElse", "member", "size", "strcat", "substr", "toUpper", "toLower", "strcmp", "stricmp", "regexp",
         "regexps", "split", "join", "int", "real", "string", "floor", "ceiling", "round", "min", "max", "sum", "stringListMember",
         "stringListIMember", "stringListSize", "stringListsIntersect", "versionGE", "versionLT", "versioncmp", "quantize", "eval",
         "countMatches", "evalInEachContext", "isString", "isInteger", "bool", "anyCompare", "allCompare", "identicalMember", "splitSlotName",
         "splitUserName", "unparse"]
OWN = {"g": ["1", "2", "10", "128", "0.5", "2.5", "l", "x", "{ 1024, 2048 }", "{ 8, 16.5, 4 }", "TARGET.l", "Cpus"], "q": ['"A=1"', '"A=1 B=2"', '"A=1;B=2"', '"B=x"', '""'], "h": ["2", "3", "0.5", "-1", "0", "1"], "m": ['","', '" "', '";"', '", "', '":"'], "x": ["a > 1", "a < i", "(b ?: 5) > 3", "a + i", "want", "isUndefined(a)", "a =?= 1", "nosuch > 1"], "O": ['"<"', '"=="', '"is"', '">="', '"!="', '"~"', '"=?="'],
       "o": ['"i"', '""', '"m"', '"g"', '"fi"', '"s"'], "A": ["ads", "n", "{ n }", "TARGET.devs", "{ [ a = 5 ] }", "none"],
       "t": ['"2024-02-29T12:34:56+00:00"', '"2024-01-01"', "0", "1700000000", "t"],
       "d": ["90", "3600", "0", "86400", "i", "-5", "d"], "T": ["t", "1700000000", "0", 't + relTime(86400)'],
       "D": ["t", "d", "3661"], "E": ["d", "t - t"], "f": ['"%Y-%m-%d"', '"%H:%M:%S"', '"%j"', '"%%"']}


class Maker:
    """Makes expressions; the same seed makes the same ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def expression(self):
        """The syntax and an expression."""
        old = self.random.random() < 0.15
        text = self.any(self.random.choice((1, 2, 2, 3)))
        return ("o" if old else "n"), text

    def pick(self, of):
        return self.random.choice(of)

    def string(self):
        return '"' + self.pick(STRINGS) + '"'

    def literal(self):
        return self.random.choices([lambda: self.pick(INTEGERS), lambda: self.pick(REALS), self.string, lambda: self.pick(("true", "false")),
                                    lambda: "undefined", lambda: "error", lambda: self.list_of(0, "a")], (6, 4, 6, 3, 1.5, 0.7, 1))[0]()

    def list_of(self, depth, kind):
        return "{ " + ", ".join(self.of_kind(kind, depth) for _ in range(self.random.randrange(4))) + " }"

    def any(self, depth):
        if depth <= 0:
            return self.pick(NAMES) if self.random.random() < 0.45 else self.literal()
        return self.random.choices([lambda: self.binary(depth), lambda: self.call(depth), lambda: self.unary(depth), lambda: self.choice(depth),
                                    lambda: self.selected(depth), lambda: self.any(0)], (7, 9, 1.5, 1.2, 0.6, 0.7))[0]()

    def unary(self, depth):
        return self.pick(("!", "-", "~", "+")) + "(" + self.any(depth - 1) + ")"

    def binary(self, depth):
        operator = self.pick(COMMON if self.random.random() < 0.7 else BINARY)
        kind = self.random.random()
        if kind < 0.45:
            left, right = self.of_kind("n", depth - 1), self.of_kind("n", depth - 1)
        elif kind < 0.6:
            left, right = self.of_kind("s", depth - 1), self.of_kind("s", depth - 1)
        else:
            left, right = self.any(depth - 1), self.any(depth - 1)
        text = f"{left} {operator} {right}"
        return f"({text})" if self.random.random() < 0.4 else text

    def choice(self, depth):
        if self.random.random() < 0.3:
            return f"({self.any(depth - 1)}) ?: ({self.any(depth - 1)})"
        return f"({self.of_kind('b', depth - 1)} ? {self.any(depth - 1)} : {self.any(depth - 1)})"

    def selected(self, depth):
        if self.random.random() < 0.5:
            return f"{self.list_of(depth - 1, 'a')}[{self.pick(('0', '1', '2', '-1', 'i', '1.0'))}]"
        return f"[ a = {self.any(depth - 1)}; i = 3 ].{self.pick(('a', 'i', 'r', 'nosuch'))}"

    def call(self, depth):
        name = self.pick(USUAL if self.random.random() < 0.75 else sorted(FUNCTIONS))
        kinds, arguments = FUNCTIONS[name], []
        for at, kind in enumerate(kinds):
            if kind in "?1":
                continue
            if kinds[at + 1:at + 2] == "?" and self.random.random() < 0.5:
                break
            arguments.append(self.of_kind(kind, depth - 1) if self.random.random() < 0.9 else self.any(0))
        if name == "unparse":
            arguments = [self.pick(("ref", "i", "nosuch", "cycle", "s", "i", "want", "1 + 2"))]
        if name == "join":
            arguments = [self.string(), self.list_of(0, "s")] if self.random.random() < 0.5 else arguments
        if self.random.random() < 0.02 and len(arguments) > 1 and name != "formatTime":  # whose default is now
            arguments.pop()
        if name == "versioncmp":  # the manual says of its numbers only whether they are below 0
            return "(versioncmp(" + ", ".join(arguments) + f") {self.pick(('<', '==', '>='))} 0)"
        if self.random.random() < 0.2:
            name = self.pick((name.upper(), name.lower()))
        return name + "(" + ", ".join(arguments) + ")"

    def of_kind(self, kind, depth):
        if kind in OWN:
            return self.pick(OWN[kind])
        if kind == "a" or self.random.random() < 0.06:
            return self.any(depth)
        nested = depth > 0 and self.random.random() < 0.4
        if kind == "i":
            return self.pick(("i", "l[1]", "x", "neg", "size(s)", "Cpus")) if nested else self.pick(INTEGERS)
        if kind == "n":
            return self.number(depth) if nested else self.pick(INTEGERS + REALS + ["i", "r", "x", "n.a", "TARGET.both"])
        if kind == "b":
            return self.binary(depth) if nested else self.pick(("true", "false", "b", "HasIt", "i > 3", "nosuch", "1", "0.0", "s == \"abc\""))
        if kind in "lNS":
            own = {"l": "a", "N": "n", "S": "s"}[kind]
            return self.list_of(max(depth, 0), own) if self.random.random() < 0.7 else self.pick(("l", "words", "mixed", "none", "TARGET.l"))
        if kind == "c":
            return self.pick(('"a,b,c"', '"A, b ,C"', '"1,2,3"', '"1.5 -2, 7"', '""', '"a;b"', "list", "numbers", "sites", '"x"', '"10,9"') * 4 +
                             ('" "', '","'))
        if kind == "k":
            return self.pick(('"1,2,3"', '"1.5 -2, 7"', "numbers", '"10,9"', '"3"', '""', '"2.5,0.5"', '"-1,-2"', '"a,1"'))
        if kind == "p":
            return self.pick(('"^a"', '"b$"', '"[a-c]+"', '"(a)(b)?"', '"A"', '"x"', '"\\\\d+"', '"^slot(\\\\d)"', '".+"', '"a|b"') * 4 +
                             ('".*"', '""', '"("'))
        if kind == "v":
            return self.pick(('"8.9.7"', '"8.10.0"', '"8.9"', '"8.9.7a"', '"10"', '""', "ver", '"a"', '"8.09.7"', '"v2"'))
        return self.pick(("s", "TARGET.s", "name", "Owner", "list", "toUpper(s)", 'strcat(s, "x")')) if nested else self.string()

    def number(self, depth):
        return f"({self.of_kind('n', depth - 1)} {self.pick(('+', '-', '*', '/', '%'))} {self.of_kind('n', depth - 1)})"


def make(seed, count):
    """`count` expressions that differ, with their syntax."""
    maker, seen, made = Maker(seed), set(), []
    while len(made) < count:
        one = maker.expression()
        if one not in seen and len(one[1]) < 200:
            seen.add(one)
            made.append(one)
    return made
