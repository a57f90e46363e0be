"""What the demo prints: sections, lines, progress; and how it fails."""
import sys
import time


def section(title):
    print(f"\n{title}", flush=True)


def line(label, text):
    print(f"  {label:<13}{text}", flush=True)


def check(condition, message):
    if not condition:
        sys.exit(f"demo: {message}")


def seconds(value):
    return f"{value * 1000:.0f} ms" if value < 0.1 else f"{value:.2f} s"


class Stopwatch:
    """lap() gives the seconds since the last lap, total() those since the start."""

    def __init__(self):
        self.start = self.last = time.perf_counter()

    def lap(self):
        before, self.last = self.last, time.perf_counter()
        return self.last - before

    def total(self):
        return time.perf_counter() - self.start


class Progress:
    """A percentage that a terminal sees move and a log sees as a few lines."""

    LOG_EVERY = 25  # Percent.

    def __init__(self, label, total):
        self.label, self.total, self.logged = label, total, 0
        self.terminal = sys.stdout.isatty()

    def __call__(self, done):
        percent = 100 * done // self.total
        text = f"{percent:3} %, {done} of {self.total} tokens"
        if self.terminal:
            print(f"\r  {self.label:<13}{text}", end="", flush=True)
            if done == self.total:
                print("\r\033[K", end="", flush=True)
        elif percent >= self.logged + self.LOG_EVERY:
            self.logged = percent - percent % self.LOG_EVERY
            line(self.label, text)
