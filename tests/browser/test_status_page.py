"""The status page of `kvkeep llama` as a browser shows it."""
import urllib.error
import urllib.request

import pytest

PROMPT = "Once upon a time there was a cache that forgot nothing. " * 20  # 1,120 tokens.
READY = "document.getElementById('state').textContent === 'ready'"


def number(page, element):
    return int(page.text_of(element).split(" ")[0].replace(",", ""))


def test_shows_what_kvkeep_did(start, browser):
    kvkeep = start()
    kvkeep.complete(PROMPT)
    kvkeep.complete(PROMPT, cache_prompt=False)
    browser.show(kvkeep.url + "/kvkeep/")
    browser.wait_until(READY)
    _, stats = kvkeep.ask("/kvkeep/stats")
    text = browser.text()
    assert "tiny-<i>model-with-a-name-that-is-rather-long-Q4_K_M.gguf" in text and "fake-1" in text
    assert browser.text_of("completions") == "2"
    assert f"of {len(PROMPT):,} prompt tokens" in text
    assert "64.0 MB in " + stats["store"]["dir"] in text
    assert "slot 0" in text and "slot 1" in text and "0 waiting" in text
    assert "absent" in text and "never stored here" in text
    assert "cache_prompt" in text and "it asks for no cache" in text
    assert browser.complaints == []
    assert browser.hosts() == {f"127.0.0.1:{kvkeep.port}"}


def test_follows_what_happens(start, browser):
    kvkeep = start()
    kvkeep.complete(PROMPT, id_slot=0)
    kvkeep.wait_until_stored()
    browser.show(kvkeep.url + "/kvkeep/")
    browser.wait_until(READY)
    assert number(browser, "restored") == 0
    kvkeep.complete("Another prompt altogether", id_slot=0)
    headers, _ = kvkeep.complete(PROMPT, id_slot=0)
    restored = int(headers["x-kvkeep-cached-tokens"])
    assert restored == len(PROMPT) // 64 * 64
    browser.wait_until(f"document.getElementById('restored').textContent === '{restored:,}'")
    assert browser.text_of("hit-rate") != "0 %"
    assert browser.complaints == []


def test_says_when_kvkeep_is_gone(start, browser):
    kvkeep = start()
    browser.show(kvkeep.url + "/kvkeep/")
    browser.wait_until(READY)
    kvkeep.stop()
    browser.wait_until("document.body.classList.contains('stale')")
    assert "does not answer" in browser.text()
    assert browser.text_of("completions") == "0"


def test_shows_why_nothing_is_cached(start, browser):
    kvkeep = start()
    kvkeep.ask("/kvkeep/stats")
    with pytest.raises(urllib.error.HTTPError):  # The server has no such page, and is asked all the same.
        kvkeep.ask("/lora-adapters", [])
    browser.show(kvkeep.url + "/kvkeep/")
    browser.wait_until("document.getElementById('state').textContent === 'serving without a store'")
    assert "adapters were changed while serving" in browser.text()


def overflowing(page):
    """Texts that are cut off."""
    return page.evaluate("[...document.querySelectorAll('p, td, th, span')]"
                         ".filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)"
                         ".map(e => e.textContent)")


def test_fits_every_width_in_either_theme(start, browser):
    kvkeep = start("a-directory-with-a-name-that-is-much-longer-than-anybody-would-want-it-to-be-on-a-phone")
    kvkeep.complete(PROMPT)
    kvkeep.complete(PROMPT, cache_prompt=False)
    for width, dark in [(320, False), (360, False), (360, True), (768, True), (1280, False)]:
        browser.show(kvkeep.url + "/kvkeep/", width=width, dark=dark)
        browser.wait_until(READY)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert overflowing(browser) == []
        light = browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(245, 246, 247)"
        assert light != dark


def test_takes_the_api_key_as_password(start, browser):
    kvkeep = start("one", "--api-key", "secret", key="secret")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(kvkeep.url + "/kvkeep/")
    assert refused.value.code == 401
    browser.show(kvkeep.url.replace("http://", "http://any:secret@") + "/kvkeep/")
    browser.wait_until(READY)
    assert browser.text_of("completions") == "0"
    assert browser.complaints == []
    assert browser.hosts() == {f"127.0.0.1:{kvkeep.port}"}


def test_is_found_without_the_last_slash(start, browser):
    kvkeep = start("one", "--api-prefix", "/models/tiny")
    browser.show(kvkeep.url + "/models/tiny/kvkeep")
    browser.wait_until(READY)
    assert browser.evaluate("location.pathname") == "/models/tiny/kvkeep/"
    assert browser.complaints == []
