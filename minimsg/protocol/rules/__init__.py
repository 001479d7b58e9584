"""Rules that a well-typed request can still break: between fields, between blocks.

Every rule is asked in the order of the tables below; the first broken one decides the
answer. A rule is a function of the request and its `Dialect` that raises
`InvalidRequest`; its name says what must hold. A new one is a function in the file of its
subject, a row here, and rows in `tests/protocol/rows/` with what it refuses and takes.
Types and bounds are in `request.py` and what it imports, gated fields in `gates.py`;
what is asked for in vain, and is no error, is the table in `wishes.py`.
Source: Messages API reference and public error reports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from minimsg.protocol.rules import (
    batched,
    blocks,
    caching,
    context,
    extensions,
    output,
    pairs,
    reply,
    services,
    thinking,
    toolbox,
    tools,
    turns,
    wishes,
)
from minimsg.protocol.rules.wishes import unheeded

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import MessagesRequest, PromptRequest

__all__ = ["PROMPT_RULES", "REPLY_RULES", "check_prompt", "check_reply", "unheeded"]

PROMPT_RULES: Final[tuple[Callable[[PromptRequest, Dialect], None], ...]] = (
    services.threads_are_not_kept,  # before all that the rest of a thread would break
    services.mcp_servers_are_not_called,
    # messages
    turns.there_is_a_first_user_message,
    turns.system_turns_are_supported,
    turns.system_turns_stand_between_user_and_assistant,
    turns.only_system_turns_have_settings,
    turns.cleared_system_turns_are_plain_text,
    turns.messages_have_content,
    # blocks
    blocks.blocks_stand_with_their_role,
    blocks.assistants_send_no_documents,
    blocks.users_send_no_citations,
    blocks.text_is_there,
    blocks.text_is_visible,
    blocks.images_are_supported,
    blocks.pdfs_are_supported,
    blocks.sources_are_in_the_request,
    blocks.citations_are_for_all_or_none,
    context.summaries_stand_first,
    context.there_is_one_summary,
    # calls and results
    pairs.ids_are_unique,
    pairs.calls_and_results_match,
    pairs.server_calls_and_results_match,
    # tools
    tools.names_are_unique,
    tools.domains_are_allowed_or_blocked,
    tools.tools_can_be_run,
    tools.some_tool_is_loaded,
    tools.schemas_are_valid,
    tools.examples_fit_their_schema,
    tools.strict_tools_are_supported,
    toolbox.named_tools_are_known,
    tools.a_choice_has_tools,
    tools.the_chosen_tool_exists,
    tools.a_choice_can_be_forced,
    # caching
    caching.thinking_is_not_marked,
    caching.marks_are_few,
    caching.automatic_mark_fits,
    caching.long_marks_come_first,
    tools.deferred_tools_are_not_marked,
    # thinking, output, context
    thinking.thinking_is_supported,
    thinking.display_is_known,
    thinking.thinking_between_tools_is_moderate,
    thinking.no_thinking_is_redacted,
    thinking.a_tool_loop_begins_with_thinking,
    output.a_format_is_supported,
    output.there_is_one_format,
    output.a_format_has_a_valid_schema,
    output.a_format_has_no_citations,
    context.thinking_is_cleared_first,
    wishes.wishes_are_granted,
    extensions.template_variables_are_known,
    # the end of the conversation
    turns.assistant_prefix_is_supported,
    turns.assistant_prefix_leaves_room,
    turns.assistant_prefix_ends_in_no_space,
)
REPLY_RULES: Final[tuple[Callable[[MessagesRequest, Dialect], None], ...]] = (
    batched.a_batched_request_asks_for_a_message,
    services.code_is_not_run,
    services.conversations_are_not_summed_up,
    reply.max_tokens_is_possible,
    reply.max_tokens_leaves_room_to_think,
    reply.a_reply_of_nothing_is_only_that,
    reply.stop_sequences_are_visible,
    reply.sampling_is_as_hosted,
)


def check_prompt(request: PromptRequest, dialect: Dialect) -> None:
    """What holds for everything that is rendered. Raises InvalidRequest."""
    for rule in PROMPT_RULES:
        rule(request, dialect)


def check_reply(request: MessagesRequest, dialect: Dialect) -> None:
    """What holds for the reply that is asked for. Raises InvalidRequest."""
    for rule in REPLY_RULES:
        rule(request, dialect)
