"""Records survive whatever happens to those who write them."""

import errno
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.study.records import store as store_module
from mdpcloud.study.records import temporary as temporary_module
from mdpcloud.study.records.record import FORMAT, to_text, why_unsound
from mdpcloud.study.records.store import Store
from tests.study.stored import record, start

OLD_TIME = time.time() - 2 * 24 * 3600
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs signals and limits of POSIX")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "loads.results")
    made.prepare()
    return made


def strays(store: Store) -> list[str]:
    return [name for name in os.listdir(store.records) if name.endswith(".tmp")]


def sound(store: Store) -> dict[str, Any]:
    """Every record of a store, all of which must be sound."""
    found = store.scan(store.keys())
    assert not found.corrupt
    return dict(found.records)


# --- reading and writing --------------------------------------------------------------------------


def test_what_is_written_is_read_again(store: Store) -> None:
    one, other = record(1), record(2)
    assert store.write(one) == store.folder / "records" / f"{one['key']}.json"
    store.write(other)
    store.flush()
    assert store.has(one["key"])
    assert store.read(one["key"]) == one
    assert store.keys() == sorted([one["key"], other["key"]])
    found = store.scan([one["key"], "0" * 64])
    assert found.records == {one["key"]: one}
    assert found.corrupt == ()
    assert store.read("0" * 64) is None
    assert not store.has("0" * 64)


def test_a_record_is_one_line_and_a_later_one_takes_its_place(store: Store) -> None:
    store.write(record(1, run={"host": "a"}))
    path = store.write(record(1, run={"host": "b"}))
    assert path.read_bytes().count(b"\n") == 1
    assert json.loads(path.read_text())["run"] == {"host": "b"}
    assert len(store.keys()) == 1
    assert not strays(store)


@pytest.mark.parametrize("name", ["größe 見本 ✓", "x" * 200, "a/b/c/d", "with 'quotes' \"$\" *"])
def test_folders_may_have_any_name(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / name)
    store.prepare()
    store.write(record(1))
    assert sound(Store(tmp_path / name)).keys() == {record(1)["key"]}


def test_columns_keep_their_order(store: Store) -> None:
    one = record(1)
    store.write(one)
    found = store.read(one["key"])
    assert found is not None
    assert list(found["result"]["rows"][0]) == ["policy", "cost", "note"]


@POSIX
def test_records_may_be_read_by_those_whom_the_umask_lets(store: Store) -> None:
    mask = os.umask(0o027)
    try:
        path = store.write(record(1))
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640


def test_an_unsound_record_is_not_written(store: Store) -> None:
    one = record(1)
    with pytest.raises(ValueError, match="is not written: its result is not that"):
        store.write({**one, "status": "failed"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write({**one, "run": {"elapsed": float("nan")}})
    assert os.listdir(store.records) == []


@POSIX
def test_records_that_may_only_be_read_are_read_and_replaced(store: Store) -> None:
    path = store.write(record(1))
    path.chmod(0o444)
    assert store.read(record(1)["key"]) == record(1)
    store.write(record(1, run={"host": "b"}))
    assert store.read(record(1)["key"]) == record(1, run={"host": "b"})


# --- folders that are none ------------------------------------------------------------------------


def test_a_store_that_is_not_there_is_an_error_to_readers_and_made_by_writers(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "none")
    for read in (store.keys, store.clean, lambda: store.scan([]), lambda: store.read("0" * 64)):
        with pytest.raises(InputError, match="none is no store: it has no folder of records"):
            read()
    assert not store.has("0" * 64)
    store.prepare()
    assert store.keys() == []


def test_a_file_cannot_be_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be a folder: a file is above it"):
        Store(tmp_path / "file").prepare()
    with pytest.raises(InputError, match="is no store"):
        Store(tmp_path / "file").keys()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "records").write_text("x")
    with pytest.raises(InputError, match="records is a file; a store is a folder"):
        Store(tmp_path / "odd").prepare()


@POSIX
def test_a_folder_without_the_right_to_write_is_an_input_error(tmp_path: Path) -> None:
    said = start(prepare_without_rights, Store(open_to_all(tmp_path) / "store")).result
    assert "cannot be written to: Permission denied" in said


def prepare_without_rights(store: Store) -> str:
    store.prepare()
    store.records.chmod(0o555)
    if os.geteuid() == 0:
        os.setuid(65534)
    with pytest.raises(InputError) as error:
        store.prepare()
    return str(error.value)


def open_to_all(folder: Path) -> Path:
    """A folder that another user can reach."""
    for one in (folder, *folder.parents):
        if one.stat().st_uid == os.geteuid() and one != Path("/"):
            one.chmod(one.stat().st_mode | 0o055)
    return folder


# --- corrupt records ------------------------------------------------------------------------------

GOOD = to_text(record(1)).encode()
KEY = record(1)["key"]
BAD = {
    "empty": b"",
    "cut short": GOOD[:-20],
    "junk": bytes(range(256)),
    "zeros": bytes(len(GOOD)),
    "another key": to_text(record(2)).encode(),
    "nan": GOOD.replace(b"0.14285714285714285", b"NaN"),
    "infinite": GOOD.replace(b"0.14285714285714285", b"1e999"),
    "a digit": GOOD.replace(b"0.14285714285714285", b"0.14285714285714288"),
    "another content": GOOD.replace(b'"content":{"i":1}', b'"content":{"i":2}'),
    "an older format": GOOD.replace(b'"format":1', b'"format":0'),
    "no number as format": GOOD.replace(b'"format":1', b'"format":true'),
    "a list": b"[1, 2]",
    "nothing in it": b"{}",
    "deep": b"[" * 100_000,
    "two records": GOOD + GOOD,
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_a_corrupt_record_is_set_aside_and_reported(store: Store, raw: bytes) -> None:
    store.write(record(2))
    store.path(KEY).write_bytes(raw)
    found = store.scan([KEY, record(2)["key"]])
    assert list(found.records) == [record(2)["key"]]
    (corrupt,) = found.corrupt
    assert corrupt.path.parent == store.folder / "corrupt"
    assert corrupt.path.read_bytes() == raw
    assert corrupt.reason
    assert str(corrupt).startswith(str(corrupt.path))
    assert not store.has(KEY)
    store.write(record(1))
    assert sound(store).keys() == {KEY, record(2)["key"]}


def test_what_was_set_aside_is_never_overwritten(store: Store) -> None:
    for junk in (b"1", b"2", b"3"):
        store.path(KEY).write_bytes(junk)
        assert store.read(KEY) is None
    assert sorted(p.read_bytes() for p in (store.folder / "corrupt").iterdir()) == [
        b"1",
        b"2",
        b"3",
    ]


@POSIX
def test_a_corrupt_record_of_a_store_that_may_only_be_read_is_reported(tmp_path: Path) -> None:
    store = Store(open_to_all(tmp_path) / "store")
    store.prepare()
    store.path(KEY).write_bytes(b"junk")
    store.write(record(2))
    assert start(scan_without_rights, store).result == ([store.path(KEY)], [record(2)["key"]])
    assert store.path(KEY).exists()


def scan_without_rights(store: Store) -> tuple[list[Path], list[str]]:
    for path in store.records.iterdir():
        path.chmod(0o444)
    for folder in (store.records, store.folder):
        folder.chmod(0o555)
    if os.geteuid() == 0:
        os.setuid(65534)
    found = store.scan([KEY, record(2)["key"]])
    return [one.path for one in found.corrupt], [*found.records]


def test_a_corrupt_record_that_cannot_be_moved_is_an_input_error(store: Store) -> None:
    store.path(KEY).write_bytes(b"junk")
    (store.folder / "corrupt").write_text("in the way")
    with pytest.raises(InputError, match=r"is corrupt, and cannot be moved to .*corrupt: File exi"):
        store.scan([KEY])
    assert store.has(KEY)


@given(st.data())
def test_no_change_of_a_byte_goes_unnoticed(data: st.DataObject) -> None:
    """The numbers are those written, or the record is refused."""
    at = data.draw(st.integers(0, len(GOOD) - 1))
    raw = GOOD[:at] + bytes([data.draw(st.integers(0, 255))]) + GOOD[at + 1 :]
    record_, _ = store_module._parsed(raw, KEY, "here") if raw else (None, "")
    if record_ is not None:
        kept = ("key", "content", "status", "error", "result")
        assert [record_[name] for name in kept] == [record(1)[name] for name in kept]


def test_a_record_that_another_program_has_indented_is_read(store: Store) -> None:
    store.path(KEY).write_text(json.dumps(record(1), indent=2))
    assert store.read(KEY) == record(1)


def test_a_record_of_other_sources_is_sound(store: Store) -> None:
    found = json.loads(GOOD)
    found["sources"] = {"mdpcloud": "0.0.9"}
    store.path(KEY).write_text(json.dumps(found))
    assert store.read(KEY) == found


def test_a_record_of_a_newer_format_is_left_alone(store: Store) -> None:
    newer = {"format": FORMAT + 1, "what": "ever"}
    store.path(KEY).write_text(json.dumps(newer))
    with pytest.raises(InputError, match=f"has format {FORMAT + 1}, of a newer version"):
        store.scan([KEY])
    assert json.loads(store.path(KEY).read_text()) == newer


def folder_there(path: Path) -> None:
    path.mkdir()
    (path / "file").touch()


@pytest.mark.skipif(os.name != "posix", reason="they are those of POSIX")
@pytest.mark.parametrize("make", [folder_there, os.mkfifo, lambda path: path.symlink_to(path)])
def test_what_is_no_file_is_set_aside_as_a_corrupt_record_is(store: Store, make: Any) -> None:
    one = record(1)
    path = store.path(one["key"])
    make(path)
    scan = store.scan([one["key"]])
    assert not scan.records
    assert [one.reason for one in scan.corrupt] == ["it is no file"]
    assert os.path.lexists(scan.corrupt[0].path)
    assert not os.path.lexists(path)
    store.write(one)
    assert store.read(one["key"]) == one


def test_a_file_that_cannot_be_written_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / "results.csv").mkdir()
    with pytest.raises(IsADirectoryError) as told:
        temporary_module.replace_file(tmp_path / "results.csv", b"")
    assert told.value.filename == str(tmp_path / "results.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]


def test_a_corrupt_record_that_another_run_sets_aside_first_is_not_reported(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = store_module._look

    def look_and_lose(path: str, key: str) -> Any:
        found = look(path, key)
        os.unlink(path)
        return found

    store.path(KEY).write_bytes(b"junk")
    monkeypatch.setattr(store_module, "_look", look_and_lose)
    assert store.scan([KEY]).corrupt == ()
    assert os.listdir(store.folder / "corrupt") == []


def test_a_record_that_another_run_has_mended_meanwhile_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = store_module._look

    def look_and_mend(path: str, key: str) -> Any:
        found = look(path, key)
        if found[0] is None:
            Store(store.folder).write(record(1))
        return found

    store.path(KEY).write_bytes(b"junk")
    monkeypatch.setattr(store_module, "_look", look_and_mend)
    assert store.scan([KEY]).corrupt == ()
    monkeypatch.undo()
    assert sound(store) == {KEY: record(1)}


# --- temporary files ------------------------------------------------------------------------------


def temporary(store: Store, host: str, process: str, age: float = 0.0) -> Path:
    path = store.records / f".{KEY}.{host}.{process}.abcd1234.tmp"
    path.write_text("half")
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_temporary_files_of_dead_processes_of_this_host_are_removed(store: Store) -> None:
    host = temporary_module._host()
    dead = temporary(store, host, start(born, store).result)
    reborn = temporary(store, host, f"{os.getpid()}-1")  # another process had this number
    table = store.folder / f".results.csv.{host}.{os.getpid()}-1.12ab.tmp"
    table.write_text("half")
    nameless = store.records / f"{KEY}.json.tmp"
    nameless.write_text("half")
    assert sorted(store.clean()) == sorted([dead, reborn, table, nameless])
    assert os.listdir(store.records) == []
    assert store.clean() == []


def born(_: Store) -> str:
    return str(temporary_module._process(os.getpid()))


def test_temporary_files_of_live_processes_are_kept(store: Store) -> None:
    mine = temporary(
        store, temporary_module._host(), str(temporary_module._process(os.getpid())), 1e6
    )
    assert store.clean() == []
    assert mine.exists()


def test_temporary_files_of_other_hosts_are_removed_after_a_day(store: Store) -> None:
    young = temporary(store, "elsewhere_example_org", "12-34", 3600)
    old = temporary(store, "elsewhere", "12-34", 25 * 3600)
    assert store.clean() == [old]
    assert young.exists()


def test_temporary_files_tell_who_writes_them(store: Store, monkeypatch: Any) -> None:
    seen = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.extend(strays(store)))
    store.write(record(1))
    (name,) = seen
    found = temporary_module.NAME.fullmatch(name)
    assert found is not None
    assert found["process"].startswith(f"{os.getpid()}-")
    assert found["host"].startswith(socket.gethostname()[:1])


# --- real processes -------------------------------------------------------------------------------


@POSIX
def test_no_kill_leaves_a_bad_record(store: Store) -> None:
    rng = random.Random(5)
    for size in (10, 1_000_000, 100_000, 10, 100_000):
        writer = start(write_for_ever, store, size)
        time.sleep(rng.uniform(0.0, 0.1))
        writer.kill()
        left = strays(store)
        assert len(store.clean()) == len(left) <= 1
        for one in sound(store).values():
            assert one["result"]["rows"][0]["cost"] == one["content"]["i"] / 7
    assert store.keys()


def write_for_ever(store: Store, size: int) -> None:
    for i in itertools.cycle(range(30)):
        store.write(record(i, size=size))


@POSIX
def test_two_processes_write_and_clean_on_the_same_keys_at_once(store: Store) -> None:
    both = [start(write_and_clean, store, size) for size in (10, 50_000)]
    assert [one.result for one in both] == [[20] * 5] * 2
    assert len(sound(store)) == 20
    assert not strays(store)


def write_and_clean(store: Store, size: int) -> list[int]:
    found = []
    for _ in range(5):
        for i in range(20):
            store.write(record(i, size=size))
            store.clean()
        found.append(len(sound(store)))
    return found


@POSIX
def test_two_processes_set_the_same_corrupt_records_aside_once(store: Store) -> None:
    keys = [record(i)["key"] for i in range(200)]
    for key in keys:
        store.path(key).write_bytes(b"junk")
    both = [start(scan_and_write, store, keys) for _ in range(2)]
    assert sum(one.result for one in both) == 200
    assert len(os.listdir(store.folder / "corrupt")) == 200
    assert len(sound(store)) == 200


def scan_and_write(store: Store, keys: list[str]) -> int:
    corrupt = store.scan(keys).corrupt
    for i in range(200):
        store.write(record(i))
    return len(corrupt)


@POSIX
def test_a_limit_on_files_is_an_os_error_and_leaves_what_was_there(store: Store) -> None:
    store.write(record(1))
    assert start(write_large, store).result == [errno.EFBIG] * 2
    assert not strays(store)
    assert sound(store) == {KEY: record(1), record(3)["key"]: record(3)}


def write_large(store: Store) -> list[int | None]:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    found = []
    for i in (1, 2):
        with pytest.raises(OSError) as error:
            store.write(record(i, size=10_000))
        found.append(error.value.errno)
    store.write(record(3))
    return found


@POSIX
def test_no_room_left_is_an_os_error_and_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting is not allowed")
    try:
        store = Store(place)
        store.prepare()
        store.write(record(1))
        with pytest.raises(OSError, match="No space left"):
            store.write(record(2, size=100_000))
        assert not strays(store)
        assert sound(store) == {KEY: record(1)}
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_writer_taken_for_dead_by_another_writes_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, lost = os.fsync, []

    def lose(number: int) -> None:
        fsync(number)
        if not lost:
            lost.extend(strays(store))
            (store.records / lost[0]).unlink()

    monkeypatch.setattr(os, "fsync", lose)
    store.write(record(1))
    assert lost
    assert sound(store) == {KEY: record(1)}


@pytest.mark.slow
def test_ten_thousand_records_are_read_within_five_seconds(store: Store) -> None:
    records = [record(i, size=4500) for i in range(10_000)]
    for one in records:
        store.path(one["key"]).write_text(to_text(one))
    begin = time.process_time()
    found = store.scan([one["key"] for one in records])
    assert time.process_time() - begin < 5.0
    assert len(found.records) == 10_000
    assert why_unsound(found.records[records[7]["key"]], records[7]["key"]) is None
