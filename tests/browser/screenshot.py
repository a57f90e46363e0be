#!/usr/bin/env python3
"""screenshot.py URL FILE [WIDTH] [dark]: a picture of the status page at URL."""
import sys
import tempfile

from chromium import Chromium, find_chromium


def main():
    url, file, *more = sys.argv[1:]
    with tempfile.TemporaryDirectory() as profile:
        browser = Chromium(find_chromium(), profile)
        try:
            width = next((int(word) for word in more if word.isdigit()), 900)
            browser.show(url, width=width, height=600, dark="dark" in more)
            browser.wait_until("!document.querySelector('main').hidden")
            browser.screenshot(file)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
