#include "text/chat_template.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "base/limits.h"

namespace {

using text::ChatTemplate;
using text::Segment;
using text::Value;
using text::ValueArray;
using text::ValueObject;

// No time passes unless a test says so: what stops a template here are steps and bytes, not the machine's speed.
struct StillClock final : base::Clock {
    int64_t now_ns() const override { return now += tick; }
    int64_t wall_unix_s() const override { return 1'796'128'496; }  // 2026-12-01 12:34:56 UTC
    mutable int64_t now = 0;
    int64_t tick = 0;
};

ValueObject message(const char* role, std::string content) { return {{"role", role}, {"content", std::move(content)}}; }

ValueObject some_variables() {
    return {{"messages", ValueArray{message("user", "Hi there"), message("assistant", "Hello!")}},
            {"bos_token", "<s>"},
            {"user_text", "from the user"},
            {"n", 5}};
}

struct Outcome {
    bool ok = false;
    base::ErrorCode code = base::ErrorCode::internal;
    std::string text;  // or the message
    std::vector<Segment> segments;
};

Outcome render(std::string source, const ValueObject& variables = some_variables(), const base::Clock& clock = StillClock()) {
    auto parsed = ChatTemplate::parse(std::move(source));
    if (!parsed) return {false, parsed.error().code, parsed.error().message, {}};
    static constexpr std::string_view trusted[] = {"bos_token"};
    auto result = parsed.value()->render(variables, trusted, clock);
    if (!result) return {false, result.error().code, result.error().message, {}};
    return {true, base::ErrorCode::internal, text::to_string(result.value()), result.value()};
}

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
        {"TwoNestedLoops", "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", too_large, "more than 1000000 steps"},
        {"MacroCallingItself", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", too_large, "call each other deeper than 64"},
        {"MacrosCallingEachOther", "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}", too_large, "deeper than 64"},
        {"MacroDoublingItself", "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}", too_large, "steps"},
        {"CallerCallingItself", "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}", too_large, "deeper"},
        {"RecursiveLoopForEver", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", too_large, "deeper than 64"},
        {"TenBillionTimesX", "{{ 'x' * 10 ** 10 }}", too_large, "a string of more than 8388608 bytes"},
        {"ListTimesABillion", "{% set x = [1, 2] * 10 ** 9 %}", too_large, "a list of more than 1048576 values"},
        {"FortyDoublings", "{% set ns = namespace(s='xx') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}", too_large, "strings take more than 8388608 bytes"},
        {"FortyListDoublings", "{% set ns = namespace(s=[1]) %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", too_large, "lists and dicts hold more than 1048576 values"},
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
        {"QuadraticFind", "{% set a = 'a' * 1000000 %}{{ (a ~ 'b').find(a ~ 'c') }} {{ (a ~ 'a' ~ 'b').rfind('c' ~ a) }} {{ ('a' ~ a ~ 'c') in a }}", renders, "-1 -1 False"},
        {"QuadraticSum", "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = ns.l + [i] %}{% endfor %}", too_large, "steps"},
        {"ListThatHoldsItself", "{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}", invalid, "nested too deep to print"},
        {"ListThatHoldsItselfCompared", "{% set l = [1] %}{% set _ = l.append(l) %}{% set k = [1] %}{% set _ = k.append(k) %}{{ l == k }}", invalid, "nested too deep to compare"},
        {"ListThatHoldsItselfAsJson", "{% set l = [1] %}{% set _ = l.append(l) %}{{ l|tojson }}", invalid, "nested too deep for JSON"},
        {"ListThatGrowsWhileItIsWalked", "{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}", too_large, ""},
        {"DictThatHoldsItself", "{% set d = {} %}{% set _ = d.update(a=d) %}{{ d }}", invalid, "nested too deep"},
        // a value nested 50,000 deep must also die without recursion
        {"DeeplyNestedValue", "{% set ns = namespace(x=[]) %}{% for i in range(50000) %}{% set ns.x = [ns.x] %}{% endfor %}done", renders, "done"},
        {"DeeplyNestedValuePrinted", "{% set ns = namespace(x=[]) %}{% for i in range(50000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", invalid, "nested too deep to print"},
        {"MacrosThatKeepTheirScopes", "{% for i in range(100000) %}{% macro m() %}{{ i }}{% endmacro %}{% endfor %}", renders, ""},
        {"PrintsAHundredMegabytes", "{% set x = 'x' * 1000000 %}{% for i in range(100) %}{{ x }}{% endfor %}", too_large, "the rendered prompt is longer than 8388608 bytes"},
        {"NeverPrintsTheUsersText", "constant", renders, "constant"},
        {"SortOfWhatHasNoOrder", "{{ [1, 'a', none]|sort }}", invalid, "not supported between"},
        {"SortOfNan", "{{ ([('nan'|float), 1, 0] * 1000)|sort|length }}", renders, "3000"},
        {"ArgumentsByTheMillion", "{% macro f() %}{{ varargs|length }}{% endmacro %}{{ f(*range(100000)) }}", renders, "100000"},
        {"KeywordsByTheThousand", "{% macro f() %}{{ kwargs|length }}{% endmacro %}{% set d = {} %}{% for i in range(20000) %}{% set _ = d.update({i|string: 1}) %}{% endfor %}{{ f(**d) }}", too_large, "steps"},
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
        {"ManyNames", [] {
             std::string source = "{{ 1 ";
             for (int i = 0; i < 60'000; ++i) source += "~a" + std::to_string(i);
             return source + " }}";
         }(), renders, "1"},
    };
}

class HostileTemplateTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostileTemplateTest, IsAnsweredInTimeAndMemory) {
    const Hostile& hostile = GetParam();
    const int64_t rss = peak_rss_kib();
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = render(hostile.source);
    const auto took = std::chrono::steady_clock::now() - start;
    ASSERT_EQ(outcome.ok, hostile.code == renders) << outcome.text.substr(0, 400);
    if (outcome.ok) {
        EXPECT_EQ(outcome.text, hostile.says);
    } else {
        EXPECT_EQ(outcome.code, hostile.code) << outcome.text;
        EXPECT_NE(outcome.text.find(hostile.says), std::string::npos) << outcome.text;
        EXPECT_EQ(outcome.text.find('\n'), std::string::npos);
        EXPECT_LT(outcome.text.size(), 400u);
    }
#ifdef __OPTIMIZE__
    EXPECT_LT(took, std::chrono::seconds(1));
#endif
#ifndef __SANITIZE_ADDRESS__
    EXPECT_LT(peak_rss_kib() - rss, 128 * 1024) << "KiB more than before";
#endif
    (void)took;
    (void)rss;
}

INSTANTIATE_TEST_SUITE_P(Faults, HostileTemplateTest, testing::ValuesIn(hostile_templates()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ChatTemplateTest, TimeIsLimited) {
    StillClock clock;
    clock.tick = 10'000'000;  // 10 ms between two looks
    const Outcome outcome = render("{% for i in range(100000) %}{% endfor %}", some_variables(), clock);
    ASSERT_FALSE(outcome.ok);
    EXPECT_EQ(outcome.code, base::ErrorCode::too_large);
    EXPECT_NE(outcome.text.find("longer than 250 ms"), std::string::npos) << outcome.text;
}

TEST(ChatTemplateTest, VariablesNestedTooDeepAreRefused) {
    Value value = ValueArray{};
    for (int i = 0; i < 300; ++i) value = ValueArray{value};
    const Outcome outcome = render("{{ x|length }}", {{"x", value}});
    ASSERT_FALSE(outcome.ok);
    EXPECT_NE(outcome.text.find("nested too deep"), std::string::npos);
    EXPECT_TRUE(render("{{ n }}", {{"x", value}, {"n", 1}}).ok);  // only what is used is looked at
}

TEST(ChatTemplateTest, TooManyValuesAreRefused) {
    const Outcome outcome = render("{{ x|length }}", {{"x", ValueArray(limits::template_values + 1)}});
    ASSERT_FALSE(outcome.ok);
    EXPECT_EQ(outcome.code, base::ErrorCode::too_large);
}

TEST(ChatTemplateTest, ErrorsNameLineAndColumn) {
    EXPECT_EQ(render("ab\ncd {{ n + 'x' }}").text, "chat template, line 2, column 9: unsupported operand type(s) for +: 'int' and 'str'");
    EXPECT_EQ(render("é中 {{ missing.x }}").text, "chat template, line 1, column 14: 'missing' is undefined");
    EXPECT_EQ(render("\r\n\r\n{{ 1 +* 2 }}").text, "chat template, line 3, column 7: unexpected operator");
    EXPECT_EQ(render("{% for m in messages %}\n{{ m.content.nope() }}\n{% endfor %}").text,
              "chat template, line 2, column 18: 'str object' has no attribute 'nope'");
}

TEST(ChatTemplateTest, RaiseExceptionIsTheTemplatesOwnMessage) {
    const Outcome outcome = render("{{ raise_exception('Roles must alternate!') }}");
    ASSERT_FALSE(outcome.ok);
    EXPECT_EQ(outcome.code, base::ErrorCode::invalid_argument);
    EXPECT_EQ(outcome.text, "Roles must alternate!");
}

TEST(ChatTemplateTest, OneTemplateRendersOnManyThreads) {
    auto parsed = ChatTemplate::parse("{% for m in messages %}{{ loop.index }}{{ m.role|upper }}:{{ m.content }};{% endfor %}");
    ASSERT_TRUE(parsed.ok());
    std::vector<std::thread> threads;
    std::vector<std::string> texts(4);
    for (size_t t = 0; t < texts.size(); ++t) {
        threads.emplace_back([&, t] {
            const StillClock clock;
            for (int i = 0; i < 200; ++i) {
                auto result = parsed.value()->render(some_variables(), {}, clock);
                texts[t] = result.ok() ? text::to_string(result.value()) : result.error().message;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : texts) EXPECT_EQ(text, "1USER:Hi there;2ASSISTANT:Hello!;");
}

// --- who wrote which byte

// The user's parts in [ ], the template's as they are.
std::string marked(const Outcome& outcome) {
    if (!outcome.ok) return "failed: " + outcome.text;
    std::string text;
    for (const Segment& segment : outcome.segments) text += segment.from_template ? segment.text : "[" + segment.text + "]";
    return text;
}

TEST(ChatTemplateTest, SegmentsSayWhoWroteEachByte) {
    const ValueObject variables = {{"u", "Ab cD"}, {"v", "<x>"}, {"bos_token", "<s>"}, {"l", ValueArray{"p", "q"}}, {"d", ValueObject{{"k", "w"}}}, {"i", 7}, {"nl", "a\nb"}};
    const std::pair<const char*, const char*> cases[] = {
        {"plain", "plain"},
        {"<|{{ u }}|>", "<|[Ab cD]|>"},
        {"{{ bos_token }}{{ u }}", "<s>[Ab cD]"},
        {"{{ '<' + u + '>' }}", "<[Ab cD]>"},
        {"{{ '<' ~ u ~ i ~ '>' }}", "<[Ab cD]7>"},
        {"{{ u }}{{ v }}", "[Ab cD<x>]"},
        {"{{ u[1:4] }}!", "[b c]!"},
        {"{{ ('<' ~ u ~ '>')[0:3] }}", "<[Ab]"},
        {"{{ ('<' ~ u ~ '>')[::-1] }}", ">[Dc bA]<"},
        {"{{ ('<' ~ u ~ '>')|upper }}", "<[AB CD]>"},
        {"{{ ('x' ~ u ~ 'y').title() }}", "X[ab Cd]y"},
        {"{{ ('  ' ~ u ~ '  ')|trim }}", "[Ab cD]"},
        {"{{ ('a' ~ u ~ 'a').strip('aA') }}", "[b cD]"},
        {"{{ ('-' ~ u ~ '-').replace('b', '_') }}", "-[A]_[ cD]-"},
        {"{{ 'a-b'.replace('-', u) }}", "a[Ab cD]b"},
        {"{{ l|join(', ') }}", "[p], [q]"},
        {"{{ ', '.join(l) }}", "[p], [q]"},
        {"{{ u.join(['1', '2']) }}", "1[Ab cD]2"},
        {"{{ l }}", "[['p'], ['q']]"},
        {"{{ l|tojson }}", "[\"[p]\", \"[q]\"]"},
        {"{{ d }}", "{['k']: ['w']}"},
        {"{{ d|tojson }}", "{\"[k]\": \"[w]\"}"},
        {"{{ {'k': 'x' ~ u}|tojson }}", "{\"k\": \"x[Ab cD]\"}"},
        {"{{ ('x\"' ~ v)|tojson }}", "\"x\\\"[<x>]\""},
        {"{% for k in d %}{{ k }}{% endfor %}", "[k]"},
        {"{% for c in 'a' ~ v %}({{ c }}){% endfor %}", "(a)([<])([x])([>])"},
        {"{{ (u ~ '|' ~ v).split('|')[1] }}", "[<x>]"},
        {"{{ ('a ' ~ u).split() }}", "['a', ['Ab'], ['cD']]"},
        {"{{ 'x %s y' % u }}", "x [Ab cD] y"},
        {"{{ 'x {} {:>6}'.format(u, u) }}", "x [Ab cD]  [Ab cD]"},
        {"{{ u % () }}", "[Ab cD]"},
        {"{{ v|e }}", "[&lt;x&gt;]"},
        {"{{ nl|indent(2) }}", "[a]\n  [b]"},
        {"{{ v|urlencode }}", "[%3Cx%3E]"},
        {"{{ u|center(9) }}", "  [Ab cD]  "},
        {"{{ 'ab'.center(4, 'z') }}", "zabz"},
        {"{{ u|replace('A', '') }}", "[b cD]"},
        {"{{ (u ~ 'T')|reverse }}", "T[Dc bA]"},
        {"{{ u|list|join }}", "[Ab cD]"},
        {"{{ u|first }}{{ u[-1] }}", "[AD]"},
        {"{{ u * 2 }}", "[Ab cDAb cD]"},
        {"{{ u|truncate(4, true, '..', 0) }}", "[Ab].."},
        {"{% set x %}<{{ u }}>{% endset %}{{ x }}", "<[Ab cD]>"},
        {"{% filter upper %}<{{ u }}>{% endfilter %}", "<[AB CD]>"},
        {"{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(u) }}", "<[Ab cD]>"},
        {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ u }}!{% endcall %}", "<[Ab cD]!>"},
        {"{{ u|string }}{{ u|default('x') }}{{ missing|default('x') }}{{ missing|default(u) }}", "[Ab cDAb cD]x[Ab cD]"},
        {"{{ [u, 'z']|sort|join('/') }}", "[Ab cD]/z"},
        {"{{ [u, 'a']|map('upper')|join('/') }}", "[AB CD]/A"},
        {"{{ [{'n': u}]|map(attribute='n')|first }}", "[Ab cD]"},
        {"{{ dict(a=u).a }}{{ namespace(a=u).a }}{{ {'a': u}.a }}", "[Ab cDAb cDAb cD]"},
        {"{{ [{'n': u}]|groupby('n') }}", "[(['Ab cD'], [{'n': ['Ab cD']}])]"},
        {"{{ u.partition(' ') }}", "(['Ab'], [' '], ['cD'])"},
        {"{{ (u ~ '\\nz').splitlines() }}", "[['Ab cD'], 'z']"},
        {"{{ u|safe }}{{ u|trim }}", "[Ab cDAb cD]"},
        {"{{ u is string }}{{ u|length }}{{ u == 'x' }}", "True5False"},
        {"{{ '' ~ u[0:0] ~ 'a' }}", "a"},
    };
    for (const auto& [source, expected] : cases) {
        EXPECT_EQ(marked(render(source, variables)), expected) << source;
    }
}

TEST(ChatTemplateTest, TrustedVariablesAreTheTemplatesOwn) {
    auto parsed = ChatTemplate::parse("{{ bos_token }}{{ eos_token }}");
    ASSERT_TRUE(parsed.ok());
    const ValueObject variables = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    const std::string_view trusted[] = {"bos_token", "eos_token"};
    const StillClock clock;
    auto both = parsed.value()->render(variables, trusted, clock);
    ASSERT_TRUE(both.ok());
    ASSERT_EQ(both.value().size(), 1u);
    EXPECT_TRUE(both.value()[0].from_template);
    auto one = parsed.value()->render(variables, std::span(trusted).first(1), clock);
    ASSERT_EQ(one.value().size(), 2u);
    EXPECT_FALSE(one.value()[1].from_template);
}

TEST(ChatTemplateTest, WhatIsKnowinglyUnlikeJinja2) {
    // Kept here because the comparison with Jinja2 can't hold them.
    EXPECT_EQ(render("{{ range }}{{ 's'.upper }}").text, "<function range><builtin_function_or_method upper>");  // no addresses
    EXPECT_EQ(render("{{ [1]|map('string') }}").text, "<generator object>");
    EXPECT_EQ(render("{{ {'a': 1}.get(key='a') }}").text, "1");          // CPython takes no keywords there
    EXPECT_EQ(render("{% set l = [] %}{% set _ = l.append(1) %}{{ l }}").text, "[1]");  // transformers' sandbox refuses to change
    EXPECT_EQ(render("{{ '\\ud83d' }}").text, "\xEF\xBF\xBD");           // a lone surrogate has no UTF-8
    EXPECT_EQ(render("{{ strftime_now('%Y-%m-%d %H:%M') }}").text, "2026-12-01 12:34");  // UTC
    for (const char* source : {"{{ 'a'|pprint }}", "{{ 'a'|urlize }}", "{{ 'a'|striptags }}", "{{ 'a'|wordwrap }}", "{% autoescape true %}{% endautoescape %}", "{{ '\\N{DASH}' }}"}) {
        const Outcome outcome = render(source);
        EXPECT_FALSE(outcome.ok);
        EXPECT_NE(outcome.text.find("built"), std::string::npos) << outcome.text;
    }
}

TEST(ChatTemplateTest, EmptyAndSource) {
    EXPECT_EQ(render("").text, "");
    EXPECT_EQ(render("\n").text, "");
    auto parsed = ChatTemplate::parse("a\r\nb\n");
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed.value()->source(), "a\r\nb\n");
}

}  // namespace
