"""Model families, by the `model_type` of config.json."""
