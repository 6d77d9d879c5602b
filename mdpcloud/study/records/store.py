"""The store of a study: a folder with one JSON file per instance, the only truth about results.

``FOLDER/records/KEY.json`` is the record of a key (`mdpcloud.study.records.record`). A
record is written as a whole or not at all (`mdpcloud.study.records.temporary`), and any number of
processes may use a store at once. Files that are no sound records are moved to ``FOLDER/corrupt``.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mdpcloud.errors import InputError
from mdpcloud.study.records.garbage import no_collections
from mdpcloud.study.records.record import (
    FORMAT,
    Record,
    from_text,
    is_intact,
    is_newer,
    to_text,
    why_unsound,
)
from mdpcloud.study.records.temporary import nameless, remove, replace_file, strays, temporary_name

__all__ = ["Corrupt", "Scan", "Store"]

RECORD = re.compile(r"[0-9a-f]{64}\.json")
NO_FILE = (errno.EISDIR, errno.ELOOP, errno.ENXIO)
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
LARGEST = 2**30  # bytes that one call reads


@dataclass(frozen=True)
class Corrupt:
    """A file that was no sound record.

    Attributes
    ----------
    path : Path
        Where it was moved to.
    reason : str
        What is wrong with it, such as "it is not JSON: ...".
    """

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True)
class Scan:
    """What a store holds.

    Attributes
    ----------
    records : dict of key to record
    corrupt : tuple of Corrupt
        What was set aside on the way.
    """

    records: dict[str, Record]
    corrupt: tuple[Corrupt, ...] = ()


@dataclass(frozen=True)
class Store:
    """The records in a folder.

    Attributes
    ----------
    folder : Path
    """

    folder: Path

    @property
    def records(self) -> Path:
        """Folder of the records."""
        return Path(self.folder) / "records"

    @property
    def aside(self) -> Path:
        """Folder of what was no sound record."""
        return Path(self.folder) / "corrupt"

    def path(self, key: str) -> Path:
        """File of a key's record."""
        return self.records / f"{key}.json"

    # --- before a run -----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the folder where there is none, and try to write in it.

        Raises
        ------
        InputError
            When that is not possible.
        """
        try:
            self.records.mkdir(parents=True, exist_ok=True)
            probe = self.records / temporary_name("probe")
            probe.open("x").close()
            probe.unlink()
        except FileExistsError as error:
            raise InputError(f"{error.filename} is a file; a store is a folder") from None
        except NotADirectoryError as error:
            raise InputError(f"{error.filename} cannot be a folder: a file is above it") from None
        except OSError as error:
            raise InputError(
                f"store {self.folder} cannot be written to: {error.strerror or error}"
            ) from None

    def clean(self) -> list[Path]:
        """Remove the temporary files that no live process can be writing, and list them.

        Those of dead processes of this host go at once, and what is no one's; those of other hosts
        after a day.

        Raises
        ------
        InputError
            When there is no such store.
        """
        try:
            left = [*strays(self.records), *nameless(self.records), *strays(self.records.parent)]
        except OSError as error:
            raise self._unreadable(error) from None
        return [path for path in left if remove(path)]

    def _names(self) -> list[str]:
        """Names of all files in the folder of the records, in order."""
        try:
            return sorted(os.listdir(self.records))
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> InputError:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return InputError(f"{self.folder} is no store: it has no folder of records")
        return InputError(f"{error.filename or self.folder} cannot be read: {error.strerror}")

    # --- reading ----------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """Keys of which there is a file, in order.

        Raises
        ------
        InputError
            When there is no such store.
        """
        return [name[:-5] for name in self._names() if RECORD.fullmatch(name)]

    def has(self, key: str) -> bool:
        """Whether there is a file of a key."""
        return self.path(key).exists()

    def read(self, key: str) -> Record | None:
        """The record of a key; None where there is none, or no sound one, which is set aside.

        Raises
        ------
        InputError
            When it cannot be read, or a newer version of this package made it.
        """
        return self.scan([key]).records.get(key)

    def scan(self, keys: Iterable[str]) -> Scan:
        """The records of keys, as far as there are any; what is no sound record is set aside.

        Raises
        ------
        InputError
            When a file cannot be read, or a newer version of this package made it, or there is no
            such store.
        """
        if not self.records.is_dir():
            raise self._unreadable(NotADirectoryError())
        records: dict[str, Record] = {}
        corrupt = []
        folder = str(self.records)  # joined by hand: a Path for each takes a tenth of the time
        with no_collections():
            for key in keys:
                record, reason = _look(f"{folder}{os.sep}{key}.json", key)
                if record is not None:
                    records[key] = record
                elif reason:
                    corrupt.append(self._set_aside(key, reason))
        return Scan(records, tuple(one for one in corrupt if one))

    def _set_aside(self, key: str, reason: str) -> Corrupt | None:
        """Move a file that is no sound record away; None where another run has done so.

        In a store that may only be read it stays.
        """
        try:
            place = self._reserve(key)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                return Corrupt(self.path(key), reason)
            raise InputError(
                f"record {self.path(key)} is corrupt, and cannot be moved to {self.aside}: "
                f"{error.strerror}"
            ) from None
        try:
            _move(self.path(key), place)
        except FileNotFoundError:
            place.unlink(missing_ok=True)
            return None
        if _look(place, key)[0] is not None:  # another run had written it again meanwhile
            os.replace(place, self.path(key))
            return None
        return Corrupt(place, reason)

    def _reserve(self, key: str) -> Path:
        """A new, empty file for what is to be set aside."""
        self.aside.mkdir(exist_ok=True)
        for number in itertools.count():
            place = self.aside / (f"{key}.{number}.json" if number else f"{key}.json")
            with contextlib.suppress(FileExistsError):
                place.open("x").close()
                break
        return place

    # --- writing ----------------------------------------------------------------------------------

    def write(self, record: Record) -> Path:
        """Write a record, in the place of an earlier one of its key.

        On return it survives the end of this process, and after `flush` that of the machine.

        Raises
        ------
        OSError
            When that fails; what there was before is left as it was.
        ValueError
            When it is no sound record.
        """
        key = str(record["key"])
        raw = to_text(record).encode()
        reason = why_unsound(record, key, intact=is_intact(raw, key))
        if reason:
            raise ValueError(f"record {key} is not written: {reason}")
        try:
            return replace_file(self.path(key), raw)
        except FileNotFoundError:  # on a shared disk, one who took this process for dead cleaned
            self.records.mkdir(parents=True, exist_ok=True)
            return replace_file(self.path(key), raw)

    def flush(self) -> None:
        """Let all records written so far survive a failure of the machine too.

        What they hold is on the disk already; it is their names that are still to be put there.
        """
        if os.name != "posix":
            return
        number = os.open(self.records, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _move(path: Path, place: Path) -> None:
    """Put a file, or even a folder, in the place of a file."""
    if path.is_dir() and not path.is_symlink():
        place.unlink()
    os.replace(path, place)


def _look(path: str | Path, key: str) -> tuple[Record | None, str]:
    """The sound record in a file, or what is wrong with it, or neither where there is none."""
    try:
        raw = _bytes_of(path)
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        if error.errno in NO_FILE:
            return None, "it is no file"
        raise InputError(f"record {path} cannot be read: {error.strerror}") from None
    return _parsed(raw, key, path)


def _bytes_of(path: str | Path) -> bytes:
    """What a file holds; of what is none, such as a pipe, nothing is waited for.

    Raises
    ------
    OSError
    """
    number = os.open(path, READ)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EISDIR, "is no file")
        raw = os.read(number, found.st_size + 1)
        if len(raw) != found.st_size:  # it grows, or is larger than what one call reads
            while more := os.read(number, LARGEST):
                raw += more
    finally:
        os.close(number)
    return raw


def _parsed(raw: bytes, key: str, path: str | Path) -> tuple[Record | None, str]:
    """The sound record in the bytes of a file, or what is wrong with them."""
    try:
        record = from_text(raw)
    except ValueError as error:
        return None, f"it is not JSON: {error}" if raw else "it is empty"
    if is_newer(record):
        raise InputError(
            f"record {path} has format {record['format']}, of a newer version of mdpcloud; "
            f"this one reads format {FORMAT}: use that version, or another store"
        )
    reason = why_unsound(record, key, intact=is_intact(raw, key))
    return (None, reason) if reason else (record, "")
