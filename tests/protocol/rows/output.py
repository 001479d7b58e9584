"""Rows: effort, and the form of the reply."""

from __future__ import annotations

from typing import Final

from .row import EXTRA, OK, Json, Row

FORMATS: Final = ("structured-outputs-2025-11-13",)

NOT_HERE: Final = "not supported for this model"

FORMAT: Final[Json] = {"type": "json_schema", "schema": {"type": "object"}}

ROWS: Final = (
    Row(
        "an effort to think",
        {"output_config": {"effort": "xhigh"}, "thinking": {"type": "adaptive"}},
        OK,
    ),
    Row(
        "an effort without thinking",
        {"output_config": {"effort": "xhigh"}},
        OK,
        unheeded=("output_config.effort",),
    ),
    Row(
        "an effort on a model without",
        {"output_config": {"effort": "low"}},
        compat=OK,
        strict="output_config.effort: This model does not support the effort parameter.",
        lacking=("effort",),
        unheeded=("output_config.effort",),
    ),
    Row(
        "effort is off",
        {"output_config": {"effort": "low"}},
        "output_config.effort: This model does not support the effort parameter.",
        without=("effort",),
    ),
    Row("a format", {"output_config": {"format": FORMAT}}, OK),
    Row("a format may be null", {"output_config": {"format": None}}, OK),
    Row(
        "a format of one kind",
        {"output_config": {"format": {"type": "xml"}}},
        "output_config.format.type: Input should be 'json_schema'",
    ),
    Row(
        "a format has a schema",
        {"output_config": {"format": {"type": "json_schema"}}},
        "output_config.format.schema: Field required",
    ),
    Row(
        "a schema that is none",
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": 1}}}},
        "output_config.format.schema: JSON schema is invalid. It must match JSON Schema draft "
        "2020-12. See type.",
    ),
    Row(
        "a model that keeps no format",
        {"output_config": {"format": FORMAT}},
        f"output_config.format: {EXTRA}",
        lacking=("structured-outputs",),
    ),
    Row(
        "formats are off",
        {"output_config": {"format": FORMAT}},
        f"output_config.format: {EXTRA}",
        without=("structured-outputs",),
    ),
    Row(
        "the older name of a format",
        {"output_format": FORMAT},
        compat=OK,
        strict=f"output_format: {EXTRA}",
    ),
    Row("the older name of a format, under its beta", {"output_format": FORMAT}, OK, betas=FORMATS),
    Row(
        "a format by both names",
        {"output_format": FORMAT, "output_config": {"format": FORMAT}},
        "output_format: cannot be given together with output_config.format; leave output_format "
        "out",
        betas=FORMATS,
    ),
    Row(
        "a budget for a task",
        {"output_config": {"task_budget": {"type": "tokens", "total": 9}}},
        compat=OK,
        strict=f"output_config.task_budget: {EXTRA}",
        unheeded=("output_config.task_budget",),
    ),
    Row(
        "a budget for a task, under its beta",
        {"output_config": {"task_budget": {"type": "tokens", "total": 9}}},
        compat=OK,
        strict=f"output_config.task_budget: {NOT_HERE}",
        betas=("task-budgets-2026-03-13",),
        unheeded=("output_config.task_budget",),
    ),
)
