#include <gtest/gtest.h>

#include <thread>

#include "base/limits.h"
#include "tests/text/template_render.h"
#include "text/chat_template.h"

namespace {

using namespace template_tests;

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
    const ValueObject variables = {
        {"u", "Ab cD"}, {"v", "<x>"},  {"bos_token", "<s>"}, {"l", ValueArray{"p", "q"}}, {"d", ValueObject{{"k", "w"}}},
        {"i", 7},       {"nl", "a\nb"}};
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
        {"{% macro m() %}{% for k in kwargs %}{{ k }}{% endfor %}{% endmacro %}{{ m(**d) }}{{ m(z=1) }}", "[k]z"},
        {"{{ dict(**d) }}{{ dict(d)|tojson }}", "{['k']: ['w']}{\"[k]\": \"[w]\"}"},
        {"{{ [1, 2]|tojson(separators=(v, ':')) }}", "[1[<x>]2]"},
        {"{{ ('{:' ~ 'z' ~ v[0] ~ '3}').format('a') }}", "a[zz]"},
        {"{{ '%c%c' % (60, 'a') }}{{ '{:c}'.format(60) }}", "[<]a[<]"},
        {"{{ i }}{{ '%d' % i }}", "77"},
        {"{{ u is string }}{{ u|length }}{{ u == 'x' }}", "True5False"},
        {"{{ '' ~ u[0:0] ~ 'a' }}", "a"},
    };
    for (const auto& [source, expected] : cases) { EXPECT_EQ(marked(render(source, variables)), expected) << source; }
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
    EXPECT_EQ(render("{{ {'a': 1}.get(key='a') }}").text, "1");                          // CPython takes no keywords there
    EXPECT_EQ(render("{% set l = [] %}{% set _ = l.append(1) %}{{ l }}").text, "[1]");   // transformers' sandbox refuses to change
    EXPECT_EQ(render("{{ '\\ud83d' }}").text, "\xEF\xBF\xBD");                           // a lone surrogate has no UTF-8
    EXPECT_EQ(render("{{ strftime_now('%Y-%m-%d %H:%M') }}").text, "2026-12-01 12:34");  // UTC
    for (const char* source : {"{{ 'a'|pprint }}", "{{ 'a'|urlize }}", "{{ 'a'|striptags }}", "{{ 'a'|wordwrap }}",
                               "{% autoescape true %}{% endautoescape %}", "{{ '\\N{DASH}' }}"}) {
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
