"""What a model or a server can lack, by name: one table for flags, rules and capabilities.

Knows words only, so that settings and protocol can share it. What hangs on a feature is in
`protocol/rules/`; which the loaded model lacks, in `server/catalog.py`.
"""

from __future__ import annotations

from typing import Final

# Name -> what it is. `--without NAME` switches one off, to see how a client takes it.
FEATURES: Final[dict[str, str]] = {
    "adaptive-thinking": "thinking of type adaptive",
    "citations": "citations of documents and search results",
    "context-management": "the field context_management",
    "effort": "output_config.effort",
    "forced-tools": "tool_choice any and tool",
    "images": "image blocks",
    "pdfs": "document blocks with a PDF",
    "prefill": "a final assistant turn that the model continues",
    "strict-tools": "strict: true on a tool",
    "structured-outputs": "output_config.format",
    "system-turns": "the role system inside messages",
    "thinking": "thinking of any type but disabled",
}
