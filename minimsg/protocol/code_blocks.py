"""What code that the hosted API ran has left in assistant turns. Opaque here, but typed.

Source: Messages API reference, code execution.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from minimsg.limits import LIMITS
from minimsg.protocol.wire import CacheMark, Count, Id, ShortText, Text, Wire

Lines = Annotated[list[Text], Field(max_length=LIMITS.blocks_per_message)]
ExitCode = Annotated[int, Field(ge=-LIMITS.count, le=LIMITS.count)]


class CodeOutput(Wire):
    """A file that the code wrote."""

    type: Literal["code_execution_output"]
    file_id: Id


class BashOutput(Wire):
    """A file that the shell wrote."""

    type: Literal["bash_code_execution_output"]
    file_id: Id


CodeOutputs = Annotated[list[CodeOutput], Field(max_length=LIMITS.blocks_per_message)]
BashOutputs = Annotated[list[BashOutput], Field(max_length=LIMITS.blocks_per_message)]


class CodeResult(Wire):
    """What the code printed."""

    type: Literal["code_execution_result"]
    stdout: Text
    stderr: Text
    return_code: ExitCode
    content: CodeOutputs


class EncryptedCodeResult(Wire):
    """What the code printed, for the hosted API only."""

    type: Literal["encrypted_code_execution_result"]
    encrypted_stdout: Text
    stderr: Text
    return_code: ExitCode
    content: CodeOutputs


class CodeError(Wire):
    """Why the code did not run."""

    type: Literal["code_execution_tool_result_error"]
    error_code: ShortText


class CodeResultBlock(CacheMark):
    """What running of code gave."""

    type: Literal["code_execution_tool_result"]
    tool_use_id: Id
    content: Annotated[CodeResult | EncryptedCodeResult | CodeError, Field(discriminator="type")]


class BashResult(Wire):
    """What the shell printed."""

    type: Literal["bash_code_execution_result"]
    stdout: Text
    stderr: Text
    return_code: ExitCode
    content: BashOutputs


class BashError(Wire):
    """Why the shell did not run."""

    type: Literal["bash_code_execution_tool_result_error"]
    error_code: ShortText


class BashResultBlock(CacheMark):
    """What a line in the shell gave."""

    type: Literal["bash_code_execution_tool_result"]
    tool_use_id: Id
    content: Annotated[BashResult | BashError, Field(discriminator="type")]


class EditorView(Wire):
    """A file, or a part of it."""

    type: Literal["text_editor_code_execution_view_result"]
    content: Text
    file_type: Literal["text", "image", "pdf"]
    num_lines: Count | None = None
    start_line: Count | None = None
    total_lines: Count | None = None


class EditorCreated(Wire):
    """A file was written."""

    type: Literal["text_editor_code_execution_create_result"]
    is_file_update: bool


class EditorReplaced(Wire):
    """A part of a file was replaced."""

    type: Literal["text_editor_code_execution_str_replace_result"]
    lines: Lines | None = None
    new_lines: Count | None = None
    new_start: Count | None = None
    old_lines: Count | None = None
    old_start: Count | None = None


class EditorError(Wire):
    """Why a file was left as it is."""

    type: Literal["text_editor_code_execution_tool_result_error"]
    error_code: ShortText
    error_message: Text | None = None


class EditorResultBlock(CacheMark):
    """What an edit of a file gave."""

    type: Literal["text_editor_code_execution_tool_result"]
    tool_use_id: Id
    content: Annotated[
        EditorView | EditorCreated | EditorReplaced | EditorError, Field(discriminator="type")
    ]
