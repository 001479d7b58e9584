"""Fields that only this server has take what they say they take."""

from __future__ import annotations

from typing import Any

import pytest

from minimsg.errors import InvalidRequest
from minimsg.protocol.request import CountTokensRequest


def count(**variables: Any) -> CountTokensRequest:
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": "m", "messages": messages, "chat_template_kwargs": variables}
    return CountTokensRequest.parse(body)


def test_settings_of_templates_are_taken() -> None:
    given = {"enable_thinking": True, "reasoning_effort": "low", "preserve_thinking": False}
    assert count(**given).chat_template_kwargs == given


@pytest.mark.parametrize(
    "name", ["tokenize", "chat_template", "messages", "tools", "add_generation_prompt", "x" * 9999]
)
def test_what_is_no_setting_of_a_template_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^chat_template_kwargs\.") as caught:
        count(**{name: True})
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("value", [1, None, ["low"], {"a": True}])
def test_a_setting_is_a_switch_or_a_word(value: object) -> None:
    path = r"^chat_template_kwargs\.thinking: Input should be a valid boolean or string$"
    with pytest.raises(InvalidRequest, match=path):
        count(thinking=value)
