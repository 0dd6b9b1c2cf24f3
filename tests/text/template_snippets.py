"""Small templates for template_parity.py: each is rendered by Jinja2 and by hearth with the same variables.

A snippet on which Jinja2 fails must fail in hearth too. MUTATING ones run in Jinja2's sandbox that allows changes.
"""

VARS = {
    "n": 7, "neg": -7, "f": 2.5, "big": 9007199254740993, "zero": 0, "t": True, "no": False, "none_value": None,
    "s": "Hello World", "empty": "", "spaces": "  two  words \n", "uni": "Straße Ελλάς ÉCOLE ǆ 中文 👍", "multi": "one\ntwo\n\nthree\r\nfour",
    "quote": "it's \"quoted\" \\ back", "html": "<a href='x'>&</a>", "num": " 42 ", "fnum": "3.75", "hex": "0x1f", "csv": "a,b,,c",
    "l": [3, 1, 2], "words": ["banana", "Apple", "cherry", "apple"], "nested": [[1, 2], [3, [4, 5]], []], "mixed": [1, "two", 3.0, None, True],
    "d": {"b": 1, "a": 2, "C": 3}, "deep": {"x": {"y": [{"z": "found"}]}, "items": "shadow", "get": 1}, "dl": {"k": [1, {"m": None}], "u": "é\u2028\x7f\t"},
    "users": [
        {"name": "Ann", "age": 31, "city": "Oslo", "active": True, "tags": ["x", "y"]},
        {"name": "bob", "age": 25, "city": "oslo", "active": False, "tags": []},
        {"name": "Cy", "age": 25, "city": "Rome", "active": True, "addr": {"zip": "00100"}},
    ],
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}, {"v": 5, "c": []}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}],
    "tools": [{"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}],
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True,
}

SNIPPETS = r"""
{{ n }} {{ neg }} {{ f }} {{ big }} {{ t }} {{ no }} {{ none_value }} {{ s }}
{{ missing }}|{{ missing is defined }}|{{ missing|default('x') }}
{{ missing.attr }}
{{ missing['attr'] }}
{{ missing() }}
{{ missing + 1 }}
{{ 1 + missing }}
{{ missing ~ 'a' ~ none_value }}
{{ missing == missing2 }} {{ missing == none }} {{ missing != 1 }}
{{ not missing }} {{ missing or 'b' }} {{ missing and 'b' }}
{{ missing < 1 }}
{{ -missing }}
{{ missing|length }} {{ missing|list }} {{ missing|join(',') }}
{{ missing|upper }}|{{ missing|string }}|{{ missing|trim }}
{{ missing|int }}
{{ missing|float }}
{{ missing|abs }}
{{ missing in [1] }} {{ 1 in missing }}
{% for x in missing %}a{% else %}none{% endfor %}
{{ [missing] }} {{ {'a': missing} }}
{{ d.missing }}|{{ d.missing is undefined }}|{{ d['missing'] is undefined }}
{{ d.missing.deeper }}
{{ d.b }} {{ d['a'] }} {{ d.get('C') }} {{ d.get('zz') }} {{ d.get('zz', 'dflt') }}
{{ deep.x.y[0].z }} {{ deep['x']['y'][0]['z'] }} {{ deep.x.y.0.z }}
{{ deep.items() }} {{ deep['items'] }} {{ deep['get'] }}
{{ d }} {{ l }} {{ nested }} {{ mixed }} {{ () }} {{ (1,) }} {{ (1, 'a') }} {{ [] }} {{ {} }}
{{ dl }}
{{ [s, quote, uni, multi] }}
{{ ['a\x00b\x7f\xa0\u200b\ud7ff\U0001f600\u00ad'] }}
{{ 1 + 2 }} {{ 7 - 9 }} {{ 3 * 4 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ 7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }}
{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 // -2 }} {{ 7 % -3 }} {{ -7 / 2 }}
{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 0.0 // 3 }} {{ -0.0 // 3 }}
{{ 1 + 2.0 }} {{ 2.0 * 3 }} {{ 1e3 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789012345680.0 }} {{ 1e-4 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1e300 * 1e10 }}
{{ 1.5e3 }} {{ 1E5 }} {{ 1_000_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_0.5_0 }} {{ 00 }}
{{ 5e-324 }} {{ 1.7976931348623157e308 }} {{ 100.0 }} {{ 1/3 }} {{ 2/3 }} {{ 1e22 }} {{ 1e21 }} {{ 12345.678 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 1.0 // 0 }}
{{ 1.0 % 0 }}
{{ 0 ** -1 }}
{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ (-2) ** 2 }} {{ -2 ** 2 * 3 }}
{{ 2 + 3 * 4 - 1 }} {{ (2 + 3) * 4 }} {{ 10 - 2 - 3 }} {{ 100 / 10 / 2 }} {{ 7 % 4 * 2 }}
{{ true + 1 }} {{ true * 3 }} {{ true == 1 }} {{ false == 0 }} {{ 1 == 1.0 }} {{ '1' == 1 }} {{ true + true }}
{{ 'a' + 'b' }} {{ 'a' * 3 }} {{ 3 * 'ab' }} {{ 'a' * 0 }} {{ 'a' * -1 }} {{ [1] + [2] }} {{ [0] * 3 }} {{ (1,) + (2,) }} {{ (1, 2) * 2 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ [1] + (2,) }}
{{ none + 1 }}
{{ d[0:1] }}
{{ none_value[1:] }}
{{ n[:2] }}
{{ d.items()[1:] }}
{{ ('a' if false).x }}
{{ 1 + 2 ~ 3 + 4 }}
{{ 1 + ('2' ~ 3)|int + 4 }} {{ 'a' ~ 1 * 2 ~ 'b' }}
{{ n is defined is none }}
{{ 'a'|upper 'b' }}
{{ users|map(attribute='tags.0')|list }}
{{ users|selectattr('addr.zip', 'defined')|list }}
{{ [{'a': {'b': 1}}, {'a': {}}]|selectattr('a.b', 'defined')|list }} {{ [{'t': [1]}, {'t': []}]|map(attribute='t.0')|list }}
{{ users|map(attribute='tags')|list }} {{ n.imag }} {{ f.imag }} {{ n.denominator }} {{ true.real }}
{{ 'a' - 'b' }}
{{ 'a' * 'b' }}
{{ {} + {} }}
{{ 1 ~ 2 }} {{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x'] }}
{{ 'a' ~ 'b' + 'c' ~ 'd' }}
{{ 'a' + 'b' ~ 1 * 2 }} {{ 'x' + 'y' * 2 + 'z' }}
{{ 1 < 2 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 }} {{ 1 == 1 != 2 }} {{ 'a' < 'b' }} {{ 'a' < 'B' }} {{ [1, 2] < [1, 3] }} {{ (1,) < (1, 0) }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ [1] < (1,) }}
{{ {} < {} }}
{{ 1 <= 1 }} {{ 2 >= 3 }} {{ 1.5 > 1 }} {{ 'é' > 'z' }} {{ '中' < '👍' }}
{{ 1 in [1, 2] }} {{ 3 not in [1, 2] }} {{ 'el' in s }} {{ 'b' in d }} {{ 'z' not in d }} {{ 1 in (1,) }} {{ '' in '' }} {{ none in [none] }} {{ 2 in l and 5 not in l }}
{{ 1 in 'abc' }}
{{ 1 in 5 }}
{{ [] in d }}
{{ not 1 }} {{ not not 1 }} {{ not 1 == 2 }} {{ 1 and 0 }} {{ 0 or '' or 'x' }} {{ 1 and 2 and 3 }} {{ '' and 1 }} {{ none or false }}
{{ not true or true }} {{ not (true or true) }} {{ true or false and false }}
{{ 'a' if true else 'b' }} {{ 'a' if false else 'b' }} {{ 'a' if false }}| {{ 1 if 0 else 2 if 0 else 3 }} {{ ('x' if n > 5 else 'y') ~ '!' }}
{{ ('a' if false) is defined }}
{{ 'a' 'b' "c" }} {{ "it's" }} {{ 'say "x"' }} {{ 'a\nb\tc\\d\'e' }} {{ "\x41\u00e9\U0001F600\101\0" }} {{ 'a\qb' }}
{{ s[0] }} {{ s[-1] }} {{ s[0:5] }} {{ s[:5] }} {{ s[6:] }} {{ s[::2] }} {{ s[::-1] }} {{ s[-5:-1] }} {{ s[100:] }}| {{ s[5:2] }}| {{ s[-100:3] }}
{{ uni[0] }} {{ uni[4] }} {{ uni[-1] }} {{ uni[7:13] }} {{ uni[::-1] }} {{ uni|length }} {{ uni[::3] }}
{{ s[100] }}|{{ l[10] }}|{{ l[-4] }}|{{ l['x'] }}
{{ s[::0] }}
{{ l[0] }} {{ l[-1] }} {{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[5:] }} {{ (1, 2, 3)[1:] }} {{ l[none:2] }} {{ l[true] }} {{ l[-2:] }}
{{ l['a':] }}
{{ d[[]] }}|{{ n[0] }}|{{ none_value.x }}|{{ none_value['x'] }}
{{ range(5)|list }} {{ range(2, 5)|list }} {{ range(10, 0, -3)|list }} {{ range(0)|list }} {{ range(3) }} {{ range(1, 10, 2) }} {{ range(5)[1] }} {{ range(5)[-1] }} {{ range(10)[2:5]|list }} {{ range(5)|length }} {{ 3 in range(5) }} {{ 2.0 in range(5) }} {{ range(5)[::-1]|list }}
{{ range(0, 3, 0) }}
{{ range('a') }}
{{ range(100001)|length }}
{{ range(100000)|length }}
{{ [1, 2, 3,] }} {{ (1, 2,) }} {{ {'a': 1, 'b': 2,} }} {{ {1: 2, none: 3, true: 4, (1, 2): 5, 1.5: 6} }}
{{ {'a': 1, 'a': 2} }} {{ {1: 'x', true: 'y', 1.0: 'z'} }}
{{ {[]: 1} }}
{{ 1, 2 }} {{ 'a', }}
{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}
{% if zero %}a{% elif none_value %}b{% elif 'x' %}c{% endif %}
{% if n > 5: %}colon{% endif %}
{% for x in l %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}
{% for x in l %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }} {% endfor %}
{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}
{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}
{% for x in words %}{{ loop.cycle('odd', 'even') }} {% endfor %}
{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}
{% for x in [1, 1, 2] %}{{ loop.changed(x, 'k') }}{% endfor %}
{% for x in [] %}x{% else %}empty{% endfor %}
{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }}/{{ loop.last }} {% else %}none{% endfor %}
{% for x in l if x > 10 %}{{ x }}{% else %}none{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k in d %}{{ k }}{% endfor %} {% for v in d.values() %}{{ v }}{% endfor %} {% for k in d.keys() %}{{ k }}{% endfor %}
{% for a, (b, c) in [(1, (2, 3)), (4, (5, 6))] %}{{ a }}{{ b }}{{ c }} {% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for a, b in [(1,)] %}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in ['xy', 'zw'] %}{{ b }}{{ a }}{% endfor %}
{% for c in 'aé中👍' %}[{{ c }}]{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}-{{ loop.index }} {% endfor %}
{% for x in l %}{% set outer = loop %}{% for y in [1, 2] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}
{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}else{% endfor %}
{% for x in range(10) %}{% if x is odd %}{% continue %}{% endif %}{% if x > 6 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% break %}
{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for n in tree recursive %}{{ n.v }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}
{% for n in tree recursive %}{{ loop.depth }}{{ loop.depth0 }}:{{ n.v }} {{ loop(n.c) }}{% endfor %}
{% for n in tree %}{{ loop(n.c) }}{% endfor %}
{% for x in l %}{{ loop }}{% break %}{% endfor %}
{{ loop }}|{% for x in [1] %}{% endfor %}{{ x }}|{{ loop is defined }}
{% for x in words|sort %}{{ x }} {% endfor %}
{% for x in l|map('string') %}{{ loop.length }}{{ x }}{% endfor %}
{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}{% set ns.c = 3 %}{{ ns.c }} {{ ns['a'] }}
{% set d.x = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set (a, b) = (3, 4) %}{{ a }}{{ b }} {% set a = 1, 2 %}{{ a }}
{% set a, b = [1] %}
{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}
{% set x %}block {{ n }}{% endset %}[{{ x }}]
{% set x | upper %}block {{ n }}{% endset %}[{{ x }}]
{% set x | upper | replace('B', 'c') %}block{% endset %}[{{ x }}]
{% if true %}{% set y = 5 %}{% endif %}{{ y }}
{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}
{% set a = 5 %}{% with a = 1, b = a %}{{ b }}{% endwith %}
{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}
{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(1, c='z') }} {{ f(c=1, a=2) }} {{ f() }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
{% macro f() %}{{ varargs }} {{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}
{% macro f(a) %}{{ a }}{{ varargs|join('-') }}{% for k, v in kwargs|items %}{{ k }}{{ v }}{% endfor %}{% endmacro %}{{ f(1, 2, 3, q=4) }}
{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}
{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% set y = 1 %}{% macro f() %}{{ y }}{% endmacro %}{% set y = 2 %}{{ f() }}
{% macro f() %}{% set q = 1 %}{{ q }}{% endmacro %}{{ f() }}{{ q is defined }}
{% macro f(a) %}{{ caller() }}-{{ a }}{% endmacro %}{% call f(1) %}body{% endcall %}
{% macro f() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=5) f() %}{{ a }}{{ b }}{% endcall %}
{% macro f() %}{% if caller is defined %}{{ caller() }}{% else %}no{% endif %}{% endmacro %}{{ f() }}{% call f() %}yes{% endcall %}
{% macro f() %}{% if caller %}{{ caller() }}{% endif %}|{% endmacro %}{{ f() }}
{% macro f(a) %}{{ a }}{% endmacro %}{% call f(1) %}x{% endcall %}
{% call n %}x{% endcall %}
{% macro f(a, b=1) %}{% endmacro %}{{ f.name }} {{ f.arguments }} {{ f.catch_kwargs }} {{ f.catch_varargs }} {{ f.caller }}
{% macro f() %} x {% endmacro %}[{{ f()|trim }}] {{ f is callable }} {{ n is callable }} {{ range is callable }}
{% macro f(a) %}{% for i in a %}{{ i }}{% endfor %}{% endmacro %}{{ f(*[[1, 2]]) }}{{ f(**{'a': [3]}) }}
{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(b=1, *[2]) }}{{ f(1, **{'b': 3}) }}
{% macro outer() %}{% macro inner(x) %}<{{ x }}>{% endmacro %}{{ inner(1) }}{{ inner(2) }}{% endmacro %}{{ outer() }}
{% filter upper %}abc {{ s }}{% endfilter %}
{% filter replace('a', 'b')|upper %}aaa{% endfilter %}
{% raw %}{{ not }} {% if %} {# c #}{% endraw %}
{%- raw -%}  x  {%- endraw -%}
{# comment #}a{#- c -#} b
{% block foo %}in block {{ n }}{% endblock %} {% block bar %}{% for x in l %}{{ x }}{% endfor %}{% endblock bar %}
{% generation %}gen {{ n }}{% endgeneration %}
{% for m in messages %}{% generation %}{{ m.content }}{{ loop.index }}{% endgeneration %}{% endfor %}
{% autoescape false %}{{ html }}{% endautoescape %}
{% print n, s %}
{% unknown %}
{% endif %}
{% if n %}
{{ n
{{ n }
{{ (1, 2 }}
{{ [1, 2) }}
{{ 'abc }}
{{ 1 2 }}
{{ }}
{% for %}{% endfor %}
{% set 1 = 2 %}
{% set true = 2 %}
{{ a.1b }}
{{ n is nosuchtest }}
{{ n|nosuchfilter }}
{% if false %}{{ n|nosuchfilter }}{{ n is nosuchtest }}{% endif %}ok
{{ n $ }}
{# unclosed
{% raw %} unclosed
{{ s|upper }} {{ s|lower }} {{ s|title }} {{ s|capitalize }} {{ 'foo-bar (baz) [q] <w> {e}'|title }} {{ "they're o'NEIL"|title }}
{{ uni|upper }} {{ uni|lower }} {{ uni|title }} {{ uni|capitalize }} {{ 'ΑΣ ΣΑΣ ΟΔΟΣ.'|lower }} {{ 'ﬁ ŉ'|upper }}
{{ uni.upper() }} {{ uni.lower() }} {{ uni.title() }} {{ uni.capitalize() }} {{ uni.swapcase() }} {{ "they're o'NEIL 3rd".title() }}
[{{ spaces|trim }}] [{{ 'xxaxx'|trim('x') }}] [{{ spaces.strip() }}] [{{ spaces.lstrip() }}] [{{ spaces.rstrip() }}] [{{ 'abcba'.strip('ab') }}] [{{ '\u00a0\u3000x\u2003'.strip() }}] [{{ 'éxé'.strip('é') }}]
{{ s|replace('o', '0') }} {{ s|replace('o', '0', 1) }} {{ s|replace('', '-') }} {{ s.replace('l', '') }} {{ s.replace('l', 'L', 1) }} {{ 'aaa'.replace('aa', 'b') }} {{ n|replace('7', 'x') }} {{ 'ab'|replace('', '-', 2) }}
{{ csv.split(',') }} {{ csv.split(',', 1) }} {{ csv.rsplit(',', 1) }} {{ spaces.split() }} {{ spaces.split(' ') }} {{ 'a b c'.split(none, 1) }} {{ ' a  b '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a--b'.split('--') }} {{ csv.split(sep=',', maxsplit=2) }} {{ ' x y '.split(maxsplit=0) }}
{{ 'a'.split('') }}
{{ multi.splitlines() }} {{ multi.splitlines(true) }} {{ 'a\x0bb\x0cc\x1cd\x85e\u2028f'.splitlines() }} {{ ''.splitlines() }} {{ '\n'.splitlines() }}
{{ s.startswith('He') }} {{ s.endswith('ld') }} {{ s.startswith(('x', 'H')) }} {{ s.startswith('lo', 3) }} {{ s.endswith('lo', 0, 5) }} {{ s.startswith('') }} {{ s.startswith('x', 100) }} {{ s.startswith('', 100) }}
{{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('zz') }} {{ s.find('o', 5) }} {{ s.find('o', -4) }} {{ s.index('W') }} {{ s.rindex('l') }} {{ s.count('l') }} {{ s.count('') }} {{ s.count('l', 4) }} {{ uni.find('中') }} {{ uni.rfind('É') }} {{ 'aaaa'.count('aa') }} {{ s.find('', 3) }} {{ s.rfind('') }}
{{ s.index('zz') }}
{{ ','.join(['a', 'b']) }} {{ ''.join(words) }} {{ '-'.join('abc') }} {{ ', '.join(d) }}
{{ ','.join([1, 2]) }}
{{ 'abc'.isalpha() }} {{ 'ab1'.isalpha() }} {{ '123'.isdigit() }} {{ '1.5'.isdigit() }} {{ '²'.isdigit() }} {{ '½'.isnumeric() }} {{ '½'.isdigit() }} {{ 'ab1'.isalnum() }} {{ ' \n'.isspace() }} {{ ''.isspace() }} {{ 'ABC'.isupper() }} {{ 'abc1'.islower() }} {{ 'Abc'.islower() }} {{ '1'.islower() }} {{ 'é中'.isalpha() }} {{ 'abc'.isascii() }} {{ 'é'.isascii() }} {{ '٣'.isdecimal() }}
{{ 'TestHook'.removeprefix('Test') }} {{ 'TestHook'.removesuffix('Hook') }} {{ 'x'.removeprefix('y') }} {{ '42'.zfill(5) }} {{ '-42'.zfill(5) }} [{{ 'a'.center(4) }}] [{{ 'ab'.center(5, '*') }}] [{{ 'a'.ljust(3) }}] [{{ 'a'.rjust(3, '.') }}] [{{ 'abc'|center(9) }}] [{{ 'ab'.center(3) }}]
{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('=') }} {{ 'abc'.rpartition('=') }}
{{ s.nosuch }} {{ s.nosuch is defined }}
{{ s.nosuch() }}
{{ '{} {}'.format(1, 'a') }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '{x}-{y}'.format(x=1, y=2) }} {{ '{{}}'.format() }} {{ '{!r}'.format('a') }} {{ '{!s:>5}'.format('a') }} {{ '{a[b]}'.format(a={'b': 3}) }} {{ '{0.b}'.format(d) }} {{ '{0[1]}'.format(l) }}
{{ '{:5}|{:<5}|{:>5}|{:^5}|{:*^7}'.format('ab', 'ab', 'ab', 'ab', 'ab') }} {{ '{:5}|{:<5}|{:05}|{:+}|{: }|{:,}'.format(42, 42, 42, 42, 42, 1234567) }} {{ '{:.2f}|{:8.3f}|{:e}|{:g}|{:.1%}|{:x}|{:#x}|{:b}|{:o}|{:X}|{:c}'.format(3.14159, 2.5, 12345.678, 0.00001, 0.256, 255, 255, 5, 8, 255, 65) }} {{ '{:.3}'.format('abcdef') }} {{ '{:{}}'.format('a', 5) }}| {{ '{:_}'.format(1234567) }} {{ '{:010,.2f}'.format(1234.5) }} {{ '{:.3}'.format(1234.5678) }} {{ '{:G}'.format(1e-10) }} {{ '{:=+6}'.format(5) }} {{ '{:06.1f}'.format(-2.55) }}
{{ '{}'.format() }}
{{ '{x}'.format() }}
{{ '{'.format(1) }}
{{ '}'.format(1) }}
{{ '{:d}'.format('a') }}
{{ '{:5}'.format([1]) }}
{{ '{} {0}'.format(1) }}
{{ '{} {} {}'.format(none, true, 1.0) }} {{ '{}'.format([1, 'a']) }} {{ '{a}'.format_map({'a': 1}) }}
{{ '%s %d %5.2f %x %r %%' % ('a', 42, 3.14159, 255, 'q') }} {{ '%s' % 'x' }} {{ '%s' % 5 }} {{ '%(a)s-%(b)03d' % {'a': 1, 'b': 2} }} {{ '%-5s|%5s|%05d|%+d|% d|%o|%X|%e|%g|%c|%i' % ('a', 'b', 42, 5, 5, 8, 255, 12345.678, 0.00001, 'z', 3.9) }} {{ '%.2s' % 'abc' }} {{ '%*d' % (5, 42) }} {{ '%#x %#o' % (255, 8) }} {{ '%s' % [1, 2] }} {{ '%s' % none }} {{ '%5.1f%%' % 99.55 }}
{{ '%s %s' % ('a',) }}
{{ '%s' % (1, 2) }}
{{ '%d' % 'a' }}
{{ 'a' % 'b' }}
{{ '%q' % 1 }}
{{ '%s and %s'|format('a', 'b') }} {{ '%(x)s'|format(x=1) }} {{ 'a%sb'|format('%') }}
{{ l|first }} {{ l|last }} {{ []|first is undefined }} {{ []|last is undefined }} {{ 'abc'|first }} {{ 'abc'|last }} {{ d|first }} {{ d|last }} {{ range(5)|last }} {{ d.keys()|list|first }}
{{ l|join(', ') }} {{ l|join }} {{ users|join(',', attribute='name') }} {{ d|join('-') }} {{ 'abc'|join('.') }} {{ mixed|join('|') }}
{{ l|length }} {{ s|length }} {{ d|length }} {{ l|count }} {{ ''|length }} {{ d.items()|length }}
{{ 5|length }}
{{ l|map('string')|length }}
{{ l|sort }} {{ l|sort(reverse=true) }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ users|sort(attribute='age')|map(attribute='name')|list }} {{ users|sort(attribute='age,name')|map(attribute='name')|list }} {{ users|sort(true, attribute='name')|map(attribute='name')|join(' ') }} {{ 'hello'|sort|join }} {{ d|sort }}
{{ mixed|sort }}
{{ l|reverse|list }} {{ 'abc'|reverse }} {{ (1, 2)|reverse|list }} {{ d|reverse|list }} {{ uni|reverse }} {{ range(3)|reverse|list }}
{{ [1, 2, 1, 3]|unique|list }} {{ words|unique|list }} {{ words|unique(true)|list }} {{ users|unique(attribute='age')|map(attribute='name')|list }}
{{ l|min }} {{ l|max }} {{ words|min }} {{ words|max }} {{ []|min is undefined }} {{ users|min(attribute='age') }} {{ users|max(attribute='age') }} {{ l|sum }} {{ users|sum(attribute='age') }} {{ [1.5, 2]|sum }} {{ l|sum(start=10) }} {{ []|sum }} {{ [[1], [2]]|sum(start=[]) }}
{{ ['a']|sum }}
{{ words|map('upper')|list }} {{ users|map(attribute='name')|list }} {{ users|map(attribute='addr.zip', default='-')|list }} {{ users|map(attribute='addr')|list }} {{ l|map('string')|join(',') }} {{ nested|map('first')|list }} {{ l|map('default', 5)|list }} {{ words|map('replace', 'a', 'A')|list }} {{ nested|map(attribute=0)|list }} {{ l|map('round', 1)|list }}
{{ l|map|list }}
{{ l|map('nosuch')|list }}
{{ l|select('odd')|list }} {{ l|reject('odd')|list }} {{ [0, 1, '', 'a', none]|select|list }} {{ [0, 1]|reject|list }} {{ l|select('gt', 1)|list }} {{ l|select('in', [1, 2])|list }} {{ l|select('divisibleby', 3)|list }} {{ words|select('eq', 'Apple')|list }} {{ mixed|select('string')|list }} {{ mixed|select('none')|list }} {{ l|select('>=', 2)|list }} {{ mixed|select('number')|list }}
{{ users|selectattr('active')|map(attribute='name')|list }} {{ users|rejectattr('active')|map(attribute='name')|list }} {{ users|selectattr('age', 'equalto', 25)|map(attribute='name')|list }} {{ users|selectattr('addr', 'defined')|map(attribute='name')|list }} {{ users|rejectattr('age', 'lt', 30)|list|length }} {{ users|selectattr('name', 'in', ['Ann'])|list|length }} {{ messages|selectattr('role', '==', 'user')|map(attribute='content')|first }}
{{ users|selectattr|list }}
{% if l|select('gt', 100) %}generator is true{% endif %}
{% set g = l|map('string') %}{{ g|join }}{{ g|join }}|
{{ (l|map('string')) is iterable }} {{ (l|map('string')) is sequence }} {{ l is sequence }}
{{ users|groupby('age') }}
{% for age, group in users|groupby('age') %}{{ age }}:{{ group|map(attribute='name')|join(',') }};{% endfor %}{% for g in users|groupby('city') %}{{ g.grouper }}{{ g.list|length }}{% endfor %} {% for g in users|groupby('addr.zip', default='none') %}{{ g.grouper }}{{ g[1]|length }} {% endfor %}{{ users|groupby('city', case_sensitive=true)|length }}
{{ d|dictsort }} {{ d|dictsort(true) }} {{ d|dictsort(by='value') }} {{ d|dictsort(reverse=true) }} {{ d|dictsort(false, 'value', true) }}
{{ d|dictsort(by='x') }}
{{ d|items|list }} {{ missing|items|list }} {{ d.items()|list }} {{ d.keys() }} {{ d.values() }} {{ d.items() }}
{{ l|items|list }}
{{ range(7)|batch(3)|list }} {{ range(7)|batch(3, 'x')|list }} {{ range(7)|slice(3)|list }} {{ range(7)|slice(3, 'x')|list }} {{ []|batch(2)|list }} {{ range(4)|slice(3, 0)|list }}
{{ range(3)|slice(0)|list }}
{{ l|list }} {{ 'abc'|list }} {{ d|list }} {{ (1, 2)|list }} {{ ''|list }}
{{ num|int }} {{ fnum|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ hex|int(base=16) }} {{ hex|int(0, 0) }} {{ 3.99|int }} {{ -3.99|int }} {{ true|int }} {{ none|int }} {{ '1_000'|int }} {{ '0b11'|int(base=2) }} {{ '-0x1f'|int(0, 16) }} {{ []|int }} {{ 'ff'|int(0, 16) }} {{ '1e3'|int }} {{ ''|int(9) }}
{{ fnum|float }} {{ num|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ 3|float }} {{ true|float }} {{ 'inf'|float }} {{ '-Infinity'|float }} {{ 'nan'|float }} {{ '1e5'|float }} {{ '.5'|float }} {{ '5.'|float }} {{ '1_0.5'|float }} {{ none|float }} {{ '+2'|float }} {{ '1e400'|float }} {{ '0x10'|float }}
{{ -5|abs }} {{ 5|abs }} {{ -2.5|abs }} {{ true|abs }} {{ (-3)|abs }}
{{ 'a'|abs }}
{{ 2.5|round }} {{ 3.5|round }} {{ 42.55|round(1) }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 42|round }} {{ 42.4|round|int }} {{ 1234.5|round(-2) }} {{ 1250|round(-2) }} {{ 1350|round(-2) }} {{ 0.5|round }} {{ 1.005|round(2) }} {{ -2.5|round }} {{ 5|round(2) }} {{ 2.675|round(2) }} {{ 1e20|round(2) }} {{ 15|round(-1) }} {{ -15|round(-1) }} {{ 7|round(1, 'floor') }}
{{ 2.5|round(method='x') }}
{{ none_value|default('x') }} {{ none_value|default('x', true) }} {{ ''|default('x', boolean=true) }} {{ missing|d('y') }} {{ 0|d(5, true) }} {{ missing|default }}| {{ d.zz|default('q') }}
{{ s|string }} {{ 5|string ~ 'a' }} {{ [1]|string }} {{ none|string }} {{ 1.0|string }} {{ true|string|lower }}
{{ html|escape }} {{ html|e }} {{ html|safe }} {{ html|forceescape }} {{ html|urlencode }} {{ 'a b/c?d=é&f'|urlencode }} {{ {'a b': 'c d', 'e': 1}|urlencode }} {{ [('x', '1 2'), ('y', '/')]|urlencode }} {{ 5|urlencode }}
{{ '<b>'|safe + '<i>' }} {{ '<i>' + '<b>'|safe }} {{ '<b>'|safe ~ '<i>' }} {{ html|e + html }} {{ html|e|e }} {{ html|e|forceescape }} {{ 'x'|safe is escaped }} {{ ('<b>'|safe)[0] + '<' }} {{ ('<b>'|safe)[1:] + '<' }} {{ ('<b> '|safe|trim) + '<' }} {{ ('<b>'|safe|upper) + '<' }} {{ ('<b>'|safe).lower() + '<' }} {{ ('<b>'|safe) * 2 + '<' }} {{ '<'|safe + '>'|safe }} {{ ['<'|safe] }}
{{ ('<'|safe).join(['>', 'a'|safe]) }} {{ ('<%s>'|safe) % '<' }} {{ ('<{}>'|safe).format('<') }} {{ ('a<b'|safe).replace('a', '<') + '<' }} {{ ('a<b'|safe|replace('a', '<')) + '<' }} {{ ('<a b'|safe).split()[0] + '<' }} {{ '<'|safe|string + '<' }} {{ ['<'|safe, '<']|join }} {{ ('<'|safe|indent) + '<' }} {{ ('<'|safe|tojson) + '<' }} {{ ('<'|safe|title) + '<' }} {{ ('<'|safe|reverse) + '<' }} {{ ('<'|safe|center(5)) + '<' }} {{ '%s'|safe|format('<') }} {{ 5|safe + '<' }} {{ ('<'|safe) == '<' }} {{ '<' in '<'|safe }}
{{ 1|safe + 1 }}
{{ 'one two-three four_five'|wordcount }} {{ ''|wordcount }} {{ 'é中 x'|wordcount }} {{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, true) }} {{ 'foo bar baz qux'|truncate(11) }} {{ 'foo bar baz qux'|truncate(11, false, '..', 0) }} {{ 'x'|truncate }}
{{ 'x'|truncate(1) }}
{{ multi|indent }} | {{ multi|indent(2, true) }} | {{ multi|indent(2, blank=true) }} | {{ multi|indent('> ', true, true) }} | {{ 'a\n'|indent }} | {{ ''|indent }} | {{ 'a\n\nb'|indent(width=1, first=true) }} | {{ '\n'|indent(2, true) }}
{{ 1000|filesizeformat }} {{ 1|filesizeformat }} {{ 999|filesizeformat }} {{ 123456789|filesizeformat }} {{ 1024|filesizeformat(true) }} {{ 1500000|filesizeformat(binary=true) }} {{ '2000'|filesizeformat }} {{ 1e30|filesizeformat }}
{{ {'class': 'x', 'id': none, 'a': 1}|xmlattr }}
{{ s|attr('upper') is callable }} {{ d|attr('b') is undefined }} {{ d|attr('items') is callable }}
{{ d|tojson }} {{ l|tojson }} {{ dl|tojson }} {{ dl|tojson(ensure_ascii=true) }} {{ uni|tojson }} {{ uni|tojson(true) }} {{ quote|tojson }} {{ html|tojson }} {{ none|tojson }} {{ true|tojson }} {{ 1.0|tojson }} {{ 1e20|tojson }} {{ [1, [2, {}], []]|tojson }}
{{ d|tojson(indent=2) }} {{ nested|tojson(indent=4) }} {{ d|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }} {{ d|tojson(indent=0) }} {{ d|tojson(indent='--') }} {{ {}|tojson(indent=2) }} {{ tools|tojson(indent=4) }} {{ users|tojson(indent=1, sort_keys=true) }} {{ [(1, 2), 'x']|tojson(indent=2, separators=(';', '=')) }}
{{ {1: 'a', none: 'b', true: 'c', 1.5: 'd', false: 'e'}|tojson }} {{ 'a\x00\x1f\x7f\b\f'|tojson }} {{ ('nan'|float)|tojson }} {{ ('-inf'|float)|tojson }} {{ (1, 2)|tojson }} {{ '\u2028</script>'|tojson }}
{{ missing|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ range(3)|tojson }}
{{ (l|map('string'))|tojson }}
{{ d.items()|tojson }}
{{ namespace(a=1)|tojson }}
{{ {1: 1, 'a': 2}|tojson(sort_keys=true) }}
{{ n is defined }} {{ n is undefined }} {{ none is none }} {{ n is not none }} {{ s is string }} {{ n is number }} {{ n is integer }} {{ f is float }} {{ t is boolean }} {{ d is mapping }} {{ l is sequence }} {{ s is sequence }} {{ d is sequence }} {{ d is iterable }} {{ 5 is iterable }} {{ t is number }} {{ t is integer }} {{ none_value is string }} {{ missing is none }}
{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(3) }} {{ n is eq 7 }} {{ n is ne(7) }} {{ n is lt 8 }} {{ n is gt(8) }} {{ n is le 7 }} {{ n is ge 7 }} {{ n is in [7] }} {{ n is not in [7] }} {{ n is equalto 7 }} {{ n is lessthan 3 }} {{ n is greaterthan 3 }} {{ -3 is odd }} {{ 2.0 is even }}
{{ t is true }} {{ 1 is true }} {{ no is false }} {{ 0 is false }} {{ none is sameas none }} {{ true is sameas true }} {{ l is sameas l }} {{ [] is sameas [] }} {{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'Abc' is lower }} {{ 5 is upper }} {{ 'upper' is filter }} {{ 'zzz' is filter }} {{ 'odd' is test }} {{ 'zzz' is test }} {{ s is escaped }}
{{ n is divisibleby 0 }}
{{ 'a' is divisibleby 2 }}
{{ 'a' is odd }}
{{ n is defined and n > 3 }} {{ not n is defined }}
{{ 'a' if n is odd else 'b' }} {{ n is odd or false }} {{ (n is odd) and (n is even) }} {{ [1, 2] is iterable and 'x' }}
{{ missing is defined and missing.x }} {{ missing is not defined or missing.x }}
{{ -1|abs }} {{ 1 + -1|abs }} {{ -n|abs }} {{ not n|string }} {{ 2 * 3|string|length }} {{ 'a' ~ 'b'|upper }} {{ ('a' ~ 'b')|upper }} {{ n|string + 'x' }}
{{ d.items()|list|length }} {{ (d|dictsort)[0][1] }} {{ (s|upper).lower() }} {{ s.upper().lower()[0:2] }} {{ [1, 2, 3][1] }} {{ {'a': {'b': 1}}.a.b }} {{ 'x'.join(['a', 'b']).upper() }} {{ (1, 2).count(1) }} {{ [3, 4].index(4) }} {{ 'a.b'.split('.')[-1] }} {{ (1 if n else 2)|string }}
{{ [1].index(9) }}
{{ cycler('a', 'b').next() }} {% set c = cycler(1, 2, 3) %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{% set x = c.reset() %}{{ c.next() }}
{{ cycler() }}
{% set j = joiner(', ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %} {% set k = joiner() %}{{ k() }}a{{ k() }}b
{{ dict(a=1, b=2) }} {{ dict(d, z=9) }} {{ dict([('x', 1), ('y', 2)]) }} {{ dict() }} {{ dict(a=1).a }} {{ dict(**d) }}
{{ dict([1]) }}
{{ raise_exception('stop here') }}
{% if false %}{{ raise_exception('no') }}{% endif %}fine
{{ strftime_now('%Y-%m-%d') }} {{ strftime_now('%d %b %Y') }} {{ strftime_now('%H:%M:%S %p %j %A %B %y %-d %e %%') }} {{ strftime_now('no codes') }} {{ strftime_now('%F %T %D %I %w %u %U %V %G %C %h %R %a') }}
{%- for m in messages -%} [{{ m.role }}: {{ m['content'] }}] {%- endfor -%}
{%- if tools -%} {{- tools | tojson -}} {%- endif %}
{% if true -%}   left   {%- endif %}   right
a  {{- n -}}  b
a  {{ n }}  b
x {%- set q = 1 -%} y
text {% if true %} same line {% endif %} more
{{ '{{' }} {{ '%}' }} {{ '#}' }} {{ "}}" }}
{{ {'a': {'b': {}}} }}
{% set x = {'a': [1, 2, {'c': 'd'}]} %}{{ x.a[2].c }} {{ x['a'][0] }}
{{ [x for x in l] }}
{{ lambda: 1 }}
{{ l[0], l[1] }} {{ (l[0], l[1])|join }}
{{ 'a' in 'abc' and 'd' not in 'abc' }} {{ not 'a' in 'abc' }} {{ 1 in [1] == true }}
{{ n.real }}|{{ n.nosuch is defined }}
{{ s|nosuch.dotted }}
{{ 1.5.real }}
{{ 1|string|length is eq 1 }} {{ (1, 2) is sequence }} {{ {} is mapping }} {{ [] is mapping }}
{{ messages[0].role }} {{ messages[-1]['content'] }} {{ messages[1:]|length }} {{ messages|map(attribute='role')|unique|join(',') }} {{ (messages|last).content }} {{ messages[::-1][0].role }}
{% if messages[0]['role'] == 'system' %}{% set system_message = messages[0]['content'] %}{% set loop_messages = messages[1:] %}{% else %}{% set loop_messages = messages %}{% endif %}{{ system_message }}{% for m in loop_messages %}{{ m.role }}{% endfor %}
{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ 'odd ' }}{% endif %}{{ '<|' + message['role'] + '|>' + '\n' + message['content'] + eos_token + '\n' }}{% endfor %}
{% set ns = namespace(found=false, items=[]) %}{% for m in messages %}{% if m.role == 'user' and not ns.found %}{% set ns.found = true %}{% set ns.items = ns.items + [m.content] %}{% endif %}{% endfor %}{{ ns.found }} {{ ns.items }}
{{ bos_token }}{% for tool in tools %}{% set f = tool.function %}{{ f.name }}({% for p, v in f.parameters.properties.items() %}{{ p }}: {{ v.type }}{% if p in f.parameters.required %}!{% endif %}{% endfor %}){% endfor %}
{{ 'a' 'b'|upper }} {{ ('a' 'b').upper() }}
{% set x = 'é' %}{{ x * 3 }} {{ x|length }} {{ (x ~ '中')[1] }} {{ x|urlencode }} {{ x == 'e\u0301' }}
{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }} {{ 4611686018427387904 * 1 }}
{{ (1, 2) == [1, 2] }} {{ [1, [2]] == [1, [2]] }} {{ {'a': 1} == {'a': 1.0} }} {{ none == false }} {{ '' == none }} {{ range(3) == range(0, 3) }} {{ 0.0 == -0.0 }} {{ [1] != [1.0] }}
{{ ('nan'|float) == ('nan'|float) }} {{ ('nan'|float) < 1 }} {{ ('inf'|float) > 1e308 }}
{{ [none, true, false, 1.5, 'x'] }} {{ {'k': (1,)} }} {{ ['"', "'", '"\''] }} {{ ['\\', '\n'] }}
{{ 3.0 }} {{ 3.10 }} {{ 1e2 }} {{ 0.00001234 }} {{ 123456.789e3 }} {{ 1.0e-10 }} {{ 2.0 ** 0.5 }} {{ 4 ** 0.5 }} {{ 10 ** 15 }} {{ 10 ** 18 }}
{{ 7 if n == 7 else raise_exception('x') }} {{ n == 7 or raise_exception('x') }}
{% for i in range(3) %}{% for j in range(3) %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}
{% for i in range(3) %}{% set t = 'x' %}{% endfor %}{{ t }}
{% set a = [] %}{% for i in range(3) %}{% set a = a + [i] %}{% endfor %}{{ a }}
{% for x in [1, 2, 3] %}{% if loop.first %}{% set f = x %}{% endif %}{{ f }}{% endfor %}
{% for key in ['a', 'b'] %}{{ d[key] }}{% endfor %} {% for i in range(l|length) %}{{ l[i] }}{% endfor %} {% for i in range(l|length - 1, -1, -1) %}{{ l[i] }}{% endfor %}
{{ users|map(attribute='tags')|map('length')|list }}
{{ users|map('attr', 'name')|list }}
{{ users[0]|list }} {{ users[0]|length }} {{ users|map('items')|map('list')|map('length')|list }}
{{ users|tojson }}
{{ l|truncate(1) }}
{{ l|truncate(5) }}
{{ l|truncate(2, true) }}
{{ l|truncate(2, true, leeway=0) }}
{{ l|truncate(1, true, '', 0) }}
{{ l|truncate(3, leeway=0) }}
{{ d|truncate(1) }}
{{ d|truncate(1, leeway=0) }}
{{ ()|truncate(1, leeway=0) }}
{{ (1,2,3)|truncate(1, true, (), leeway=0) }}
{{ (1,2,3)|truncate(1, true, '', leeway=0) }}
{{ [1,2,3]|truncate(1, true, [], leeway=0) }}
{{ [1,2,3]|truncate(1, true, [9], leeway=1) }}
{{ [1,2,3,4,5,6,7,8,9]|truncate(3, true, [9]) }}
{{ [1,2,3]|truncate(1, false, [], leeway=0) }}
{{ none|truncate }}
{{ 5|truncate }}
{{ missing|truncate(1) }}|
{{ 'Hello big World'|truncate(9, leeway=0) }}|{{ 'Hello big World'|truncate(9, true, leeway=0) }}|{{ 'Hello big World'|truncate(9, true, '', 2) }}|{{ 'Hello big World'|truncate(2, true, '...') }}
{{ s|truncate(5, leeway=-1) }}
{{ s|truncate(-3) }}
{{ s|truncate(5, true, 7, 0) }}
{{ d.keys() == d.keys() }} {{ d.keys() == ['b','a','C'] }} {{ d.keys() != d.keys() }}
{{ d.keys() == {'a':1,'C':1,'b':1}.keys() }} {{ {}.keys() == {}.keys() }} {{ {}.keys() == [] }}
{{ d.items() == {'a':2,'C':3,'b':1}.items() }} {{ d.items() == {'a':2,'C':3,'b':9}.items() }}
{{ d.values() == d.values() }} {{ d.values() != d.values() }}
{{ d.keys() | list }} {{ d.keys() in [d.keys()] }} {{ d.keys()|list == d|list }}
{{ {'a':[1]}.items() == {'a':[1]}.items() }}
{{ {1:2}.keys() == {1.0:3}.keys() }} {{ {true:2}.keys() == {1:3}.keys() }}
{{ [d.keys()] == [{'a':1,'b':1,'C':1}.keys()] }}
{{ d.keys() is eq({'a':1,'b':1,'C':1}.keys()) }}
"""

# Templates of several lines, each ended by a line of %%%%.
BLOCKS = r"""
{{ 'line\
continued' }}
%%%%
{{ 'multi
line' }}
%%%%
{% filter indent(2) %}a
b{% endfilter %}
%%%%
a {% raw %}
 b
{% endraw %}
 c
%%%%
a
    {# comment on its line #}
b
%%%%
  {% if true %}
    indented
  {% endif %}
after
%%%%
  {%+ if true %}kept{% endif +%}
next
%%%%
a
{{- n }}
b
{{ n -}}

c
%%%%
{% set q = 1 %}
{% set r = 2 %}

{{ q }}{{ r }}
%%%%
line one
    {% for x in l %}
    item {{ x }}
    {% endfor %}
end
%%%%
    {%- for x in l %}
    item {{ x }}
    {%- endfor %}
end
%%%%
	{% if true %}
	tab
	{% endif %}
text{# c #}
%%%%
{# c #}text
{#- a -#}   x   {#- b -#}
%%%%
{% macro render(v, depth=0) %}{% if v is mapping %}{% for k, x in v|dictsort %}{{ '  ' * depth }}{{ k }}:
{{ render(x, depth + 1) }}{% endfor %}{% elif v is iterable and v is not string %}{% for x in v %}{{ '  ' * depth }}- {{ render(x, depth + 1) }}{% endfor %}{% else %}{{ '  ' * depth }}{{ v }}
{% endif %}{% endmacro %}{{ render(tools) }}
%%%%
{% for m in messages %}
  {{ m.role }}
{% endfor %}
done
%%%%
{%- set ns = namespace(is_first=true) -%}
{%- for m in messages -%}
    {%- if ns.is_first -%}
        {{ bos_token }}
        {%- set ns.is_first = false -%}
    {%- endif -%}
    {{ m.role }}: {{ m.content | trim }}
{% endfor -%}
%%%%
{% macro item(m) -%}
  * {{ m.role }} -
  {{- m.content }}
{%- endmacro %}
{% for m in messages %}
{{ item(m) }}
{% endfor %}
%%%%
{% raw %}
  {{ raw }}
{% endraw %}
after
%%%%
{# a comment
   over lines #}
text
  {#- another -#}
  end
%%%%
{% set text %}
  {% for x in l %}
  {{ x }}
  {% endfor %}
{% endset %}
[{{ text }}]
%%%%
{% filter indent(4, true) %}
first
{% for x in l %}
{{ x }}
{% endfor %}
{% endfilter %}
%%%%
{% for x in l -%}
  {{ x }}
  {%- if not loop.last %},{% endif %}
{%- endfor %}
%%%%

leading newline
{{ n }}

%%%%
trailing newlines


%%%%
a{% if true %}
b{% endif %}
c
%%%%
{% if true %}x{% endif %}

{% if true %}y{% endif %}
%%%%
{%- macro a() %}A{% endmacro %}{%- macro b() %}{{ a() }}B{{ caller() if caller }}{% endmacro -%}
{% call b() %} inner {{ a() }}{% endcall %}|{{ b() }}
%%%%
{% for u in users recursive -%}
{{ u.name }}{% if u.tags %}[{{ loop(u.tags|map('default', {})|reject('string')|list) }}]{% endif %}
{% endfor %}
%%%%
   {% set a = 1 %}   {{ a }}   {% set b = 2 %}
   {% set c = 3 %}
  x{{ a }}{{ b }}{{ c }}
%%%%
{{ n
   +
   1 }} {% if n
   and t %}ok{% endif %}
%%%%
{% for x in l %}{# c #}
{{ x }}
{# d #}
{% endfor %}
%%%%
{% for x in l %}
{% if x == 2 %}
{% continue %}
{% endif %}
{{ x }}
{% endfor %}
"""

MUTATING = r"""
{% set a = [1] %}{% set x = a.append(2) %}{{ a }} {{ x }}
{% set a = [1, 2] %}{{ a.pop() }}{{ a }}{% set x = a.extend([5, 6]) %}{{ a }}{% set x = a.insert(0, 9) %}{{ a }}{{ a.pop(0) }}{% set x = a.remove(5) %}{{ a }}{% set x = a.reverse() %}{{ a }}
{% set a = [3, 1, 2] %}{% set x = a.sort() %}{{ a }}{% set x = a.sort(reverse=true) %}{{ a }}{% set x = a.clear() %}{{ a }}
{% set a = {'x': 1} %}{% set y = a.update({'z': 2}) %}{{ a }}{{ a.pop('x') }}{{ a }}{{ a.pop('q', 'dflt') }}{{ a.setdefault('n', 5) }}{{ a }}{{ a.popitem() }}{{ a }}{% set y = a.clear() %}{{ a }}
{% set a = {} %}{{ a.pop('x') }}
{% set a = [] %}{{ a.pop() }}
{% set a = {'x': 1} %}{% set b = a.copy() %}{% set y = a.update(x=2, w=3) %}{{ a }}{{ b }}
{% set a = [1] %}{% set b = a %}{% set x = b.append(2) %}{{ a }}{{ a.copy() }}
{% set ns = namespace(l=[]) %}{% for i in range(3) %}{% set _ = ns.l.append(i) %}{% endfor %}{{ ns.l }}
{% set a = [1, 2, 3] %}{% set _ = a.insert(-1, 'x') %}{{ a }}{% set _ = a.insert(100, 'y') %}{{ a }}
"""

