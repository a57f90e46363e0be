"""kvkeep.omlx: PagedSSDCacheIndex."""

import threading

import pytest

from kvkeep.omlx import PagedSSDBlockMetadata, PagedSSDCacheIndex, metadata


def entry(name, size=1024, last_access=0.0):
    return PagedSSDBlockMetadata(name, None, size, 1, 0.0, last_access, 1)


def filled(*names, **options):
    index = PagedSSDCacheIndex(1 << 20)
    for name in names:
        index.add(entry(name, **options))
    return index


@pytest.mark.proves("IDX-01", "IDX-02", "IDX-03", "IDX-12")
def test_entries_are_counted_and_replaced():
    index = PagedSSDCacheIndex(10_000)
    assert (index.count, index.total_size, index.max_size) == (0, 0, 10_000)
    index.add(entry(b"a"))
    index.add(entry(b"b"))
    index.add(entry(b"a", 2048))
    assert (index.count, index.total_size) == (2, 3072)
    assert index.get_all_hashes() == [b"b", b"a"]
    for number in range(100):
        index.add(entry(b"%d" % number))
    assert index.total_size > index.max_size and index.count == 102


@pytest.mark.proves("IDX-04", "IDX-05", "IDX-06", "IDX-11", "IDX-13")
def test_entries_are_found_and_removed():
    index = filled(b"a", b"b")
    assert index.contains(b"a") and not index.contains(b"c")
    assert index.get(b"a").block_hash == b"a" and index.get(b"c") is None
    assert index.get_all_hashes() == [b"a", b"b"]
    assert [found.block_hash for found in index.get_all_metadata()] == [b"a", b"b"]
    assert index.remove(b"c") is None and index.count == 2
    assert index.remove(b"a").block_hash == b"a"
    assert (index.count, index.total_size) == (1, 1024) and not index.contains(b"a")


@pytest.mark.proves("IDX-07", "IDX-08")
def test_touching_makes_an_entry_the_most_recent(monkeypatch):
    index = filled(b"a", b"b", b"c", b"d", b"e")
    assert [found.block_hash for found in index.get_lru_entries(3)] == [b"a", b"b", b"c"]
    assert index.get_lru_entries(0) == [] and len(index.get_lru_entries(9)) == 5
    monkeypatch.setattr(metadata.time, "time", lambda: 77.0)
    index.touch(b"a")
    index.touch(b"never there")
    assert index.get_all_hashes() == [b"b", b"c", b"d", b"e", b"a"]
    assert index.get(b"a").last_access == 77.0


@pytest.mark.proves("IDX-09", "IDX-10")
def test_the_oldest_leave_until_the_rest_fits():
    names = [b"a", b"b", b"c", b"d", b"e"]
    index = filled(*names)
    assert [gone.block_hash for gone in index.evict_until_size(3000)] == names[:3]
    assert (index.count, index.total_size) == (2, 2048) and index.evict_until_size(3000) == []
    index = filled(*names)
    assert [gone.block_hash for gone in index.evict_until_size(0, max_count=2)] == names[:2]
    assert index.get_all_hashes() == names[2:] and index.evict_until_size(0, max_count=0) == []


@pytest.mark.proves("IDX-14", "IDX-15")
def test_a_size_may_be_corrected():
    index = filled(b"a", b"b", size=100)
    index.update_file_size(b"a", 150)
    index.update_file_size(b"c", 999)
    assert index.get(b"a").file_size == 150 and index.total_size == 250


@pytest.mark.proves("IDX-16")
def test_sorting_by_last_access_is_stable():
    index = PagedSSDCacheIndex(0)
    for name, time in ((b"c", 3.0), (b"a", 1.0), (b"x", 2.0), (b"y", 2.0)):
        index.add(entry(name, last_access=time))
    index.sort_lru_by_last_access()
    assert index.get_all_hashes() == [b"a", b"x", b"y", b"c"]


@pytest.mark.proves("IDX-17")
def test_the_total_holds_under_threads():
    index = PagedSSDCacheIndex(0)

    def work(name):
        for size in range(1, 200):
            index.add(entry(b"shared", size))
            index.add(entry(name, size))
            index.update_file_size(b"shared", size + 1)
            index.evict_until_size(150, max_count=1)
            index.touch(name)

    threads = [threading.Thread(target=work, args=(b"%d" % number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert index.total_size == sum(found.file_size for found in index.get_all_metadata())
