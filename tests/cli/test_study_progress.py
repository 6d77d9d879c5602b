"""Progress of studies."""

from __future__ import annotations

import io
import itertools
import time

from rich.console import Console

from mdpcloud.cli.study_progress import Pace, study_bar


def test_a_slow_study_tells_its_rate_per_minute_or_hour() -> None:
    for seconds, rate in ((30.0, "2.0 per minute"), (1200.0, "3.0 per hour")):
        pace = Pace(itertools.count(0.0, seconds).__next__)
        pace.told(0, 10, 0)
        assert rate in pace.told(1, 10, 0)


def test_lines_are_told_at_equal_times_even_while_no_instance_ends() -> None:
    text = io.StringIO()
    with study_bar(Console(file=text), every=0.05) as progress:
        progress(3, 10, 0)
        time.sleep(0.2)
        progress(4, 10, 1)
        time.sleep(0.2)
    lines = text.getvalue().splitlines()
    assert len(lines) > 3
    assert "3 of 10 done" in lines[0]
    assert "4 of 10 done" in lines[-1]
    assert lines[-1].endswith("left, 1 failed")


def test_nothing_is_told_of_a_study_that_ends_at_once() -> None:
    text = io.StringIO()
    with study_bar(Console(file=text)) as progress:
        progress(10, 10, 0)
    assert text.getvalue() == ""


def test_a_terminal_gets_a_bar() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=120)
    with study_bar(console) as progress:
        progress(3, 10, 2)
        time.sleep(0.15)
    assert "3 of 10 done, 2 failed" in text.getvalue()
