// Templates that want to kill, hang or bloat the server.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/text/measure.h"
#include "tests/text/template_render.h"

namespace {

using namespace template_tests;

std::string repeat(std::string_view unit, size_t times) {
    std::string text;
    text.reserve(unit.size() * times);
    for (size_t i = 0; i < times; ++i) text += unit;
    return text;
}

int64_t peak_rss_kib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

// --- what a hostile template may try: faults that killed other servers, each with its refusal

struct Hostile {
    const char* name;
    std::string source;
    base::ErrorCode code;  // internal: it renders
    const char* says;
};

constexpr auto invalid = base::ErrorCode::invalid_argument, too_large = base::ErrorCode::too_large, renders = base::ErrorCode::internal;

std::vector<Hostile> hostile_templates() {
    return {
        {"HundredMegabytes", std::string(100 << 20, 'x'), too_large, "104857600 bytes; 1048576 are allowed"},
        {"TenMegabytesOfOpeners", repeat("{{", 5 << 20), too_large, "bytes"},
        {"OneMegabyteOfOpeners", repeat("{{", 1 << 19), invalid, "nested deeper than 64"},
        {"InvalidUtf8", "abc\xff{{ n }}", invalid, "byte 3 is not valid UTF-8"},
        {"UnclosedBlock", "line\n  {% if n", invalid, "line 2, column 10: expected end of statement block"},
        {"UnclosedPrint", "{{ n", invalid, "line 1, column 5"},
        {"UnclosedComment", "a\nb {# c", invalid, "line 2, column 3: missing end of comment"},
        {"UnclosedRaw", "{% raw %} {{ n }}", invalid, "missing end of raw"},
        {"UnclosedString", "{{ 'abc }}", invalid, "a string without end"},
        {"MegabyteOfUnclosedRawTags", "{% raw %}" + repeat("{% ", 300'000), invalid, "missing end of raw"},
        {"ThrowsWhenItIsLoaded", "{{ raise_exception('at load') }}", invalid, "at load"},
        {"RangeOfABillion", "{% for i in range(10**9) %}{% endfor %}", too_large, "range too big: at most 100000 items"},
        {"RangeOfEverything", "{{ range(-9223372036854775807, 9223372036854775807) }}", too_large, "range too big"},
        {"StripByALongSet", "{{ ('\xc3\xbc' * 500000).strip('\xc3\xa9' * 1000000 + '\xc3\xbc') }}", renders, ""},
        {"TwoNestedLoops", "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", too_large,
         "more than 1000000 steps"},
        {"MacroCallingItself", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", too_large, "call each other deeper than 64"},
        {"MacrosCallingEachOther", "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}", too_large,
         "deeper than 64"},
        {"MacroDoublingItself", "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}", too_large,
         "steps"},
        {"CallerCallingItself",
         "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}", too_large,
         "deeper"},
        {"RecursiveLoopForEver", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", too_large, "deeper than 64"},
        {"TenBillionTimesX", "{{ 'x' * 10 ** 10 }}", too_large, "a string of more than 8388608 bytes"},
        {"ListTimesABillion", "{% set x = [1, 2] * 10 ** 9 %}", too_large, "a list of more than 1048576 values"},
        {"FortyDoublings", "{% set ns = namespace(s='xx') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
         too_large, "strings take more than 8388608 bytes"},
        {"FortyListDoublings", "{% set ns = namespace(s=[1]) %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", too_large,
         "lists and dicts hold more than 1048576 values"},
        {"SixtyThousandParentheses", "{{ " + std::string(60'000, '(') + " }}", invalid, "nested deeper than 64"},
        {"SixtyThousandBrackets", "{{ " + std::string(60'000, '[') + " }}", invalid, "nested deeper than 64"},
        {"SixtyThousandMinuses", "{{ " + std::string(60'000, '-') + "1 }}", invalid, "nested deeper than 64"},
        {"SixtyThousandNots", "{{ " + repeat("not ", 60'000) + "1 }}", invalid, "nested deeper than 64"},
        {"FiveThousandNestedIfs", repeat("{% if n %}", 5'000) + repeat("{% endif %}", 5'000), invalid, "nested deeper than 64"},
        {"FiveThousandNestedFors", repeat("{% for x in [1] %}", 5'000), invalid, "nested deeper than 64"},
        {"FiveThousandElses", "{{ " + repeat("1 if 0 else ", 5'000) + "2 }}", invalid, "nested deeper than 64"},
        {"FiveThousandTrailingIfs", "{{ 1" + repeat(" if 1", 5'000) + " }}", invalid, "nested deeper than 64"},
        {"FiveThousandElifs", "{% if 0 %}" + repeat("{% elif 0 %}", 5'000) + "{% else %}x{% endif %}", renders, "x"},
        {"TenThousandChainedFilters", "{{ 'a'" + repeat("|upper", 10'000) + " }}", renders, "A"},
        {"HundredThousandAdditions", "{{ 0" + repeat("+1", 100'000) + " }}", renders, "100000"},
        {"TooManyNodes", "{{ [" + repeat("1,", 300'000) + "] }}", invalid, "more than 262144 statements and expressions"},
        {"TargetsInTargets", "{% for " + std::string(10'000, '(') + "x in y %}{% endfor %}", invalid, "nested deeper than 64"},
        {"DivisionByZero", "{{ 1//0 }}", invalid, "division or modulo by zero"},
        {"ModuloByZero", "{{ 1%0 }}", invalid, "division or modulo by zero"},
        {"TrueDivisionByZero", "{{ 1/0 }}", invalid, "division by zero"},
        {"DivisibleByZero", "{{ 4 is divisibleby(0) }}", invalid, "division or modulo by zero"},
        {"SmallestIntegerByMinusOne", "{{ (-9223372036854775807 - 1) // -1 }}", invalid, "integer overflow"},
        {"SmallestIntegerModuloMinusOne", "{{ (-9223372036854775807 - 1) % -1 }}", renders, "0"},
        {"SmallestIntegerNegated", "{{ -(-9223372036854775807 - 1) }}", invalid, "integer overflow"},
        {"SmallestIntegerAbs", "{{ (-9223372036854775807 - 1)|abs }}", invalid, "integer overflow"},
        {"SumOverflow", "{{ 9223372036854775807 + 1 }}", invalid, "integer overflow"},
        {"ProductOverflow", "{{ 4611686018427387904 * 2 }}", invalid, "integer overflow"},
        {"PowerOverflow", "{{ 10 ** 400 }}", invalid, "integer overflow"},
        {"FloatPowerOverflow", "{{ 10.0 ** 400 }}", invalid, "too large"},
        {"LiteralOverflow", "{{ 9223372036854775808 }}", invalid, "an integer beyond 64 bits"},
        {"IntFilterOverflow", "{{ '99999999999999999999'|int }}", invalid, "an integer beyond 64 bits"},
        {"FloatToIntOverflow", "{{ 1e300|int }}", invalid, "beyond 64 bits"},
        {"SliceStepZero", "{{ 'abc'[::0] }}", invalid, "slice step cannot be zero"},
        {"SliceFarOut", "{{ 'abc'[-9223372036854775807-1:9223372036854775807:9223372036854775807] }}", renders, "a"},
        {"SliceBackwardsFarOut", "{{ 'abc'[9223372036854775807::-9223372036854775807-1] }}", renders, "c"},
        {"BatchOfHugeRows", "{{ [1]|batch(10**12, 0)|list }}", too_large, "steps"},
        {"SliceIntoHugeParts", "{{ [1]|slice(10**12)|list }}", too_large, ""},
        {"RoundToNothing", "{{ 15|round(-9223372036854775807) }}", renders, "0"},
        {"PercentFormatWidth", "{{ '%999999999999d' % 1 }}", too_large, "a width in a format is too large"},
        {"PercentFormatStar", "{{ '%*d' % (10**12, 1) }}", too_large, "too large"},
        {"PercentFormatPrecision", "{{ '%.999999d' % 1 }}", too_large, "precision"},
        {"BraceFormatWidth", "{{ '{:999999999999}'.format(1) }}", too_large, "too large"},
        {"BraceFormatPrecision", "{{ '{:.999999f}'.format(1.0) }}", too_large, "precision"},
        {"CenterWidth", "{{ 'a'.center(10**12) }}", too_large, "too large"},
        {"ZfillWidth", "{{ 'a'.zfill(10**12) }}", too_large, "too large"},
        {"IndentWidth", "{{ 'a'|indent(10**12, true) }}", too_large, "too large"},
        {"TojsonIndent", "{{ [1]|tojson(indent=10**12) }}", too_large, "1024"},
        {"StrftimeWidth", "{{ strftime_now('%99999999999d %-99999d') }}", renders, "%99999999999d %-99999d"},
        {"ReplaceExplosion", "{% set x = 'a' * 100000 %}{{ x.replace('a', x) }}", too_large, "bytes"},
        {"ReplaceNothingExplosion", "{% set x = 'a' * 100000 %}{{ x.replace('', x) }}", too_large, "bytes"},
        {"JoinExplosion", "{% set x = 'a' * 100000 %}{{ x.join(x) }}", too_large, "bytes"},
        {"FormatExplosion", "{% set x = 'a' * 1000000 %}{{ ('{0}' * 1000).format(x) }}", too_large, "bytes"},
        {"SplitIntoMillions", "{% set x = ('a ' * 1000000).split() %}{% set y = ('a ' * 1000000).split() %}", too_large, ""},
        {"ListOfCharacters", "{% set x = ('a' * 4000000)|list %}", too_large, ""},
        // find with two long runs of one letter is quadratic in a plain search
        {"QuadraticFind",
         "{% set a = 'a' * 1000000 %}{{ (a ~ 'b').find(a ~ 'c') }} {{ (a ~ 'a' ~ 'b').rfind('c' ~ a) }} {{ ('a' ~ a ~ 'c') in a }}",
         renders, "-1 -1 False"},
        {"QuadraticSum", "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = ns.l + [i] %}{% endfor %}", too_large,
         "steps"},
        {"ListThatHoldsItself", "{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}", invalid, "nested too deep to print"},
        {"ListThatHoldsItselfCompared", "{% set l = [1] %}{% set _ = l.append(l) %}{% set k = [1] %}{% set _ = k.append(k) %}{{ l == k }}",
         invalid, "nested too deep to compare"},
        {"ListThatHoldsItselfAsJson", "{% set l = [1] %}{% set _ = l.append(l) %}{{ l|tojson }}", invalid, "nested too deep for JSON"},
        {"ListThatGrowsWhileItIsWalked", "{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}", too_large, ""},
        {"DictThatHoldsItself", "{% set d = {} %}{% set _ = d.update(a=d) %}{{ d }}", invalid, "nested too deep"},
        // a value nested 50,000 deep must also die without recursion
        {"DeeplyNestedValue", "{% set ns = namespace(x=[]) %}{% for i in range(50000) %}{% set ns.x = [ns.x] %}{% endfor %}done", renders,
         "done"},
        {"DeeplyNestedValuePrinted",
         "{% set ns = namespace(x=[]) %}{% for i in range(50000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", invalid,
         "nested too deep to print"},
        {"MacrosThatKeepTheirScopes", "{% for i in range(100000) %}{% macro m() %}{{ i }}{% endmacro %}{% endfor %}", renders, ""},
        {"PrintsAHundredMegabytes", "{% set x = 'x' * 1000000 %}{% for i in range(100) %}{{ x }}{% endfor %}", too_large,
         "the rendered prompt is longer than 8388608 bytes"},
        {"NeverPrintsTheUsersText", "constant", renders, "constant"},
        {"SortOfWhatHasNoOrder", "{{ [1, 'a', none]|sort }}", invalid, "not supported between"},
        {"SortOfNan", "{{ ([('nan'|float), 1, 0] * 1000)|sort|length }}", renders, "3000"},
        {"ArgumentsByTheMillion", "{% macro f() %}{{ varargs|length }}{% endmacro %}{{ f(*range(100000)) }}", renders, "100000"},
        {"KeywordsByTheThousand",
         "{% macro f() %}{{ kwargs|length }}{% endmacro %}{% set d = {} %}{% for i in range(20000) %}{% set _ = d.update({i|string: 1}) "
         "%}{% endfor %}{{ f(**d) }}",
         too_large, "steps"},
        {"ClassOfAString", "{{ ''.__class__ }}", invalid, "access to attribute '__class__' of 'str' object is unsafe"},
        {"ClassByItem", "{{ ''['__class__'] }}", invalid, "unsafe"},
        {"ClassByAttr", "{{ ''|attr('__class__') }}", invalid, "unsafe"},
        {"ClassByMap", "{{ ['']|map(attribute='__class__')|list }}", invalid, "unsafe"},
        {"ClassByFormat", "{{ '{0.__class__}'.format(1) }}", invalid, "unsafe"},
        {"ClassByFormatItem", "{{ '{0[__class__]}'.format(1) }}", invalid, "unsafe"},
        {"ClassByFormatMap", "{{ '{x.__class__.__mro__}'.format_map({'x': 1}) }}", invalid, "unsafe"},
        {"ClassByGroupby", "{{ ['']|groupby('__class__') }}", invalid, "unsafe"},
        {"ClassBySum", "{{ ['']|sum('__class__') }}", invalid, "unsafe"},
        {"ClassOfADict", "{{ {}.__class__ }}", invalid, "unsafe"},
        {"ClassOfANamespace", "{{ namespace().__class__ }}", invalid, "unsafe"},
        {"GlobalsOfCycler", "{{ cycler.__init__.__globals__ }}", invalid, "unsafe"},
        {"GlobalsOfJoiner", "{{ joiner.__init__.__globals__.os.popen('id').read() }}", invalid, "unsafe"},
        {"GlobalsOfAMacro", "{% macro f() %}{% endmacro %}{{ f.__globals__ }}", invalid, "unsafe"},
        {"GlobalsOfTheLoop", "{% for x in [1] %}{{ loop.__init__ }}{% endfor %}", invalid, "unsafe"},
        {"GlobalsOfLipsum", "{{ lipsum.__globals__ }}", invalid, "unsafe"},
        {"SubclassWalk", "{{ ().__class__.__bases__[0].__subclasses__() }}", invalid, "unsafe"},
        {"SelfIsNothing", "{{ self.__init__ }}", invalid, "'self' is undefined"},
        {"ConfigIsNothing", "{{ config.items() }}", invalid, "'config' is undefined"},
        {"NamespaceWithDunder", "{% set ns = namespace(__class__=1) %}", invalid, "begins with an underscore"},
        {"SetDunder", "{% set ns = namespace() %}{% set ns.__class__ = 1 %}", invalid, "begins with an underscore"},
        {"Include", "{% include '/etc/passwd' %}", invalid, "'include' needs other templates"},
        {"Import", "{% import 'os' as os %}", invalid, "'import' needs other templates"},
        {"FromImport", "{% from 'x' import y %}", invalid, "'from' needs other templates"},
        {"Extends", "{% extends 'x' %}", invalid, "'extends' needs other templates"},
        {"Random", "{{ [1, 2]|random }}", invalid, "the same prompt must come out each time"},
        {"Lipsum", "{{ lipsum() }}", invalid, "the same prompt must come out each time"},
        {"ThousandsOfBrackets", "{{ x" + repeat("[0]", 50'000) + " }}", invalid, "'x' is undefined"},
        {"LongName", "{{ " + std::string(500'000, 'a') + " }}", renders, ""},
        {"LongNameInAMessage", "{{ " + std::string(500'000, 'a') + ".b }}", invalid, "aaa...' is undefined"},
        {"ManyNames",
         [] {
             std::string source = "{{ 1 ";
             for (int i = 0; i < 60'000; ++i) source += "~a" + std::to_string(i);
             return source + " }}";
         }(),
         renders, "1"},
    };
}

class HostileTemplateTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostileTemplateTest, IsAnsweredInTimeAndMemory) {
    const Hostile& hostile = GetParam();
    const int64_t rss = peak_rss_kib();
    const double start = support::cpu_seconds();
    const Outcome outcome = render(hostile.source);
    const double seconds = support::cpu_seconds() - start;
    ASSERT_EQ(outcome.ok, hostile.code == renders) << outcome.text.substr(0, 400);
    if (outcome.ok) {
        EXPECT_EQ(outcome.text, hostile.says);
    } else {
        EXPECT_EQ(outcome.code, hostile.code) << outcome.text;
        EXPECT_NE(outcome.text.find(hostile.says), std::string::npos) << outcome.text;
        EXPECT_EQ(outcome.text.find('\n'), std::string::npos);
        EXPECT_LT(outcome.text.size(), 400u);
    }
    if (!support::measurable) return;
    EXPECT_LT(seconds, 1.0);
    EXPECT_LT(peak_rss_kib() - rss, 128 * 1024) << "KiB more than before";
}

INSTANTIATE_TEST_SUITE_P(Faults, HostileTemplateTest, testing::ValuesIn(hostile_templates()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
