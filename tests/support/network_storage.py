"""A storage that is not a path of this machine: one tree of files, written by the S3 API, read by WebHDFS.

pyarrow has a client of S3, but Spark's own packages have none (it is in hadoop-aws, which pyspark does not
contain); they have a client of WebHDFS, the HTTP interface of HDFS, which pyarrow lacks. So the tree is
served by both interfaces, as far as those two clients use them. Nothing of it is a file: a reader that uses
the local disk finds nothing.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase, BytesIO
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_WEBHDFS = "/webhdfs/v1"
_PART = re.compile(r"<PartNumber>(\d+)")
_BUCKET = "traces"


class NetworkStorage:
    """Files by path (`runs/1/manifest.json`); reading what is below a path in `denied` is not allowed."""

    def __init__(self, port: int) -> None:
        self.files: dict[str, bytes] = {}
        self.denied: set[str] = set()
        self.refuses_writes = False
        self.listed: list[str] = []
        self._port = port

    def url_to_write(self, path: str) -> str:
        """A URL that pyarrow can write to."""
        options = f"scheme=http&endpoint_override=127.0.0.1:{self._port}&region=local"
        return f"s3://user:secret@{_BUCKET}/{path}?{options}&allow_bucket_creation=true"

    def url_to_read(self, path: str) -> str:
        """A URL that Spark can read and write."""
        return f"webhdfs://127.0.0.1:{self._port}/{path}"

    def is_denied(self, path: str) -> bool:
        return any(path == each or path.startswith(f"{each}/") for each in self.denied)

    def children(self, path: str) -> dict[str, int | None]:
        """What is directly below a path: the sizes of files, and None for folders."""
        start = f"{path}/" if path else ""
        found: dict[str, int | None] = {}
        for name, content in self.files.items():
            if name.startswith(start) and name != start:
                child, slash, _ = name[len(start) :].partition("/")
                found[child] = None if slash else len(content)
        return found


@contextmanager
def network_storage() -> Iterator[NetworkStorage]:
    """A storage on a free port of the loopback address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Requests)
    server.daemon_threads = True
    storage = _Requests.storage = NetworkStorage(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield storage
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    storage: NetworkStorage

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        """Requests are not logged."""

    def _handle(self) -> None:
        url = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        self.body = self._read_body()
        path = unquote(url.path)
        if path.startswith(_WEBHDFS):
            self._handle_webhdfs(path.removeprefix(_WEBHDFS).strip("/"))
        else:
            self._handle_s3(path.lstrip("/").partition("/")[2].rstrip("/"))

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 (names of the base class)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = _unchunked(self.rfile)
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_wrapped = self.headers.get("Content-Encoding") == "aws-chunked"
        return _unchunked(BytesIO(body)) if is_wrapped else body

    def _answer(self, status: HTTPStatus, body: bytes = b"", **headers: str) -> None:
        """Answer without a type of content: the client of WebHDFS in pyspark 4.3 cannot parse it."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    # WebHDFS

    def _handle_webhdfs(self, path: str) -> None:
        operation = self.query["op"].upper()
        writes = self.command in ("PUT", "POST", "DELETE")
        if self.storage.is_denied(path) or (writes and self.storage.refuses_writes):
            self._fail(HTTPStatus.FORBIDDEN, "AccessControlException", f"Permission denied: /{path}")
        elif operation in ("OPEN", "CREATE") and "direct" not in self.query:
            location = f"http://{self.headers['Host']}{self.path}&direct=1"
            self._answer(HTTPStatus.TEMPORARY_REDIRECT, Location=location)
        elif writes:
            self._change(operation, path)
        else:
            self._read(operation, path)

    def _change(self, operation: str, path: str) -> None:
        if operation == "CREATE":
            self.storage.files[path] = self.body
            self._answer(HTTPStatus.CREATED)
        elif operation == "MKDIRS":
            self._answer_json({"boolean": True})
        elif operation == "DELETE":
            self._answer_json({"boolean": self._move(path, None)})
        elif operation == "RENAME":
            self._answer_json({"boolean": self._move(path, self.query["destination"].strip("/"))})

    def _read(self, operation: str, path: str) -> None:
        storage = self.storage
        if operation == "OPEN" and path in storage.files:
            start = int(self.query.get("offset", 0))
            end = start + int(self.query.get("length", len(storage.files[path])))
            self._answer(HTTPStatus.OK, storage.files[path][start:end])
        elif operation == "GETFILEBLOCKLOCATIONS":
            self._answer_json({"BlockLocations": {"BlockLocation": []}})
        elif operation == "GETFILESTATUS" and (path in storage.files or storage.children(path)):
            self._answer_json({"FileStatus": _status("", self._size_of(path))})
        elif operation == "LISTSTATUS" and (path in storage.files or storage.children(path)):
            storage.listed.append(path)
            own = {"": len(storage.files[path])} if path in storage.files else storage.children(path)
            statuses = [_status(name, size) for name, size in sorted(own.items())]
            self._answer_json({"FileStatuses": {"FileStatus": statuses}})
        else:
            self._fail(HTTPStatus.NOT_FOUND, "FileNotFoundException", f"{operation} /{path}: no such file")

    def _size_of(self, path: str) -> int | None:
        return len(self.storage.files[path]) if path in self.storage.files else None

    def _move(self, path: str, to: str | None) -> bool:
        files = self.storage.files
        moved = [name for name in files if name == path or name.startswith(f"{path}/")]
        for name in moved:
            content = files.pop(name)
            if to is not None:
                files[to + name.removeprefix(path)] = content
        return bool(moved)

    def _answer_json(self, document: object) -> None:
        self._answer(HTTPStatus.OK, json.dumps(document).encode())

    def _fail(self, status: HTTPStatus, kind: str, message: str) -> None:
        error = {
            "exception": kind,
            "javaClassName": f"org.apache.hadoop.security.{kind}"
            if status == HTTPStatus.FORBIDDEN
            else f"java.io.{kind}",
            "message": message,
        }
        self._answer(status, json.dumps({"RemoteException": error}).encode())

    # S3

    def _handle_s3(self, path: str) -> None:
        storage = self.storage
        if self.command in ("PUT", "POST", "DELETE"):
            if storage.refuses_writes:
                self._answer_xml(HTTPStatus.FORBIDDEN, "<Error><Code>AccessDenied</Code></Error>")
            else:
                self._change_s3(path)
        elif "list-type" in self.query:
            self._list_s3(self.query.get("prefix", ""))
        elif not path:
            self._answer(HTTPStatus.OK)
        elif path in storage.files:
            self._answer(HTTPStatus.OK, storage.files[path], ETag='"whole"')
        else:
            self._answer_xml(HTTPStatus.NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>")

    def _change_s3(self, path: str) -> None:
        files = self.storage.files
        if "uploads" in self.query:
            self._answer_xml(HTTPStatus.OK, _element("InitiateMultipartUploadResult", UploadId="1"))
        elif "partNumber" in self.query:
            files[f"{path}/.part-{int(self.query['partNumber'])}"] = self.body
            self._answer(HTTPStatus.OK, ETag='"part"')
        elif "uploadId" in self.query:
            numbers = _PART.findall(self.body.decode())
            files[path] = b"".join(files.pop(f"{path}/.part-{number}") for number in numbers)
            self._answer_xml(HTTPStatus.OK, _element("CompleteMultipartUploadResult", ETag="whole"))
        elif self.command == "DELETE":
            files.pop(path, None)
            self._answer(HTTPStatus.NO_CONTENT)
        else:
            is_folder = not path or self.path.partition("?")[0].endswith("/")
            if not is_folder:
                files[path] = self.body
            self._answer(HTTPStatus.OK, ETag='"whole"')

    def _list_s3(self, prefix: str) -> None:
        names = [name for name in sorted(self.storage.files) if name.startswith(prefix)]
        found = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(self.storage.files[name])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for name in names
        )
        head = f"<Name>{_BUCKET}</Name><KeyCount>{len(names)}</KeyCount><IsTruncated>false</IsTruncated>"
        self._answer_xml(HTTPStatus.OK, f"<ListBucketResult>{head}{found}</ListBucketResult>")

    def _answer_xml(self, status: HTTPStatus, text: str) -> None:
        self._answer(status, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode())


def _element(name: str, **children: str) -> str:
    inner = "".join(f"<{child}>{text}</{child}>" for child, text in children.items())
    return f"<{name}>{inner}</{name}>"


def _unchunked(stream: BufferedIOBase) -> bytes:
    parts = []
    while size := int(stream.readline().partition(b";")[0], 16):
        parts.append(stream.read(size))
        stream.readline()
    return b"".join(parts)


def _status(name: str, size: int | None) -> dict[str, object]:
    return {
        "pathSuffix": name,
        "type": "DIRECTORY" if size is None else "FILE",
        "length": size or 0,
        "owner": "user",
        "group": "users",
        "permission": "755",
        "accessTime": 0,
        "modificationTime": 0,
        "blockSize": 1 << 27,
        "replication": 0,
    }
