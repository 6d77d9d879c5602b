import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_the_documentation_print_what_it_says(page):
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    assert tried
    assert not failed


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_links_of_the_documentation_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []
