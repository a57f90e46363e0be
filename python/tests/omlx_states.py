"""Layer states in oMLX's form: comparing them, and reading them from a file without kvkeep."""

import json

import mlx.core as mx


def same(left, right):
    """Equal structure, and arrays of equal dtype, shape and contents."""
    if isinstance(left, mx.array) or isinstance(right, mx.array):
        alike = isinstance(left, type(right)) and left.dtype == right.dtype
        return alike and left.shape == right.shape and bool(mx.array_equal(left, right))
    if isinstance(left, (list, tuple)):
        alike = type(left).__name__ == type(right).__name__ and len(left) == len(right)
        return alike and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and same(list(left.values()), list(right.values()))
    return left == right


def read_file(path):
    """(layers, metadata) of a block file by docs/contract.md B.8 and B.10, as another program reads it."""
    arrays, metadata = mx.load(str(path), return_metadata=True)
    types = json.loads(metadata.get("layer_cache_types", "[]"))
    names = dict(enumerate(types))
    layers = [
        _Layer(arrays, metadata, f"layer_{i}", names.get(i))
        for i in range(int(metadata["num_layers"]))
    ]
    return [layer.read() for layer in layers], metadata


class _Layer:
    def __init__(self, arrays, metadata, prefix, layer_type):
        self.arrays, self.metadata, self.prefix = arrays, metadata, prefix
        self.layer_type = layer_type

    def read(self):
        count = int(self.metadata.get(f"{self.prefix}_sub_count", 0))
        if count:
            return [self.state(f"{self.prefix}_sub_{j}") for j in range(count)]
        if f"{self.prefix}_turboquant_v2" in self.metadata:
            return "__turboquant_v2__", (self.record("k", "key"), self.record("v", "value"))
        return self.state(self.prefix)

    def record(self, side, name):
        fields = self.metadata[f"{self.prefix}_tq_{name}_fields"].split(",")
        kind = self.metadata[f"{self.prefix}_tq_{name}_type"]
        return kind, {field: self.arrays[f"{self.prefix}_tq_{side}_{field}"] for field in fields}

    def state(self, prefix):
        elements = self.elements(prefix)
        if len(elements) == 2 and not any(isinstance(element, tuple) for element in elements):
            return tuple(elements)
        return self.nstate(prefix)

    def nstate(self, prefix):
        otherwise = self.layer_type if prefix == self.prefix else None
        class_name = self.metadata.get(f"{prefix}_state_class_name", otherwise)
        return "__nstate__", class_name, self.elements(prefix)

    def elements(self, prefix):
        count = int(self.metadata[f"{prefix}_state_count"])
        return [self.element(f"{prefix}_state_{k}") for k in range(count)]

    def element(self, name):
        if self.metadata.get(f"{name}_none") == "1":
            return None
        if f"{name}_nested" in self.metadata:
            nested = self.metadata[f"{name}_nested"]
            return tuple(self.elements(name)) if nested == "tuple" else self.nstate(name)
        shape = self.metadata.get(f"{name}_zero_dim")
        if shape is None:
            return self.arrays[name]
        return mx.zeros([int(axis) for axis in shape.split(",")], self.arrays[name].dtype)
