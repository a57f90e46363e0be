"""What the launcher adds to mlx-lm's server, part by part and without a model."""

import os
import re
import shutil
import signal
import threading
from importlib.metadata import entry_points

import pytest

mx = pytest.importorskip("mlx.core", reason="MLX is missing (run: tools/install-deps mlx demo)")
pytest.importorskip("mlx_lm", reason="mlx-lm is missing (run: tools/install-deps mlx demo)")

import kvkeep
from kvkeep.mlx import _background, _model_fields, _options, server
from kvkeep.mlx._prompt_store import PromptStore
from kvkeep.mlx._server_cache import StoredPromptCache
from mlx_lm import server as mlx_server

from mlx_caches import append, assert_same, kv, made, quantized

BLOCK = 16
TOKENS = list(range(100, 200))


# Options


def test_options_are_taken_and_the_others_left():
    options, rest = _options.parse(
        ["--model", "m", "--kvkeep-dir=/d", "--kv-bits", "4", "--kvkeep-max-size", "7GB",
         "--kvkeep-block-size", "64", "--kvkeep-hot-size", "0", "--kvkeep-salt", "s", "--port", "1"], {})
    assert options == ("/d", "7GB", "0", 64, "s")
    assert rest == ["--model", "m", "--kv-bits", "4", "--port", "1"]


def test_variables_stand_in_for_options_and_options_win():
    variables = {"KVKEEP_DIR": "/v", "KVKEEP_MAX_SIZE": "1GB", "KVKEEP_HOT_SIZE": "2MB",
                 "KVKEEP_BLOCK_SIZE": "32", "KVKEEP_SALT": "v"}
    assert _options.parse([], variables)[0] == ("/v", "1GB", "2MB", 32, "v")
    assert _options.parse(["--kvkeep-dir", "/o"], variables)[0].dir == "/o"


@pytest.mark.parametrize("variables, directory", [
    ({"XDG_CACHE_HOME": "/x"}, "/x/kvkeep/mlx"),
    ({"XDG_CACHE_HOME": "relative"}, os.path.expanduser("~/.cache/kvkeep/mlx")),
    ({}, os.path.expanduser("~/.cache/kvkeep/mlx"))])
def test_the_store_is_in_the_users_cache(variables, directory):
    assert _options.parse([], variables)[0] == (directory, "50GB", "auto", 256, "")


def test_a_salt_is_read_from_the_first_line_of_a_file(tmp_path):
    (tmp_path / "salt").write_text("secret\nmore\n")
    assert _options.parse(["--kvkeep-salt-file", str(tmp_path / "salt")], {})[0].salt == "secret"


@pytest.mark.parametrize("arguments, variables, message", [
    (["--kvkeep-max-size", "7XB"], {}, "--kvkeep-max-size: "),
    ([], {"KVKEEP_MAX_SIZE": "much"}, "KVKEEP_MAX_SIZE: "),
    (["--kvkeep-block-size", "0"], {}, "--kvkeep-block-size: 0 is not from 1"),
    (["--kvkeep-hot-size", "-1"], {}, "--kvkeep-hot-size: "),
    (["--kvkeep-salt-file", "/no/such/file"], {}, "--kvkeep-salt-file: "),
    (["--kvkeep-salt-file", "/dev/null", "--kvkeep-salt", "s"], {}, "give only one"),
    (["--kvkeep-dir"], {}, "--kvkeep-dir: expected one argument")])
def test_wrong_options_are_named(capsys, arguments, variables, message):
    with pytest.raises(SystemExit) as end:
        _options.parse(arguments, variables)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


# Fields of a model


@pytest.fixture
def folder(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "llama"}')
    mx.save_safetensors(str(model / "model.safetensors"), {"a": mx.zeros((4, 4)), "b": mx.ones((4, 4))})
    os.utime(model / "model.safetensors", (1, 1))
    return model


def _other_weights(model):
    mx.save_safetensors(str(model / "model.safetensors"), {"a": mx.zeros((4, 4)), "b": mx.zeros((4, 4))})
    os.utime(model / "model.safetensors", (1, 1))


@pytest.mark.parametrize("change", [
    lambda model: (model / "config.json").write_text('{"model_type": "other"}'),
    lambda model: (model / "adapter_config.json").write_text("{}"),
    lambda model: (model / "own.py").write_text("1"),
    lambda model: os.utime(model / "model.safetensors", (1, 2)),
    lambda model: shutil.copy(model / "model.safetensors", model / "model-2.safetensors"),
    _other_weights])
def test_another_content_of_a_folder_is_another_model(folder, change):
    before = _model_fields.folder_digest(folder)
    assert _model_fields.folder_digest(folder) == before
    change(folder)
    assert _model_fields.folder_digest(folder) != before


def test_the_path_and_the_tokenizer_do_not_matter(folder, tmp_path):
    before = _model_fields.folder_digest(folder)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text("{}")
    assert _model_fields.folder_digest(folder.rename(tmp_path / "moved")) == before


def test_files_of_the_hugging_face_cache_are_known_by_their_names(tmp_path):
    digests = []
    for content in ("one", "another"):
        model, blob = tmp_path / content, tmp_path / content / "blobs" / ("a" * 64)
        blob.parent.mkdir(parents=True)
        blob.write_text(content)
        (model / "model.safetensors").symlink_to(blob)
        digests.append(_model_fields.folder_digest(model))
    assert digests[0] == digests[1]


def test_every_part_of_a_model_key_is_a_field(folder, tmp_path):
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "config.json").write_text("{}")
    keys = [(folder, None, None, "plain"), (other, None, None, "plain"), (folder, other, None, "plain"),
            (folder, None, other, "plain"), (folder, None, None, "4 bits")]
    every = [_model_fields.model_fields(*key) for key in keys]
    assert len({tuple(sorted(fields.items())) for fields in every}) == len(keys)
    assert all(fields["mlx-lm"] for fields in every)


# Storing in the background


def stored(tokens=100, refused=None):
    return kvkeep.StoreReport(tokens, 1, 0, refused, "" if refused is None else "the disk is full")


def test_what_cannot_wait_is_dropped_and_counted():
    storer, started, go_on = _background.BackgroundStorer(1), threading.Event(), threading.Event()

    def slow():
        started.set()
        assert go_on.wait(60)
        return stored()

    assert storer.submit(slow) and started.wait(60)
    assert storer.submit(stored)
    assert not storer.submit(stored)
    go_on.set()
    storer.close(60)
    assert storer.stats() == {"prompts_stored": 2, "prompts_dropped": 1, "prompts_refused": 0}


def test_a_store_that_fails_or_is_refused_does_not_end_the_thread(caplog):
    storer = _background.BackgroundStorer()
    for store in (lambda: 1 / 0, lambda: stored(refused="no_space"), stored):
        storer.submit(store)
    storer.close(60)
    assert storer.stats() == {"prompts_stored": 1, "prompts_dropped": 0, "prompts_refused": 2}
    assert "division by zero" in caplog.text and "no_space: the disk is full" in caplog.text


def test_what_is_not_stored_when_the_time_is_over_counts_as_dropped():
    storer, started, go_on = _background.BackgroundStorer(), threading.Event(), threading.Event()
    storer.submit(lambda: started.set() or go_on.wait(60) and stored())
    assert started.wait(60)
    storer.submit(stored)
    storer.close(0)
    go_on.set()
    assert storer.stats()["prompts_dropped"] == 1


# mlx-lm's cache with a store behind it


@pytest.fixture
def open_server_cache(open_cache, folder):
    """As a server starts: nothing in RAM, the store opened anew. Returns the cache and its store."""
    stores = []

    def open_(**options):
        for store in stores:
            store.close()
        stores[:] = [PromptStore(open_cache(), block_size=BLOCK, salt="", **options)]
        return StoredPromptCache(10, store=stores[0]), stores[0]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture
def key(folder):
    return str(folder), None, None


def test_a_prompt_is_found_after_a_restart(open_server_cache, key):
    given = made("bfloat16", len(TOKENS))
    open_server_cache()[0].insert_cache(key, TOKENS, given, cache_type="user")
    found, rest = open_server_cache()[0].fetch_nearest_cache(key, TOKENS + [1])
    assert rest == TOKENS[96:] + [1]
    assert_same(given, found, 96)


def test_what_ram_has_more_of_comes_from_ram(open_server_cache, key):
    open_server_cache()[0].insert_cache(key, TOKENS[:48], made("bfloat16", 48))
    cache, _ = open_server_cache()
    given = made("bfloat16", len(TOKENS))
    super(StoredPromptCache, cache).insert_cache(key, TOKENS, given)
    found, rest = cache.fetch_nearest_cache(key, TOKENS + [1])
    assert rest == [1] and found[0].offset == len(TOKENS)
    assert cache.nbytes == sum(layer.nbytes for layer in given)


def test_a_prompt_that_ram_has_all_of_leaves_a_token(open_server_cache, key):
    cache, _ = open_server_cache()
    cache.insert_cache(key, TOKENS, made("bfloat16", len(TOKENS)))
    found, rest = cache.fetch_nearest_cache(key, TOKENS)
    assert rest == TOKENS[-1:] and found[0].offset == len(TOKENS) - 1


def test_a_prompt_that_ram_has_all_of_and_cannot_cut_is_computed(open_server_cache, key):
    cache, _ = open_server_cache()
    cache.insert_cache(key, TOKENS, made("arrays", len(TOKENS)))
    assert cache.fetch_nearest_cache(key, TOKENS) == (None, TOKENS)


def test_only_what_comes_before_an_image_is_kept(open_server_cache, key):
    with_image = TOKENS[:40] + [-77] * 20 + TOKENS[40:80]
    open_server_cache()[0].insert_cache(key, with_image, made("bfloat16", len(with_image)))
    found, rest = open_server_cache()[0].fetch_nearest_cache(key, with_image + [1])
    assert len(rest) == len(with_image) + 1 - 32 and found[0].offset == 32
    found, rest = open_server_cache()[0].fetch_nearest_cache(key, [-77] + TOKENS)
    assert found is None and len(rest) == 101


def test_quantised_and_plain_states_are_kept_apart(open_server_cache, key):
    options = {"quantized": (4, 32)}
    cache, _ = open_server_cache(**options)
    cache.insert_cache(key, TOKENS[:50], [kv(50)])
    cache.insert_cache(key, TOKENS, [quantized(100)])
    [found], rest = open_server_cache(**options)[0].fetch_nearest_cache(key, TOKENS + [1])
    assert len(rest) == 5 and found.bits == 4
    [found], rest = open_server_cache()[0].fetch_nearest_cache(key, TOKENS + [1])
    assert len(rest) == 101 - 48 and found.offset == 48 and not hasattr(found, "bits")


def test_a_model_that_cannot_be_read_is_served_without_the_store(open_server_cache, caplog):
    cache, store = open_server_cache()
    key = ("/no/such/model", None, None)
    cache.insert_cache(key, TOKENS, made("bfloat16", len(TOKENS)))
    found, rest = cache.fetch_nearest_cache(key, TOKENS + [1])
    assert rest == [1] and found is not None
    assert "/no/such/model cannot be told from other models" in caplog.text


def test_layers_that_cannot_be_kept_do_not_fail_a_request(open_server_cache, key, caplog):
    class OwnKVCache(type(kv(1))):
        pass

    cache, store = open_server_cache()
    cache.insert_cache(key, TOKENS, [append(OwnKVCache(), 100)])
    assert store.stats()["prompts_refused"] == 1
    assert "layer 0 is a OwnKVCache" in caplog.text


def test_a_closed_store_does_not_fail_a_request(open_server_cache, key, caplog):
    cache, store = open_server_cache()
    store.blocks.close()
    cache.insert_cache(key, TOKENS, made("bfloat16", len(TOKENS)))
    found, rest = cache.fetch_nearest_cache(key, TOKENS + [1])
    assert rest == [1]


# The launcher


def test_a_store_is_announced_with_what_it_holds(capsys, tmp_path):
    options, _ = _options.parse(["--kvkeep-dir", str(tmp_path), "--kvkeep-max-size", "1GB"], {})
    blocks = server._open(options)
    blocks.close()
    said = capsys.readouterr().err
    assert re.match(rf"kvkeep: {re.escape(str(tmp_path))}: \d+\.\d\dKB of 1\.00GB used\n", said)


def test_only_the_first_sigterm_interrupts():
    before = signal.signal(signal.SIGTERM, server._interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_store_in_use_is_named_with_the_way_out(capsys, tmp_path):
    options, _ = _options.parse(["--kvkeep-dir", str(tmp_path), "--kvkeep-max-size", "1GB"], {})
    with kvkeep.BlockCache(tmp_path, max_size="1GB"):
        assert server._open(options) is None
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"kvkeep: {tmp_path} is in use by process {os.getpid()}")
    assert second.startswith("kvkeep: serving without a store") and "--kvkeep-dir DIR" in second


def test_the_console_script_is_the_launcher():
    [script] = entry_points(group="console_scripts", name="kvkeep.mlx.server")
    assert script.load() is server.main


def test_mlx_lm_has_what_the_launcher_replaces():
    server._require(mlx_server, "LRUPromptCache", "run")
    assert issubclass(StoredPromptCache, mlx_server.LRUPromptCache)
    with pytest.raises(SystemExit, match="this mlx-lm has no .*NoSuchThing"):
        server._require(mlx_server, "NoSuchThing")
