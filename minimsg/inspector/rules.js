// Made by rules.py from protocol/grammar.py; do not edit.

export const START = "has not started";
export const END = "has ended";
export const BLOCK_START = "content_block_start";
export const NEXT = {
  "has not started": {
    "message_start": "is between blocks",
    "error": "has ended"
  },
  "is between blocks": {
    "content_block_start": "has an open block",
    "message_delta": "has had its message_delta",
    "ping": "is between blocks",
    "error": "has ended"
  },
  "has an open block": {
    "content_block_delta": "has an open block",
    "content_block_stop": "is between blocks",
    "ping": "has an open block",
    "error": "has ended"
  },
  "has had its message_delta": {
    "message_delta": "has had its message_delta",
    "message_stop": "has ended",
    "ping": "has had its message_delta",
    "error": "has ended"
  }
};
export const KNOWN = [
  "content_block_delta",
  "content_block_start",
  "content_block_stop",
  "error",
  "message_delta",
  "message_start",
  "message_stop",
  "ping"
];
export const DELTAS = {
  "text": [
    "text_delta",
    "citations_delta"
  ],
  "thinking": [
    "thinking_delta",
    "signature_delta"
  ],
  "redacted_thinking": [],
  "tool_use": [
    "input_json_delta"
  ],
  "server_tool_use": [
    "input_json_delta"
  ],
  "mcp_tool_use": [
    "input_json_delta"
  ],
  "compaction": [
    "compaction_delta"
  ]
};
export const KNOWN_DELTAS = [
  "citations_delta",
  "compaction_delta",
  "input_json_delta",
  "signature_delta",
  "text_delta",
  "thinking_delta"
];
