"""Who gets the tokens of a step: nobody starves, nobody is held up by what is not theirs.

The rules are those of the docstring of `scheduler.py`; what the oracle counts is tokens.
"""

from __future__ import annotations

from minimsg.engine.scheduler import Scheduler
from minimsg.engine.types import Batch, Finish, Output, Priority

from .scheduling import make_scheduler, sequence, step

WINDOW = 400
BACKGROUND = Priority.BACKGROUND


def scheduler(
    *, num_pages: int = 400, max_step_tokens: int = 16, max_sequences: int = 12
) -> Scheduler:
    """Pages enough for all, unless told otherwise."""
    return make_scheduler(
        num_pages=num_pages,
        max_step_tokens=max_step_tokens,
        max_sequences=max_sequences,
        window=WINDOW,
    )


def rows(batch: Batch) -> dict[str, int]:
    """How many tokens each request gets of a step."""
    return {part.request_ids[0]: len(part.input_ids) for part in batch.split()}


def finished(outputs: list[Output]) -> set[str]:
    return {each.request_id for each in outputs if isinstance(each, Finish)}


def test_a_long_prompt_advances_in_each_step_however_many_short_ones_come() -> None:
    crowded = scheduler()
    crowded.add(sequence("long", 300, 1))
    num_steps = 0
    while True:
        num_steps += 1
        for each in range(3):
            short = sequence(f"{num_steps}.{each}", 5, 4, first=1000 * num_steps + 100 * each)
            crowded.add(short)
        batch, outputs = step(crowded)
        num_decoding = sum(count == 1 for count in rows(batch).values())
        assert rows(batch)["long"] >= min(2, 16 - num_decoding)
        if "long" in finished(outputs):
            break
    assert num_steps < 100


def test_short_prompts_pass_a_long_one_that_came_before_them() -> None:
    crowded = scheduler()
    crowded.add(sequence("long", 300, 1))
    step(crowded)
    crowded.add(sequence("short", 8, 1, first=1000))
    assert rows(step(crowded)[0]) == {"short": 8, "long": 8}
    assert all(each.request.id == "long" for each in crowded.running)


def test_of_several_long_prompts_each_one_ends_in_the_time_of_all_of_them() -> None:
    crowded = scheduler()
    for number in range(4):
        crowded.add(sequence(f"long {number}", 160, 1, first=1000 * number + 1))
    order: list[str] = []
    for _ in range(4 * 160 // 16):
        order += sorted(finished(step(crowded)[1]))
    assert set(order) == {f"long {number}" for number in range(4)}


def test_every_decoding_request_gets_its_token_in_each_step_of_a_long_prompt() -> None:
    crowded = scheduler(max_step_tokens=8)
    for number in range(7):
        crowded.add(sequence(f"talks {number}", 1, 100, first=1000 + number))
    step(crowded)
    crowded.add(sequence("long", 60, 1))
    for _ in range(60):
        batch, outputs = step(crowded)
        assert rows(batch) == {"long": 1} | {f"talks {number}": 1 for number in range(7)}
    assert finished(outputs) == {"long"}


def test_background_prompts_get_what_interactive_ones_leave() -> None:
    crowded = scheduler()
    crowded.add(sequence("background", 6, 3, first=1000, priority=BACKGROUND))
    crowded.add(sequence("long", 40, 1))
    crowded.add(sequence("short", 6, 1, first=2000))
    assert rows(step(crowded)[0]) == {"long": 10, "short": 6}
    assert rows(step(crowded)[0]) == {"long": 16}
    assert rows(step(crowded)[0]) == {"long": 14, "background": 2}


def test_a_background_prompt_makes_no_step_of_interactive_work_long() -> None:
    shared = scheduler(max_step_tokens=64)
    shared.add(sequence("talks", 5, 8, first=1000))
    shared.add(sequence("background", 300, 1, priority=BACKGROUND))
    assert rows(step(shared)[0])["background"] <= 4
    while "talks" not in finished(step(shared)[1]):
        assert 1 <= rows(shared.schedule())["background"] <= 4
    assert rows(step(shared)[0]) == {"background": 64}


def test_background_work_gives_its_place_to_interactive_work_and_goes_on_later() -> None:
    full = scheduler(max_sequences=2)
    for number in range(2):
        full.add(sequence(f"background {number}", 5, 20, 1000 * number + 1, priority=BACKGROUND))
    step(full)
    full.add(sequence("interactive", 5, 3, first=5000))
    assert set(rows(step(full)[0])) == {"background 0", "interactive"}
    ended: list[str] = []
    while full.has_work:
        ended += sorted(finished(step(full)[1]))
    assert ended == ["interactive", "background 0", "background 1"]


def test_background_work_gives_its_pages_to_interactive_work() -> None:
    full = scheduler(num_pages=100)
    full.add(sequence("background", 390, 3, priority=BACKGROUND))
    step(full)
    full.add(sequence("interactive", 100, 1, first=5000))
    assert rows(step(full)[0]) == {"interactive": 16}
    assert [each.request.id for each in full.waiting] == ["background"]


def test_no_background_request_goes_before_an_interactive_one_that_waits() -> None:
    full = scheduler(max_sequences=1)
    full.add(sequence("talks", 5, 4, first=1000))
    step(full)
    full.add(sequence("background", 1, 1, first=2000, priority=BACKGROUND))
    full.add(sequence("interactive", 50, 1, first=3000))
    ended: list[str] = []
    while full.has_work:
        ended += sorted(finished(step(full)[1]))
    assert ended == ["talks", "interactive", "background"]


def test_a_request_that_needs_the_whole_pool_runs_though_others_keep_coming() -> None:
    full = scheduler(num_pages=100, max_step_tokens=64)
    full.add(sequence("talks", 5, 20, first=1000))
    step(full)
    full.add(sequence("whole", 399, 1))
    for number in range(1, 60):
        full.add(sequence(f"short {number}", 5, 4, first=2000 * number))
        if "whole" in finished(step(full)[1]):
            return
    raise AssertionError("the others were let in before it, again and again")
