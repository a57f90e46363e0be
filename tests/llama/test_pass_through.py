"""What the server says and what the client hears, when the server is one that the test speaks for."""

import http.client
import json
import os
import socket
import statistics
import time

import pytest

from scripted_server import ScriptedServer, chunk
from servers import PATIENCE, PROGRAM, Kept, free_port, poll

COMPLETION = json.dumps({"prompt": "A", "stream": True}).encode()
ROUTES = ["/completion", "/v1/anything"]  # One that is looked into, and one that is not.


@pytest.fixture(scope="module")
def server():
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def kept(server, tmp_path_factory, cache_home):
    home, port = tmp_path_factory.mktemp("attached"), free_port()
    (home / "slots").mkdir()
    command = [PROGRAM, "llama", "--dir", home / "store", "--attach", f"http://127.0.0.1:{server.port}",
               "--slot-dir", home / "slots", "--listen", port]
    kept = Kept(command, home / "log", port, XDG_CACHE_HOME=str(cache_home))
    kept.wait_until_up()
    poll(lambda: kept.stats()["uncached"]["reason"] == "old_server")
    yield kept
    kept.stop()


class Client:
    """A connection to kvkeep, on which the test says every byte."""

    def __init__(self, kept):
        self.socket = socket.create_connection(("127.0.0.1", kept.port), timeout=PATIENCE)
        self._method = "GET"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def request(self, method, target, body=None, *lines):
        self._method = method
        length = [f"Content-Length: {len(body)}"] if body is not None else []
        head = "\r\n".join([f"{method} {target} HTTP/1.1", "Host: here", *length, *lines, "", ""])
        self.socket.sendall(head.encode() + (body or b""))

    def reply(self):
        """The head of the answer; read() and read1() give its body."""
        reply = http.client.HTTPResponse(self.socket, method=self._method)
        reply.begin()
        return reply


def answered(kept, server, head, *pieces, route="/completion", close=True):
    """Status, headers and body that a client hears of what the server sends."""
    with Client(kept) as client:
        client.request("POST", route, COMPLETION)
        exchange = server.next()
        assert (exchange.method, exchange.target, exchange.body) == ("POST", route, COMPLETION)
        exchange.send(head)
        for piece in pieces:
            exchange.send(piece)
        if close:
            exchange.close()
        reply = client.reply()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()


@pytest.mark.parametrize("route", ROUTES)
def test_pieces_arrive_one_by_one_as_they_were_sent(kept, server, route):
    pieces = [f'data: {{"content":"piece {i} \u00e9"}}\n\n'.encode() for i in range(20)]
    with Client(kept) as client:
        client.request("POST", route, COMPLETION)
        exchange = server.next()
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        reply = client.reply()
        assert reply.getheader("content-type") == "text/event-stream"
        for piece in pieces:  # The next one is sent once this one was heard.
            exchange.send(chunk(piece))
            assert reply.read(len(piece)) == piece
        exchange.send(chunk(b""))
        assert reply.read() == b""


@pytest.mark.parametrize("route", ROUTES)
def test_a_body_of_known_length_keeps_its_length(kept, server, route):
    body = os.urandom(3000)
    head = b"HTTP/1.1 200 Fine\r\nX-Own: a, b\r\nContent-Length: 3000\r\n\r\n"
    status, headers, heard = answered(kept, server, head, body[:1], body[1:], route=route)
    assert (status, heard) == (200, body)
    assert headers["content-length"] == "3000" and headers["x-own"] == "a, b"


@pytest.mark.parametrize("route", ROUTES)
def test_a_body_that_ends_with_the_connection_is_whole(kept, server, route):
    body = os.urandom(200_000)
    assert answered(kept, server, b"HTTP/1.1 200 OK\r\n\r\n", body, route=route)[::2] == (200, body)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("status", [400, 401, 404, 500, 503])
def test_errors_of_the_server_are_the_clients(kept, server, status, route):
    body = b'{"error":{"code":%d,"message":"no"}}' % status
    head = b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
    heard = answered(kept, server, head, body, route=route)
    assert heard[::2] == (status, body) and heard[1]["content-type"] == "application/json"


@pytest.mark.parametrize("route", ROUTES)
def test_an_answer_without_body_is_one(kept, server, route):
    assert answered(kept, server, b"HTTP/1.1 204 No Content\r\n\r\n", route=route)[::2] == (204, b"")
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    assert answered(kept, server, head, route=route)[::2] == (200, b"")


def test_head_has_the_length_and_no_body(kept, server):
    with Client(kept) as client:
        for _ in range(2):  # The second one shows that nothing was left on the connection.
            client.request("HEAD", "/models")
            exchange = server.next()
            assert exchange.method == "HEAD"
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
            exchange.close()
            reply = client.reply()
            assert (reply.status, reply.getheader("content-length"), reply.read()) == (200, "1234", b"")


@pytest.mark.parametrize("route", ROUTES)
def test_large_bodies_pass_both_ways(kept, server, route):
    up, down = b" " * (12 << 20) + COMPLETION, os.urandom(12 << 20)
    with Client(kept) as client:
        client.request("POST", route, up)
        exchange = server.next()
        assert exchange.body == up
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(down))
        reply = client.reply()
        sent = 0
        heard = b""
        while sent < len(down):
            exchange.send(down[sent : sent + (1 << 16)])
            sent += 1 << 16
            heard += reply.read(min(1 << 16, len(down) - len(heard)))
        assert heard + reply.read() == down


@pytest.mark.parametrize("route", ROUTES)
def test_a_chunked_request_arrives_whole(kept, server, route):
    with Client(kept) as client:
        client.request("POST", route, None, "Transfer-Encoding: chunked")
        half = len(COMPLETION) // 2
        client.socket.sendall(chunk(COMPLETION[:half]))
        client.socket.sendall(chunk(COMPLETION[half:]) + chunk(b""))
        exchange = server.next()
        assert exchange.body == COMPLETION
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        assert client.reply().read() == b"ok"


@pytest.mark.parametrize("route", ROUTES)
def test_a_client_that_waits_to_send_its_body_is_told_to(kept, server, route):
    with Client(kept) as client:
        client.request("POST", route, None, f"Content-Length: {len(COMPLETION)}", "Expect: 100-continue")
        go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert client.socket.recv(len(go_on), socket.MSG_WAITALL) == go_on
        client.socket.sendall(COMPLETION)
        exchange = server.next()
        assert exchange.body == COMPLETION and "expect" not in exchange.headers
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        assert client.reply().read() == b"ok"


@pytest.mark.parametrize("route", ROUTES)
def test_a_connection_serves_several_requests(kept, server, route):
    with Client(kept) as client:
        for i in range(3):
            client.request("POST", route, COMPLETION)
            exchange = server.next()
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"%d" % i) + chunk(b""))
            exchange.close()
            assert client.reply().read() == b"%d" % i


@pytest.mark.parametrize("route", ROUTES)
def test_an_answer_that_breaks_off_does_not_look_whole(kept, server, route):
    with Client(kept) as client:
        client.request("POST", route, COMPLETION)
        exchange = server.next()
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"half"))
        reply = client.reply()
        assert reply.read(4) == b"half"
        exchange.reset()
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            reply.read()


@pytest.mark.parametrize("route", ROUTES)
def test_a_server_that_says_nothing_is_a_bad_gateway(kept, server, route):
    with Client(kept) as client:
        client.request("POST", route, COMPLETION)
        server.next().close()
        reply = client.reply()
        assert reply.status == 502 and json.loads(reply.read())["error"]["code"] == 502


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("begun", [False, True], ids=["prefill", "decode"])
def test_the_server_sees_that_its_client_left(kept, server, route, begun, record_property):
    seconds = []
    for _ in range(11):
        with Client(kept) as client:
            client.request("POST", route, COMPLETION)
            exchange = server.next()
            if begun:
                exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"first"))
                assert client.reply().read(5) == b"first"
            assert not exchange.is_closed()
            left = time.monotonic()
        exchange.wait_until_closed()
        seconds.append(time.monotonic() - left)
    median = statistics.median(seconds)
    record_property("median_ms", f"{median * 1000:.1f}")
    print(f"seen after {median * 1000:.1f} ms")
    assert median < 1


def test_many_slow_requests_wait_at_the_same_time(kept, server):
    clients = [Client(kept) for _ in range(40)]
    for client in clients:
        client.request("POST", "/completion", COMPLETION)
    exchanges = [server.next() for _ in clients]
    for exchange in reversed(exchanges):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    for client in clients:
        assert client.reply().read() == b"ok"
        client.socket.close()


def test_what_speaks_of_one_connection_only_stays_on_it(kept, server):
    with Client(kept) as client:
        client.request("GET", "/models", None, "Connection: keep-alive, X-Mine", "X-Mine: 1", "X-Other: 2",
                       "Authorization: Bearer key")
        exchange = server.next()
        exchange.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        assert client.reply().getheader("connection") in (None, "keep-alive")
    assert "x-mine" not in exchange.headers
    assert exchange.headers["x-other"] == "2" and exchange.headers["authorization"] == "Bearer key"
