/* The built-in functions, a table for each group. */
#include "classad/test_help.h"

static void test_types(void **state)
{
        (void)state;
        check_rows(ROWS({"isUndefined(x)", "true"}, {"isUndefined(1)", "false"}, {"isError(1/0)", "true"},
                        {"isError(undefined)", "false"}, {"isString(\"a\")", "true"},
                        {"isString(1)", "false"}, {"isInteger(1)", "true"}, {"isInteger(1.0)", "false"},
                        {"isReal(1.0)", "true"}, {"isReal(1)", "false"}, {"isList({})", "true"},
                        {"isList(1)", "false"}, {"isClassAd([])", "true"}, {"isClassAd({})", "false"},
                        {"isBoolean(true)", "true"}, {"isBoolean(1)", "false"},
                        {"isAbstime(absTime(0))", "true"}, {"isAbstime(0)", "false"},
                        {"isReltime(relTime(0))", "true"}, {"isReltime(0)", "false"},
                        {"ISundefined(x)", "true"}, {"isUndefined()", "error"}, {"isUndefined(1,2)", "error"},
                        {"isError(nosuch(1))", "true"}, {"nosuch()", "error"}, {"sum(1,2,3)", "error"},
                        {"pow(2)", "error"}),
                   NULL, NULL);
}

static void test_conversions(void **state)
{
        (void)state;
        check_rows(ROWS({"int(\"12abc\")", "12"}, {"int(\"abc\")", "error"}, {"int(1.9)", "1"},
                        {"int(-1.9)", "-1"}, {"int(true)", "1"}, {"int(\"1.9\")", "1"}, {"int(\" 7\")", "7"},
                        {"int({})", "error"}, {"int(x)", "undefined"}, {"int(1e30)", "error"},
                        {"int(relTime(61))", "61"}, {"int(absTime(61))", "61"},
                        {"int(\"9223372036854775807\")", "9223372036854775807"}, {"int(\"0x10\")", "16"},
                        {"real(1)", "1.000000000000000E+00"}, {"real(\"1.5x\")", "1.500000000000000E+00"},
                        {"real(\"x\")", "error"}, {"string(1)", "\"1\""}, {"string(\"a\")", "\"a\""},
                        {"string(true)", "\"true\""}, {"string(x)", "undefined"}, {"string(error)", "error"},
                        {"string({1,\"a\"})", "\"{ 1,\\\"a\\\" }\""}, {"string([a=1])", "\"[ a = 1 ]\""},
                        {"string(absTime(0, 3600))", "\"1970-01-01T01:00:00+01:00\""},
                        {"strcat(\"in \", relTime(3661))", "\"in 01:01:01\""}, {"bool(\"x\")", "undefined"},
                        {"bool(\"TRUE\")", "true"}, {"bool(\"false\")", "false"}, {"bool(0)", "false"},
                        {"bool(2.5)", "true"}, {"bool({})", "error"}, {"bool(x)", "undefined"}),
                   NULL, NULL);
}

static void test_lazy(void **state)
{
        (void)state;
        check_rows(ROWS({"ifThenElse(true, 1, 1/0)", "1"}, {"ifThenElse(0.0, error, 2)", "2"},
                        {"ifThenElse(x, 1, 2)", "undefined"}, {"ifThenElse(\"a\", 1, 2)", "error"},
                        {"ifThenElse(error, 1, 2)", "error"}, {"ifThenElse(1, 2)", "error"},
                        {"eval(\"a + 1\")", "6"}, {"eval(\"1 +\")", "error"}, {"eval(7)", "7"},
                        {"eval(x)", "error"}, {"eval(strcat(\"slot\", 2, \"_State\"))", "\"Idle\""},
                        {"unparse(sum_)", "\"a + 3\""}, {"unparse(x)", "\"\""}, {"unparse(1 + 2)", "error"},
                        {"unparse(TARGET.t)", "\"q * 2\""}, {"unresolved(req)", "\"Arch,Cpus,OpSys\""},
                        {"unresolved(req, \"^OpSys\")", "true"}, {"unresolved(req, \"OpSys.+\")", "false"},
                        {"unresolved(x)", "undefined"}, {"unresolved(req, \"(\")", "error"},
                        {"debug(1 + 2)", "3"},
                        {"evalInEachContext(Prio > 2, {[Prio=3],[Prio=1]})", "{ true,false }"},
                        {"evalInEachContext(Prio, {[Prio=3],[Prio=1]})", "{ 3,1 }"},
                        {"evalInEachContext(Prio, {[Prio=3],x})", "{ 3,undefined }"},
                        {"evalInEachContext(Prio, {[Prio=3],7})", "{ 3,error }"},
                        {"evalInEachContext(Prio, x)", "undefined"},
                        {"countMatches(Prio > 2, {[Prio=3],[Prio=1]})", "1"},
                        {"countMatches(Prio > 2, {[Prio=3],x})", "1"}, {"countMatches(Prio > 2, x)", "0"},
                        {"countMatches(Prio > 2, [Prio = 3])", "error"}, {"countMatches(true, 3)", "error"}),
                   "[ a = 5; sum_ = a + 3; slot2_State = \"Idle\"; RequestCpus = 1;"
                   "  req = OpSys == \"LINUX\" && TARGET.Arch == \"ARM\" && Cpus >= RequestCpus ]",
                   "[ t = q * 2 ]");
}

/* Slots of HTCondor have a list of names of ads, and jobs the attribute that chooses among them. */
static void test_contexts(void **state)
{
        static const char job[] =
                "[ RequireGPUs = Capability > 5; Want = 7; Capability_ = Capability; Big = Mem > Want;"
                "  BigOfTarget = Mem > TARGET.Want; BigOfMy = Mem > MY.Want; Indirect = RequireGPUs;"
                "  Loop = countMatches(Loop, Own) + 1; Own = { G1, G2 }; G1 = [ Capability = 3 ];"
                "  G2 = [ Capability = 6 ] ]";
        static const char slot[] =
                "[ GPUs = { GPUs_a, GPUs_b }; GPUs_a = [ Capability = 8; Mem = 10 ];"
                "  GPUs_b = [ Capability = 4; Mem = 5 ]; Cpus = 4; SlotReq = Capability < 5 ]";

        (void)state;
        check_rows(ROWS({"countMatches(MY.RequireGPUs, TARGET.GPUs)", "1"},
                        {"countMatches(RequireGPUs, GPUs)", "1"}, {"countMatches(Capability > 3, GPUs)", "2"},
                        {"evalInEachContext(RequireGPUs, {TARGET.GPUs_b, TARGET.GPUs_a})", "{ false,true }"},
                        {"countMatches(RequireGPUs, {TARGET.GPUs_a, TARGET.GPUs_c, 7})", "1"},
                        {"max(evalInEachContext(Capability, GPUs))", "8"},
                        {"evalInEachContext(Capability_, Own)", "{ 3,6 }"},
                        {"evalInEachContext(Want, GPUs)", "{ 7,7 }"},
                        {"evalInEachContext(Cpus + 0, GPUs)", "{ 4,4 }"},
                        {"evalInEachContext(Big, GPUs)", "{ true,false }"},
                        {"evalInEachContext(BigOfTarget, GPUs)", "{ true,false }"},
                        {"evalInEachContext(BigOfMy, GPUs)", "{ undefined,undefined }"},
                        {"evalInEachContext(Indirect, GPUs)", "{ undefined,undefined }"},
                        {"countMatches(TARGET.SlotReq, Own)", "1"}, {"countMatches(RequireGPUs, x)", "0"},
                        {"Loop", "1"}),
                   job, slot);
}

static void test_texts(void **state)
{
        (void)state;
        check_rows(
                ROWS({"strcat()", "\"\""}, {"strcat(\"a\", 1, 1.5, true)", "\"a11.500000000000000E+00true\""},
                     {"strcat(\"a\", x)", "undefined"}, {"strcat(x, error)", "undefined"},
                     {"strcat(error, x)", "error"}, {"strcat(1,2,3,4,5,6,7,8)", "\"12345678\""},
                     {"join(\", \", \"a\", \"b\", \"c\")", "\"a, b, c\""},
                     {"join(split(\"a b c\"))", "\"abc\""}, {"join(\";\", split(\"a b c\"))", "\"a;b;c\""},
                     {"join(\",\", \"a\", x, 3)", "\"a,3\""}, {"join(\",\", {})", "\"\""},
                     {"join(\",\", {error})", "error"}, {"join(x, {1, 2})", "\"12\""},
                     {"join(\",\", {x})", "undefined"}, {"join(\",\", x)", "undefined"},
                     {"join(\",\")", "\"\""}, {"join(x)", "undefined"}, {"join(x, {})", "undefined"},
                     {"join({})", "\"\""}, {"join({1, \"a\"})", "\"1a\""},
                     {"join(\",\", {\"\", \"a\", \"\", \"b\"})", "\"a,,b\""}, {"join(error, {1})", "error"},
                     {"toUpper(\"aBc1\")", "\"ABC1\""}, {"toLower(\"AbC\")", "\"abc\""},
                     {"toUpper(x)", "undefined"}, {"toUpper(1)", "\"1\""},
                     {"substr(\"abcdef\", 2)", "\"cdef\""}, {"substr(\"abcdef\", 1, 2)", "\"bc\""},
                     {"substr(\"abcdef\", -2)", "\"ef\""}, {"substr(\"abcdef\", 1, -2)", "\"bcd\""},
                     {"substr(\"abcdef\", -4, -1)", "\"cde\""}, {"substr(\"abc\", 5)", "\"\""},
                     {"substr(\"abc\", -9, 2)", "\"ab\""}, {"substr(\"abc\", 0, 99)", "\"abc\""},
                     {"substr(\"abc\", 2, -9)", "\"\""}, {"substr(1, 2)", "error"},
                     {"strcmp(\"a\", \"b\") < 0", "true"}, {"strcmp(\"a\", \"A\") == 0", "false"},
                     {"stricmp(\"a\", \"A\")", "0"}, {"strcmp(1, \"1\")", "0"}, {"strcmp(x, 1)", "undefined"},
                     {"split(\"a,b;c\", \",;\")", "{ \"a\",\"b\",\"c\" }"}, {"split(\"  \")", "{  }"},
                     {"split(1)", "error"}, {"split(x)", "error"}, {"split(\"a\", x)", "error"},
                     {"split(\"a, b,c\")", "{ \"a\",\"b\",\"c\" }"},
                     {"split(\",a,, b , c,\")", "{ \"a\",\"\",\"b\",\"\",\"c\" }"},
                     {"split(\"a; b\", \";\")", "{ \"a\",\" b\" }"}, {"split(\"a b\", \"\")", "{ \"a b\" }"},
                     {"splitUserName(x)", "error"}, {"splitSlotName(x)", "error"},
                     {"substr(x, error)", "undefined"}, {"strcmp(error, x)", "undefined"},
                     {"stricmp(relTime(1), \"01\")", "0"}, {"splitUserName(\"u@d\")", "{ \"u\",\"d\" }"},
                     {"splitUserName(\"u\")", "{ \"u\",\"\" }"},
                     {"splitSlotName(\"s1@m\")", "{ \"s1\",\"m\" }"},
                     {"splitSlotName(\"m\")", "{ \"\",\"m\" }"}),
                NULL, NULL);
}

static void test_versions(void **state)
{
        /* in order, as the manual has it */
        static const char *const rising[] = {"000", "00", "01", "010", "09", "0", "1", "9", "10"};
        struct world w;
        char text[80];

        (void)state;
        world_init(&w, NULL, NULL);
        for (size_t i = 0; i < sizeof(rising) / sizeof(*rising); i++)
                for (size_t k = 0; k < sizeof(rising) / sizeof(*rising); k++) {
                        snprintf(text, sizeof(text), "versioncmp(\"%s\", \"%s\")", rising[i], rising[k]);
                        world_check(&w, text, i < k ? "-1" : i > k ? "1" : "0");
                        snprintf(text, sizeof(text), "versioncmp(\"v%s.x\", \"v%s.x\")", rising[i],
                                 rising[k]);
                        world_check(&w, text, i < k ? "-1" : i > k ? "1" : "0");
                }
        world_deinit(&w);
        check_rows(ROWS({"versioncmp(\"7.9\", \"7.10\")", "-1"}, {"versioncmp(\"7.x\", \"7.y\")", "-1"},
                        {"versionLT(\"7.9\", \"7.10\")", "true"}, {"versionLE(\"8\", \"8\")", "true"},
                        {"versionGE(\"8.1\", \"8\")", "true"}, {"versionGT(\"8\", \"8\")", "false"},
                        {"versionEQ(\"8\", \"8\")", "true"},
                        {"version_in_range(\"8.5\", \"8.1\", \"9\")", "true"},
                        {"version_in_range(\"9.5\", \"8.1\", \"9\")", "false"}, {"versioncmp(1, \"1\")", "0"},
                        {"versioncmp(x, \"1\")", "undefined"}, {"versionGE(10.5, 9)", "false"},
                        {"versionLT(error, x)", "undefined"}, {"versionEQ(error, 1)", "error"},
                        {"version_in_range(x, \"1\", \"2\")", "error"},
                        {"version_in_range(error, x, \"2\")", "undefined"},
                        {"version_in_range(2, 1, 3)", "true"}),
                   NULL, NULL);
}

static void test_numbers(void **state)
{
        (void)state;
        check_rows(ROWS({"floor(2.7)", "2"}, {"floor(-2.1)", "-3"}, {"ceil(2.1)", "3"}, {"ceiling(2.1)", "3"},
                        {"floor(5)", "5"}, {"floor(\"2.5\")", "2"}, {"floor(\"x\")", "error"},
                        {"floor(x)", "error"}, {"ceiling(x)", "error"}, {"round(x)", "error"},
                        {"pow(x, 1)", "error"}, {"quantize(x, 1)", "error"}, {"quantize(1, x)", "error"},
                        {"round(2.5)", "2"}, {"round(3.5)", "4"}, {"round(-2.5)", "-2"}, {"round(2.6)", "3"},
                        {"round(1e30)", "error"}, {"pow(2, 10)", "1024"},
                        {"pow(2,-1)", "5.000000000000000E-01"}, {"pow(2.0, 2)", "4.000000000000000E+00"},
                        {"pow(0, 0)", "1"}, {"pow(-3, 3)", "-27"}, {"pow(2, 62)", "4611686018427387904"},
                        {"pow(2, 64)", "error"}, {"pow(10.0, 400)", "real(\"INF\")"},
                        {"pow(\"a\", 1)", "error"}, {"log(1)", "0.0"}, {"log(8, 2)", "3.000000000000000E+00"},
                        {"log(0)", "error"}, {"log(-1)", "error"}, {"quantize(7,{4,8})", "8"},
                        {"quantize(3, 8)", "8"}, {"quantize(3, 2)", "4"}, {"quantize(0, 4)", "0"},
                        {"quantize(-3, 2)", "-2"}, {"quantize(1.5, 6.8)", "6.800000000000000E+00"},
                        {"quantize(10, 5.1)", "1.020000000000000E+01"}, {"quantize(0, {4})", "4"},
                        {"quantize(2, {1, 2, \"A\"})", "2"},
                        {"quantize(3, {1, 2, 0.5})", "3.000000000000000E+00"},
                        {"quantize(2.7, {1, 2, 0.5})", "3.000000000000000E+00"},
                        {"quantize(3, {1, 2, \"A\"})", "error"}, {"quantize(3, 0)", "3"},
                        {"quantize(\"a\", 2)", "error"}, {"random(1)", "0"}, {"random(0)", "error"},
                        {"random() < 1.0 && random() >= 0", "true"}, {"random(2.5) < 2.5", "true"},
                        {"random(\"a\")", "error"}),
                   NULL, NULL);
}

static void test_lists(void **state)
{
        (void)state;
        check_rows(ROWS({"member(2, {1, 2})", "true"}, {"member(\"A\", {\"a\"})", "true"},
                        {"member(3, {1, 2})", "false"}, {"member(1, {\"a\", x, 1.0})", "true"},
                        {"member(undefined, {1})", "undefined"}, {"member(1, x)", "undefined"},
                        {"member(x, error)", "undefined"}, {"member(error, x)", "undefined"},
                        {"member(error, {1})", "error"}, {"identicalMember(undefined, {1, x})", "true"},
                        {"identicalMember(undefined, {1})", "false"}, {"identicalMember(x, 1)", "error"},
                        {"identicalMember(error, {1/0})", "true"}, {"identicalMember(error, {x})", "false"},
                        {"identicalMember(error, x)", "undefined"}, {"identicalMember(1, error)", "error"},
                        {"member({1}, {1})", "error"}, {"member(1, 1)", "error"},
                        {"identicalMember(\"A\", {\"a\"})", "false"},
                        {"identicalMember(1, {1.0, 1})", "true"}, {"size({1,2})", "2"},
                        {"size(\"abc\")", "3"}, {"size([a=1;b=2])", "2"}, {"size(1)", "error"},
                        {"sum({})", "0"}, {"sum({1, 2})", "3"}, {"sum({1, 2.5})", "3.500000000000000E+00"},
                        {"sum({1, x})", "1"}, {"sum({x})", "0"}, {"sum({\"a\"})", "error"},
                        {"sum(1)", "error"}, {"avg({})", "0"}, {"avg({1, 2})", "1.500000000000000E+00"},
                        {"avg({x})", "0"}, {"min({})", "undefined"}, {"min({3, 1, 2})", "1"},
                        {"max({})", "undefined"}, {"max({3, 1.0, 2})", "3.000000000000000E+00"},
                        {"max({1, \"a\"})", "error"}, {"anyCompare(\"=?=\", {1, 5}, 1)", "error"},
                        {"anyCompare(\"<\", {1, 5}, 2)", "true"}, {"anyCompare(\">\", {1}, 2)", "false"},
                        {"allCompare(\">=\", {2, 3}, 2)", "true"}, {"allCompare(\"==\", {2, 3}, 2)", "false"},
                        {"allCompare(\"!=\", {}, 2)", "true"}, {"anyCompare(\"is\", {x}, undefined)", "true"},
                        {"anyCompare(\"<\", {x, 1}, 3)", "false"}, {"allCompare(\"<\", {1, x}, 3)", "false"},
                        {"anyCompare(\"<\", {\"a\", 1}, 3)", "error"},
                        {"anyCompare(\"<\", {1, \"a\"}, 3)", "true"},
                        {"allCompare(\"<\", {\"a\"}, 3)", "error"}, {"anyCompare(x, {1}, 1)", "undefined"},
                        {"allCompare(\"isnt\", {1}, {2})", "true"}, {"anyCompare(\"=?\", {1}, 1)", "error"},
                        {"anyCompare(\"<\", 1, 1)", "error"}),
                   NULL, NULL);
}

static void test_string_lists(void **state)
{
        (void)state;
        check_rows(
                ROWS({"stringListSize(\"a, b,,c\")", "3"}, {"stringListSize(\"\")", "0"},
                     {"stringListSize(\"a;b\", \";\")", "2"}, {"stringListSize(1)", "error"},
                     {"stringListSum(\"1,2,3\")", "6"}, {"stringListSum(\"1,2.5\")", "3.500000000000000E+00"},
                     {"stringListSum(\"1,a\")", "error"}, {"stringListSum(\"\")", "0.0"},
                     {"stringListAvg(\"1,2\")", "1.500000000000000E+00"}, {"stringListAvg(\"\")", "0.0"},
                     {"stringListMin(\"3,1,2\")", "1"}, {"stringListMax(\"3,1,2\")", "3"},
                     {"stringListMin(\"\")", "undefined"},
                     {"stringListMax(\"1.5,1\")", "1.500000000000000E+00"},
                     {"stringListMember(\"b\", \"a, b\")", "true"},
                     {"stringListMember(\"B\", \"a, b\")", "false"},
                     {"stringListIMember(\"B\", \"a, b\")", "true"}, {"stringListMember(\"b\", x)", "false"},
                     {"stringListMember(x, \"a, b\")", "false"}, {"!stringListIMember(x, \"A,B\")", "true"},
                     {"stringListMember(x, \"\")", "false"}, {"stringListIMember(x, x)", "undefined"},
                     {"stringListMember(x, 1)", "error"}, {"stringListMember(error, \"a\")", "error"},
                     {"stringListMember(x, error)", "error"}, {"stringListMember(\"a\", \"a b\", x)", "true"},
                     {"stringListMember(\"b\", \"a\\tb\")", "true"},
                     {"stringListMember(\"b\", \"a\", error)", "error"}, {"stringListSize(x)", "error"},
                     {"stringListSize(\"a\", x)", "error"}, {"stringListSum(x)", "error"},
                     {"stringListAvg(x)", "error"}, {"stringListMin(x)", "error"},
                     {"stringListMax(x)", "error"}, {"stringListMember(\"a b\", \"a b;c\", \";\")", "true"},
                     {"stringListMember(1, \"a\")", "error"},
                     {"stringListsIntersect(\"a,b\", \"b,c\")", "true"},
                     {"stringListsIntersect(\"a\", \"b,c\")", "false"},
                     {"stringListSubsetMatch(\"a,b\", \"b,a,c\")", "true"},
                     {"stringListSubsetMatch(\"a,d\", \"b,a,c\")", "false"},
                     {"stringListISubsetMatch(\"A\", \"a\")", "true"},
                     {"stringListSubsetMatch(x, \"a\")", "true"},
                     {"stringListSubsetMatch(\"a\", x)", "false"},
                     {"stringListSubsetMatch(x, x)", "undefined"},
                     {"stringListSubsetMatch(\"\", \"a\")", "true"},
                     {"stringListSubsetMatch(\"\", x)", "true"},
                     {"stringListSubsetMatch(x, \"a\", 1)", "error"},
                     {"stringListISubsetMatch(\"B\", \"a,b\", x)", "true"},
                     {"stringListISubsetMatch(x, error)", "error"},
                     {"stringListsIntersect(\"a\", x)", "undefined"},
                     {"stringList_regexpMember(\"^b.\", \"ab, bc\")", "true"},
                     {"stringList_regexpMember(\"^B.\", \"ab, bc\", \", \", \"i\")", "true"},
                     {"stringList_regexpMember(\"z\", \"ab\")", "false"},
                     {"stringList_regexpMember(\"(\", \"ab\")", "error"},
                     {"stringList_regexpMember(x, \"ab\")", "error"},
                     {"stringList_regexpMember(\"a\", x)", "error"}),
                NULL, NULL);
}

static void test_regexps(void **state)
{
        (void)state;
        check_rows(
                ROWS({"regexp(\"a.c\", \"xabcx\")", "true"}, {"regexp(\"^a\", \"ba\")", "false"},
                     {"regexp(\"ABC\", \"abc\", \"i\")", "true"}, {"regexp(\"a.b\", \"a\\nb\")", "false"},
                     {"regexp(\"a.b\", \"a\\nb\", \"s\")", "true"},
                     {"regexp(\"^b\", \"a\\nb\", \"M\")", "true"}, {"regexp(\"a b\", \"ab\", \"x\")", "true"},
                     {"regexp(\"(\", \"a\")", "error"}, {"regexp(1, \"a\")", "error"},
                     {"regexp(x, \"a\")", "undefined"},
                     {"regexp(\"(a+)+$\", \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\")", "error"},
                     {"regexpMember(\"^b\", {\"a\", \"bc\"})", "true"},
                     {"regexpMember(\"^b\", {\"a\", x})", "undefined"},
                     {"regexpMember(\"^b\", {\"a\"})", "false"},
                     {"regexpMember(\"^b\", {1, \"b\"})", "error"},
                     {"regexps(\"([a-z]+)=([0-9]+)\", \"k=12;\", \"\\\\2:\\\\1\")", "\"12:k\""},
                     {"regexps(\"b\", \"abc\", \"X\")", "\"X\""}, {"regexps(\"z\", \"abc\", \"X\")", "\"\""},
                     {"regexps(\"b\", \"abcb\", \"X\", \"f\")", "\"aXcb\""},
                     {"regexps(\"b\", \"abcb\", \"X\", \"fg\")", "\"aXcX\""},
                     {"regexps(\"b\", \"abcb\", \"X\", \"g\")", "\"XX\""},
                     {"replace(\"a\", \"banana\", \"o\")", "\"bonana\""},
                     {"replaceAll(\"a\", \"banana\", \"o\")", "\"bonono\""},
                     {"replaceAll(\"x*\", \"ab\", \"-\")", "\"-a-b-\""},
                     {"replace(\"a\", \"banana\", \"[\\\\0]\")", "\"b[a]nana\""},
                     {"regexps(\"(a)(x)?\", \"a\", \"\\\\2\")", "error"},
                     {"regexps(\"(x)?(a)\", \"a\", \"<\\\\1>\\\\\\\\2\")", "\"<>\\\\a\""}),
                NULL, NULL);
}

static void test_times(void **state)
{
        (void)state;
        check_rows(
                ROWS({"time()", "1700000000"}, {"currentTime()", "1700000000"},
                     {"timeZoneOffset()", "relTime(\"00\")"}, {"dayTime()", "relTime(\"22:13:20\")"},
                     {"interval(67)", "\"1:07\""}, {"interval(1472523)", "\"17+01:02:03\""},
                     {"interval(3661)", "\"1:01:01\""}, {"interval(-5)", "\"-5\""}, {"interval(0)", "\"0\""},
                     {"interval(60)", "\"1:00\""},
                     {"absTime(\"2024-02-29T12:30:00+01:00\")", "absTime(\"2024-02-29T12:30:00+01:00\")"},
                     {"int(absTime(\"1970-01-01T01:00:00+01:00\"))", "0"},
                     {"absTime(\"2024-02-29\")", "absTime(\"2024-02-29T00:00:00-00:00\")"},
                     {"absTime(\"20240229T123000Z\")", "absTime(\"2024-02-29T12:30:00-00:00\")"},
                     {"absTime(\"2024/02/29T:12:30:00-0130\")", "absTime(\"2024-02-29T12:30:00-01:30\")"},
                     {"absTime(\"2024-02-29 12:30:00.5\")", "error"},
                     {"absTime(\"2024-02-29 1234567\")", "error"},
                     {"absTime(\"2024-02-29T12:30+25:00\")", "error"}, {"absTime(\"2024-13-01\")", "error"},
                     {"absTime(\"rubbish\")", "error"},
                     {"absTime(0, 3600)", "absTime(\"1970-01-01T01:00:00+01:00\")"},
                     {"int(absTime())", "1700000000"}, {"relTime(93784.5)", "relTime(\"1+02:03:04.500\")"},
                     {"relTime(\"1+02:03:04.5\")", "relTime(\"1+02:03:04.500\")"},
                     {"int(relTime(\"2:03\"))", "123"}, {"int(relTime(\"1+1\"))", "86401"},
                     {"relTime(\" - 1d 2h3m4.25s \")", "relTime(\"-1+02:03:04.250\")"},
                     {"int(relTime(\"2h\"))", "7200"}, {"relTime(\"1m2d\")", "error"},
                     {"relTime(\"\")", "error"}, {"relTime(true)", "error"},
                     {"relTime(absTime(5))", "relTime(\"05\")"}, {"relTime(x)", "undefined"},
                     {"absTime(true)", "error"}, {"absTime(0, x)", "error"}, {"absTime(0, \"1\")", "error"},
                     {"absTime(x, 1)", "undefined"}, {"interval(x)", "error"}, {"relTime(\"x\")", "error"},
                     {"getYear(absTime(\"2024-02-29T12:30:45\"))", "2024"},
                     {"getMonth(absTime(\"2024-02-29T12:30:45\"))", "2"},
                     {"getDayOfMonth(absTime(\"2024-02-29T12:30:45\"))", "29"},
                     {"getDayOfYear(absTime(\"2024-02-29T12:30:45\"))", "59"},
                     {"getDayOfWeek(absTime(\"2024-02-29T12:30:45\"))", "4"},
                     {"getHours(absTime(\"2024-02-29T12:30:45\"))", "12"},
                     {"getMinutes(absTime(\"2024-02-29T12:30:45\"))", "30"},
                     {"getSeconds(absTime(\"2024-02-29T12:30:45\"))", "45"},
                     {"getHours(absTime(\"2024-02-29T12:30:45+05:00\"))", "12"},
                     {"getDays(relTime(93784))", "1"}, {"getHours(relTime(93784))", "2"},
                     {"getMinutes(relTime(93784))", "3"}, {"getSeconds(relTime(93784))", "4"},
                     {"getYear(relTime(5))", "error"}, {"getMonth(undefined)", "error"},
                     {"getSeconds(x)", "error"}, {"getYear(5)", "error"}, {"bool(relTime(5))", "true"},
                     {"bool(relTime(0))", "false"}, {"bool(absTime(5))", "error"},
                     {"getDays(absTime(5))", "error"}, {"getHours(5)", "error"}, {"getHours(x)", "error"},
                     {"splitTime(relTime(93784))", "[ Type = \"RelativeTime\"; Days = 1; Hours = 2; "
                                                   "Minutes = 3; Seconds = 4.000000000000000E+00 ]"},
                     {"splitTime(relTime(-3723.5))", "[ Type = \"RelativeTime\"; Days = 0; Hours = -1; "
                                                     "Minutes = 2; Seconds = 3.500000000000000E+00 ]"},
                     {"splitTime(splitTime(absTime(0)))", "error"}, {"splitTime(true)", "error"},
                     {"splitTime(x)", "undefined"}, {"splitTime(absTime(0)).Year", "1970"},
                     {"splitTime(absTime(0))[\"type\"]", "\"AbsoluteTime\""}, {"splitTime(\"a\")", "error"},
                     {"formatTime(0, \"%Y-%m-%d %H:%M\")", "\"1970-01-01 00:00\""},
                     {"formatTime(absTime(0, 3600), \"%H\")", "\"01\""}, {"formatTime(\"a\")", "error"},
                     {"formatTime(splitTime(absTime(\"2024-02-29\")), \"%F %A\")", "\"2024-02-29 Thursday\""},
                     {"formatTime([ Year = \"x\"; Hours = 7 ], \"%H\")", "\"07\""},
                     {"formatTime(0, \"\")", "\"\""}, {"formatTime(x)", "error"},
                     {"formatTime(true)", "error"}, {"formatTime(0, x)", "error"}),
                NULL, NULL);
}

static void test_tools(void **state)
{
        (void)state;
        check_rows(ROWS({"envV1ToV2(\"A=1;B=x y\")", "\"A=1 B=x' 'y\""}, {"envV1ToV2(x)", "undefined"},
                        {"envV1ToV2(\"A\")", "error"}, {"envV1ToV2(\"A=1;B=2;A=3\")", "\"A=3 B=2\""},
                        {"mergeEnvironment(\"A=1 B=2\", \"A=3 C=4\")", "\"A=3 B=2 C=4\""},
                        {"mergeEnvironment(\"A=1\", x)", "\"A=1\""}, {"mergeEnvironment()", "\"\""},
                        {"mergeEnvironment(1)", "error"},
                        {"argsToList(\"a 'b c' d\")", "{ \"a\",\"b c\",\"d\" }"},
                        {"argsToList(\"a 'b\", 1)", "{ \"a\",\"'b\" }"}, {"argsToList(\"a 'b\")", "error"},
                        {"argsToList(\"a\", 3)", "error"}, {"argsToList(x)", "error"},
                        {"listToArgs(x)", "error"},
                        {"listToArgs({\"a\", \"b c\", \"it's\"})", "\"a b' 'c it''''s\""},
                        {"argsToList(listToArgs({\"b c\", \"it's\", \"\", \"''\"}))",
                         "{ \"b c\",\"it's\",\"\",\"''\" }"},
                        {"listToArgs({\"a\", \"b\"}, 1)", "\"a b\""}, {"listToArgs({\"a b\"}, 1)", "error"},
                        {"listToArgs({1})", "error"}, {"userHome(\"alice\")", "undefined"},
                        {"userHome(\"alice\", \"/home/a\")", "\"/home/a\""}, {"userHome(x)", "undefined"},
                        {"userHome(1)", "error"}, {"userHome(1, \"/h\")", "\"/h\""},
                        {"userHome(error, \"/h\")", "\"/h\""}, {"userHome(\"alice\", 1)", "undefined"},
                        {"userHome(x, \"\")", "undefined"}, {"userMap(\"m\", \"alice\")", "undefined"},
                        {"userMap(\"m\", \"alice\", \"g\", \"d\")", "\"d\""}),
                   NULL, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_types),        cmocka_unit_test(test_conversions),
                cmocka_unit_test(test_lazy),         cmocka_unit_test(test_contexts),
                cmocka_unit_test(test_texts),        cmocka_unit_test(test_versions),
                cmocka_unit_test(test_numbers),      cmocka_unit_test(test_lists),
                cmocka_unit_test(test_string_lists), cmocka_unit_test(test_regexps),
                cmocka_unit_test(test_times),        cmocka_unit_test(test_tools),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
