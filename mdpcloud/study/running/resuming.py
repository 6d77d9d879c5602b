"""What a store already holds of a study, and what of that is to be computed again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdpcloud.errors import InputError
from mdpcloud.study.records.garbage import no_collections
from mdpcloud.study.records.identity import classes_of, sources_of
from mdpcloud.study.records.record import DONE, Record

if TYPE_CHECKING:
    from mdpcloud.study.records.store import Scan, Store
    from mdpcloud.study.study import Study

__all__ = ["Found", "find"]

MOST = 20  # records of other sources that are named
Sources = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """What a store held of a study.

    Attributes
    ----------
    kept : dict of key to record
        Those that count.
    again : dict of key to record
        Those that are computed again.
    sources : dict of key to sources
        What would compute each instance now.
    notes : tuple of str
        What there is to tell, a line each.
    """

    kept: dict[str, Record]
    again: dict[str, Record]
    sources: dict[str, Sources]
    notes: tuple[str, ...]

    def has_been_made(self, key: str, record: Record | None) -> bool:
        """Whether another run on the same store has computed an instance meanwhile."""
        return (
            record is not None
            and record != self.again.get(key)
            and record["sources"] == self.sources[key]
        )


@no_collections()
def find(study: Study, store: Store, *, resume: bool, keep_old: bool, retry_failed: bool) -> Found:
    """What a store, whose folder there is, holds of a study.

    Raises
    ------
    InputError
        When it holds any records and ``resume`` is false.
    """
    if not resume and store.keys():
        raise InputError(
            f"store {store.folder} has records already; resume (--resume) to go on with them, or "
            "choose another store (--store)"
        )
    strays, scan, sources = store.clean(), store.scan(study.unique), _sources(study)
    old = [key for key, record in scan.records.items() if record["sources"] != sources[key]]
    bad = [key for key, record in scan.records.items() if record["status"] != DONE]
    again = {*(() if keep_old else old), *(bad if retry_failed else ())}
    notes = (
        *_notes_on_files(strays, scan),
        *_notes_on_old(old, study, keep_old),
        *_notes_on_bad([key for key in bad if keep_old or key not in old], retry_failed),
    )
    kept = {key: record for key, record in scan.records.items() if key not in again}
    return Found(kept, {key: scan.records[key] for key in again}, sources, notes)


def _sources(study: Study) -> dict[str, Sources]:
    """Sources of each key; hashes of the user's own objects are made once for each of these."""
    known: dict[Any, Sources] = {}
    found: dict[str, Sources] = {}
    for one in study.instances:
        rules = tuple(
            (name, id(rule)) for name, rule in (one.scenario.compare.policies or {}).items()
        )
        what = (frozenset(classes_of(one.scenario.system)), id(one.task.run), rules)
        if what not in known:
            known[what] = sources_of(one.scenario, one.task.run)
        if found.setdefault(one.key, known[what]) != known[what]:
            raise InputError(
                f"instances {study.unique[one.key].number} and {one.number} have rules or systems "
                "of the same name in different files; rename one of them"
            )
    return found


def _notes_on_files(strays: Sequence[Path], scan: Scan) -> Iterator[str]:
    if strays:
        yield f"{_count(strays, 'temporary file')} of earlier runs removed"
    for one in scan.corrupt:
        yield f"corrupt record set aside, to be computed again: {one}"


def _notes_on_old(old: Sequence[str], study: Study, keep_old: bool) -> Iterator[str]:
    if old:
        verdict = "kept" if keep_old else "computed again (--keep-old keeps them)"
        yield f"{_count(old, 'record')} made by other sources, {verdict}"
    for key in old[:MOST]:
        one = study.unique[key]
        yield f"  instance {one.number} ({one}), record {key[:12]}"
    if len(old) > MOST:
        yield f"  and {len(old) - MOST} more"


def _notes_on_bad(bad: Sequence[str], retry_failed: bool) -> Iterator[str]:
    if bad:
        verdict = "computed again" if retry_failed else "kept (--retry-failed computes them again)"
        yield f"{_count(bad, 'record')} of instances that failed or did not converge, {verdict}"


def _count(what: Sequence[Any], name: str) -> str:
    return f"{len(what)} {name}{'' if len(what) == 1 else 's'}"
