"""The block files of a store, and what may happen to them; and slot files, for what kvkeep would refuse."""

import json
import struct


def block_files(store):
    return sorted(store.glob("?/*.safetensors"))


def metadata_of(path):
    with path.open("rb") as file:
        [length] = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))["__metadata__"]


def chain(store):
    """The files of the one prompt that the store holds, first block first."""
    files = {path.stem: path for path in block_files(store)}
    next_of = {metadata_of(path).get("kvkeep_parent"): path for path in files.values()}
    ordered = [next_of[None]]
    while ordered[-1].stem in next_of:
        ordered.append(next_of[ordered[-1].stem])
    assert len(ordered) == len(files), "the store holds more than one prompt"
    return ordered


def flip_a_byte(files, number):
    content = bytearray(files[number].read_bytes())
    content[len(content) // 2] ^= 1
    files[number].write_bytes(content)


def truncate(files, number):
    content = files[number].read_bytes()
    files[number].write_bytes(content[: len(content) // 2])


def swap_with_the_next(files, number):
    first, second = files[number].read_bytes(), files[number + 1].read_bytes()
    files[number].write_bytes(second)
    files[number + 1].write_bytes(first)


def remove(files, number):
    files[number].unlink()


def spoil_slot_file(path, version, slots, first, last):
    """Flips an exponent bit of every f16 value of tokens [first, last), in place; flash attention is on."""
    content = bytearray(path.read_bytes())
    at = 8
    [words] = struct.unpack_from("<I", content, at)
    at += 4 + 4 * words + 4
    cells = 0
    while cells == 0:  # Streams of other slots are empty.
        [cells] = struct.unpack_from("<I", content, at)
        at += 4
    at += 12 * cells
    transposed, layers = struct.unpack_from("<II", content, at)
    assert transposed == 0 and cells >= last
    at += 8 + (8 if version == "v4" else 0)
    for _ in range(2 * layers):  # All keys, then all values.
        kind, row = struct.unpack_from("<iQ", content, at)
        assert kind == 1, "not f16"
        at += 12
        for high_byte in range(at + first * row + 1, at + last * row, 2):
            content[high_byte] ^= 0x40
        at += cells * row
    assert len(content) - at < 4 * slots
    path.write_bytes(content)
