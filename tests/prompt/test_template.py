"""What is rendered is what transformers renders; what costs too much is stopped."""

from __future__ import annotations

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any

import jinja2
import pytest

from minimsg.errors import TemplateError
from minimsg.limits import LIMITS, MIB
from minimsg.prompt.template import ChatTemplate

USER = [{"role": "user", "content": "hi"}]


def peak_bytes() -> int:
    """The most memory that this process ever had (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def rendered(source: str, messages: list[dict[str, Any]] | None = None, **variables: Any) -> str:
    template = ChatTemplate(source, {"bos_token": "<s>"})
    return template.render(messages or USER, add_generation_prompt=True, **variables)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ bos_token }}{{ messages[0].content }}", "<s>hi"),
        ("{{ {'a': 'é<&>'} | tojson }}", '{"a": "é<&>"}'),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}", '{"a": 2, "b": 1}'),
        ("{{ {'a': [1]} | tojson(indent=1) }}", '{\n "a": [\n  1\n ]\n}'),
        ("{{ [1, 2] | tojson(separators=(',', ':')) }}", "[1,2]"),
        ("{{ ['é'] | tojson(ensure_ascii=true) }}", '["\\u00e9"]'),
        ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"),
        (
            "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
            "13",
        ),
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{% generation %}x{{ bos_token }}{% endgeneration %}", "x<s>"),
        ("{% set ns = namespace(n=1) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}", "2"),
        ("{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m('a') ~ m(1) }}", "[a][1]"),
        ("{% set x %}a{{ 1 }}{% endset %}{{ x | upper }}", "A1"),
        ("{% set x | upper %}a{% endset %}{{ x }}", "A"),
        ("{% for k, v in {'a': 1} | items %}{{ k }}{{ v }}{% endfor %}", "a1"),
        ("{% for x in [3, 1] | sort if x > 1 %}{{ loop.index }}{{ x }}{% endfor %}", "13"),
        ("{{ 'abc'[::-1] }}{{ (1, 2)[0] }}{{ [1, 2] + [3] }}", "cba1[1, 2, 3]"),
        ("{{ '%s-%03d' | format('a', 7) }}{{ '{:>3}'.format('x') }}{{ '%d%%' % 5 }}", "a-007  x5%"),
        ("{{ 'a,b'.split(',') | join('+') }}{{ '-'.join(['x', 'y']) }}", "a+bx-y"),
        ("{{ ['a', 'b'] | map('upper') | join }}{{ 'x' | center(5) }}{{ 2 ** 10 }}", "AB  x  1024"),
        (
            "{{ dict(a=1).a }}{{ range(3) | list }}{{ 'ab' * 2 }}{{ none ~ x }}",
            "1[0, 1, 2]ababNone",
        ),
        ("{{ 'x\ny' | indent(2) }}", "x\n  y"),
    ],
)
def test_a_template_finds_what_templates_use(source: str, expected: str) -> None:
    assert rendered(source) == expected


def test_the_date_is_todays() -> None:
    assert rendered("{{ strftime_now('%Y') }}") == datetime.now().strftime("%Y")


def test_a_field_that_is_none_counts_as_absent() -> None:
    messages = [{"role": "assistant", "content": "x", "tool_calls": None}]
    assert rendered("{{ messages[0].tool_calls is defined }}", messages) == "False"


def test_a_template_that_refuses_says_why() -> None:
    with pytest.raises(TemplateError, match="roles must alternate"):
        rendered("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ('' | attr('__class__')).mro() }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ '{0.__class__.__name__}'.format('') }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(a=1) }}",
        "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
        "{{ namespace(__class__=1) }}",
        "{{ 'a'.encode() }}",
        "{{ (5).to_bytes(3) }}",
        "{{ lipsum.__globals__ }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{{ 'a' | random }}",
        "{{ x.y.z }}",
        "{{ 'a' + 1 }}",
        "{{ 'a' + none }}",
        "{{ 1 / 0 }}",
        "{{ [1][5] + 1 }}",
        "{{ {1, 2} }}",
        "{% for x in %}",
        "{{ 'x' | nosuchfilter }}",
        "{% generation %}",
    ],
)
def test_what_is_unsafe_or_wrong_is_a_template_error(source: str) -> None:
    with pytest.raises(TemplateError):
        rendered(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''['__class__'] }}",
        "{{ '' | attr('__class__') }}",
        "{{ raise_exception.__globals__ }}",
        "{{ ('{0.__class__}' | attr('format'))('') }}",
        "{{ self._TemplateReference__context }}",
    ],
)
def test_what_is_unsafe_to_look_at_is_empty(source: str) -> None:
    assert rendered(source) == ""


BOMBS = {
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}"
    "{% endfor %}{% endfor %}",
    "a loop that only filters": "{% for a in range(9999) %}{% for b in range(99999) if false %}"
    "{% endfor %}{% endfor %}",
    "a macro that calls itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "a macro that calls itself twice": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}"
    "{% endif %}{% endmacro %}{{ m(40) }}",
    "a block that calls itself": "{% block x %}{{ self.x() }}{% endblock %}",
    "a recursive loop": "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "a product": "{{ 'a' * 500000000 }}",
    "a product from the left": "{{ 500000000 * 'a' }}",
    "a list product": "{{ [1] * 500000000 }}",
    "a product of a product": "{{ [['a' * 1000] * 1000] * 1000 }}",
    "doubling by +": "{% set n = namespace(x='a') %}{% for i in range(60) %}"
    "{% set n.x = n.x + n.x %}{% endfor %}",
    "doubling by ~": "{% set n = namespace(x='a') %}{% for i in range(60) %}"
    "{% set n.x = n.x ~ n.x %}{% endfor %}",
    "doubling a list": "{% set n = namespace(x=[1]) %}{% for i in range(60) %}"
    "{% set n.x = n.x + n.x %}{% endfor %}",
    "doubling by a block": "{% set n = namespace(x='a') %}{% for i in range(60) %}"
    "{% set y %}{{ n.x }}{{ n.x }}{% endset %}{% set n.x = y %}{% endfor %}",
    "doubling by a macro": "{% macro m(x) %}{{ x }}{{ x }}{% endmacro %}"
    "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = m(n.x) %}{% endfor %}",
    "doubling by format": "{% set n = namespace(x='a') %}{% for i in range(60) %}"
    "{% set n.x = '%s%s' % (n.x, n.x) %}{% endfor %}",
    "doubling by join": "{% set n = namespace(x='a') %}{% for i in range(60) %}"
    "{% set n.x = [n.x, n.x] | join %}{% endfor %}",
    "doubling by replace": "{% set n = namespace(x='a') %}{% for i in range(60) %}"
    "{% set n.x = n.x.replace('a', 'aa') %}{% endfor %}",
    "lists that share their parts": "{% set n = namespace(x='a') %}{% for i in range(60) %}"
    "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    "dicts that share their parts": "{% set n = namespace(x='a') %}{% for i in range(60) %}"
    "{% set n.x = {'a': n.x, 'b': n.x} %}{% endfor %}{{ n.x | tojson }}",
    "slices that are kept": "{% set n = namespace(x=[], s='a' * 1000000) %}"
    "{% for i in range(99999) %}{% set n.x = n.x + [n.s[i:]] %}{% endfor %}",
    "a filter's width": "{{ 'a' | center(500000000) }}",
    "a method's width": "{{ 'a'.ljust(500000000) }}",
    "zfill": "{{ 'a'.zfill(500000000) }}",
    "a format's width": "{{ '%500000000d' % 1 }}",
    "a format's width in an argument": "{{ '%*d' % (500000000, 1) }}",
    "a format method's width": "{{ '{:>500000000}'.format(1) }}",
    "a format method's width in an argument": "{{ '{:>{w}}'.format(1, w=500000000) }}",
    "a format filter's width": "{{ '%500000000d' | format(1) }}",
    "an empty replace": "{{ ('a' * 100000).replace('', 'b' * 100000) }}",
    "a replace filter": "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}",
    "a join method": "{{ ('a' * 100000).join(range(99999) | map('string')) }}",
    "a join filter": "{{ range(99999) | join('a' * 100000) }}",
    "an indent filter": "{{ ('\n' * 100000) | indent(100000, true, true) }}",
    "an indent of JSON": "{{ [1] | tojson(indent=500000000) }}",
    "batch": "{{ [1] | batch(500000000, 'x') | list }}",
    "slice": "{{ [1] | slice(500000000) | list }}",
    "a list of characters": "{{ ('a' * 60000000) | list }}",
    "pieces of a split": "{{ ('a ' * 30000000).split() }}",
    "a power": "{{ 10 ** 100000000 }}",
    "squares of squares": "{% set n = namespace(x=9) %}{% for i in range(60) %}"
    "{% set n.x = n.x * n.x %}{% endfor %}",
    "round": "{{ 1.5 | round(500000000, 'ceil') }}",
    "a sum of lists": "{{ range(99999) | batch(1) | sum(start=[]) }}",
    "a range": "{{ range(1000000000) | list }}",
    "deep nesting": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_a_template_error_and_costs_neither_time_nor_memory(name: str) -> None:
    limits = replace(LIMITS, template_steps=20_000, template_output_chars=8 * MIB)
    start, peak = time.process_time(), peak_bytes()
    with pytest.raises(TemplateError):
        ChatTemplate(BOMBS[name], {}, limits=limits).render(USER, add_generation_prompt=True)
    assert time.process_time() - start < 5
    assert peak_bytes() - peak < 256 * MIB


def test_the_budget_is_for_one_rendering_and_threads_do_not_share_it() -> None:
    template = ChatTemplate(
        "{% for x in range(n) %}{{ x }}{% endfor %}", {}, limits=replace(LIMITS, template_steps=100)
    )

    def render(n: int) -> str:
        return template.render(USER, add_generation_prompt=True, n=n)

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(render, [100] * 50))) == 1
    with pytest.raises(TemplateError, match="more than 100 steps"):
        render(101)


def test_output_and_time_are_limited() -> None:
    small = replace(LIMITS, template_output_chars=1_000)
    template = ChatTemplate("{% for x in range(n) %}12345678{% endfor %}", {}, limits=small)
    assert len(template.render(USER, add_generation_prompt=True, n=125)) == 1_000
    with pytest.raises(TemplateError, match="makes more than"):
        template.render(USER, add_generation_prompt=True, n=2_000)
    slow = ChatTemplate(
        "{% for x in range(9) %}{% endfor %}", {}, limits=replace(LIMITS, template_time_s=0.0)
    )
    with pytest.raises(TemplateError, match="more than 0 s"):
        slow.render(USER, add_generation_prompt=True)


def test_a_long_conversation_is_within_budget() -> None:
    source = "{% for m in messages %}{{ m.role ~ ':' ~ (m.content | trim) + '\n' }}{% endfor %}"
    messages = [{"role": "user", "content": "x" * 500}] * 20_000
    assert len(rendered(source, messages)) == 20_000 * 506


def test_a_source_that_is_too_long_is_refused() -> None:
    with pytest.raises(TemplateError, match="at most 1 MiB"):
        ChatTemplate("x" * ((1 << 20) + 1), {})


def test_the_metered_environment_renders_as_plain_jinja_does() -> None:
    source = (
        "{% for m in messages if m.role != 'tool' %}{{ loop.index0 ~ '/' ~ loop.length }}"
        "{{ [m.role, m.content[1:-1]] }}{{ {'k': m.content} }}{{ m.content * 2 }}{% else %}none"
        "{% endfor %}{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }}{% endfor %}"
    )
    messages = [{"role": "user", "content": "hello"}, {"role": "tool", "content": "x"}]
    assert rendered(source, messages) == jinja2.Template(source).render(messages=messages)
    assert rendered(source, messages[1:]) == jinja2.Template(source).render(messages=messages[1:])
