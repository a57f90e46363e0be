"""A llama-server that says what the test tells it to, byte by byte."""

import queue
import select
import socket
import threading

from servers import PATIENCE

OWN = {  # What kvkeep asks for itself.
    "/health": b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"status":"ok"}',
    "/props": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
}


class Exchange:
    """A request as it arrived, and the connection to answer it on."""

    def __init__(self, connection):
        self._connection, self._came = connection, b""
        head = self._take_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        self.method, self.target, _ = head[0].split(" ")
        self.headers = {}
        for line in head[1:]:
            if line:
                name, _, value = line.partition(":")
                self.headers[name.lower()] = value.strip()
        self.body = self._read_body()

    def send(self, data):
        self._connection.sendall(data)

    def close(self):
        self._connection.close()

    def reset(self):
        """Ends without saying so in order."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._connection.close()

    def is_closed(self):
        return bool(select.select([self._connection], [], [], 0)[0])

    def wait_until_closed(self, seconds=PATIENCE):
        ready, _, _ = select.select([self._connection], [], [], seconds)
        assert ready, "kvkeep keeps the connection"
        try:
            assert self._connection.recv(1) == b""
        except ConnectionResetError:
            pass

    def _more(self):
        piece = self._connection.recv(1 << 16)
        if not piece:
            raise EOFError
        self._came += piece

    def _take_until(self, mark):
        while mark not in self._came:
            self._more()
        taken, _, self._came = self._came.partition(mark)
        return taken

    def _take(self, size):
        while len(self._came) < size:
            self._more()
        taken, self._came = self._came[:size], self._came[size:]
        return taken

    def _read_body(self):
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self._take(int(self.headers.get("content-length", 0)))
        body = b""
        while size := int(self._take_until(b"\r\n"), 16):
            body += self._take(size)
            assert self._take(2) == b"\r\n"
        self._take_until(b"\r\n")
        return body


class ScriptedServer:
    """Listens on a port of its own; `next()` is the next request that is not kvkeep's."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._exchanges = queue.Queue()
        threading.Thread(target=self._accept, daemon=True).start()

    def next(self):
        return self._exchanges.get(timeout=PATIENCE)

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            exchange = Exchange(connection)
        except (EOFError, OSError):
            connection.close()
            return
        if own := OWN.get(exchange.target):
            exchange.send(own)
            exchange.close()
        else:
            self._exchanges.put(exchange)


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
