"""The study to start from."""

from __future__ import annotations

import re
from pathlib import Path

from mdpcloud.scenario import new_scenario
from mdpcloud.study import read_study
from mdpcloud.study.template import new_study


def test_the_template_is_a_study_of_the_scenario_to_start_from(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(new_scenario("cloud_routing"))
    (tmp_path / "study.toml").write_text(new_study())
    study = read_study(tmp_path / "study.toml")
    assert len(study.instances) == 10
    assert study.labels == ("deadline", "load")


def test_every_commented_setting_of_the_template_is_one(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(new_scenario("cloud_routing"))
    setting = re.compile(r"^# (\[|[\"\w.\[\]]+ +=)", re.MULTILINE)
    text = re.sub(r"^# (policies|task) = .*$", "", new_study(), flags=re.MULTILINE)
    text = setting.sub(r"\1", text)
    axes = ("deadline", "patience", "nodes[0].servers", "outside_cost", "nodes[1].servers", "ties")
    text = text.replace('panels = ["deadline"]', f"panels = {[*axes]}")
    (tmp_path / "study.toml").write_text(text)
    study = read_study(tmp_path / "study.toml")
    assert len(study.instances) == 2 * 5 * 3 * 2 * 20
    assert len(study.outputs.figures) == 2
