"""What a block holds, as plain values that can be compared, printed and sent between processes."""

import hashlib

import kvkeep


def of_layers(layers):
    """A list of entries in the order of the file; the form of tests/data/seed-cache/manifest.json."""
    entries = []
    for index, layer in enumerate(layers):
        _add_layer(entries, str(index), layer)
    return entries


def _add_layer(entries, at, layer):
    if isinstance(layer, kvkeep.CacheList):
        entries.append({"at": at, "cache_list": len(layer.subs)})
        for index, sub in enumerate(layer.subs):
            _add_element(entries, f"{at}.sub{index}", sub)
    elif isinstance(layer, kvkeep.TurboQuant):
        entries.append({"at": at, "turboquant": [layer.key[0], layer.value[0]]})
        for side, record in (("k", layer.key), ("v", layer.value)):
            for field, tensor in record[1].items():
                _add_element(entries, f"{at}.{side}.{field}", tensor)
    else:
        _add_element(entries, at, layer)


def _add_element(entries, at, element):
    if element is None:
        entries.append({"at": at, "none": True})
    elif isinstance(element, kvkeep.Tensor):
        digest = hashlib.sha256(element.raw).hexdigest()
        entries.append(
            {"at": at, "dtype": element.dtype, "shape": list(element.shape), "sha256": digest}
        )
    else:
        if isinstance(element, kvkeep.NState):
            children = element.elements
            entries.append({"at": at, "nstate": element.class_name, "elements": len(children)})
        else:
            children = element
            entries.append({"at": at, "tuple": len(children)})
        for index, child in enumerate(children):
            _add_element(entries, f"{at}.{index}", child)
