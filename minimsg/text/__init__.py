"""Token ids to text and back: tokenizer, detokenizer, stop sequences. No torch."""
