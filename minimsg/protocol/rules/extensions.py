"""Rules about fields that only this server has.

A variable of the chat template decides what the model reads, so only those are let in
that templates are known to take as a setting; `tokenize` or a template itself are no
settings. What each does is up to the template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minimsg.errors import InvalidRequest

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest

TEMPLATE_VARIABLES: Final = (
    "enable_thinking",
    "preserve_thinking",
    "reasoning_effort",
    "thinking",
)


def template_variables_are_known(request: PromptRequest, dialect: Dialect) -> None:
    for name, value in request.chat_template_kwargs.items():
        path = f"chat_template_kwargs.{name}"
        if name not in TEMPLATE_VARIABLES:
            known = ", ".join(TEMPLATE_VARIABLES)
            raise InvalidRequest(path[:200], f"Extra inputs are not permitted; known are {known}")
        if not isinstance(value, (bool, str)):
            raise InvalidRequest(path, "Input should be a valid boolean or string")
