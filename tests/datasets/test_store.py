"""The data folder: found, fetched with its checksum, told what is missing, never half-written."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orbitpool import together
from orbitpool.datasets import DataCorrupt, DataMissing, cifar10, data_dir, mnist, mnist_variation, stl10, store
from orbitpool.wholefile import whole
from spreading import spread


def test_the_folder_is_the_argument_or_the_variable_or_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ORBITPOOL_DATA", str(tmp_path))
    assert data_dir("here") == Path("here")
    assert data_dir() == tmp_path
    monkeypatch.delenv("ORBITPOOL_DATA")
    assert "orbitpool" in str(data_dir())
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert data_dir() == Path.home() / ".cache" / "orbitpool"


def test_neither_pooch_nor_pillow_is_needed_to_import():
    code = "import sys; sys.modules.update(pooch=None, PIL=None); import orbitpool.datasets"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("load", "needed", "place", "published"),
    [
        (mnist, "t10k-labels-idx1-ubyte", "mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels"),
        (cifar10, "data_batch_5.bin", "cifar10/cifar-10-batches-bin", "https://www.cs.toronto.edu/~kriz/cifar-10-bin"),
        (stl10, "fold_indices.txt", "stl10/stl10_binary", "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"),
        (partial(mnist_variation, "rot", 0), "train-images-idx3-ubyte", "mnist", "https://ossci-datasets"),
    ],
)
def test_offline_the_error_lists_files_folder_and_publisher(load, needed, place, published, tmp_path):
    with pytest.raises(DataMissing) as caught:
        load(tmp_path)
    message = str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    assert all(part in message for part in (needed, str(tmp_path / place), published, "the network is unreachable"))


def test_only_what_is_missing_is_asked_for(mnist_folder):
    (mnist_folder / "mnist/t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataMissing, match="needs t10k-labels-idx1-ubyte, not found"):
        mnist(mnist_folder)


def test_without_pooch_the_error_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataMissing, match="pooch"):
        mnist(tmp_path)


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """A server on this machine; publish(name, content, holds, md5) makes it the origin of a collection 'small'."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            put.asked += 1

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=shelf)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

        def put(name, content, holds, md5=None):
            (shelf / name).write_bytes(content)
            url = f"http://127.0.0.1:{server.server_port}/{name}"
            origin = store.Origin(url, md5 or hashlib.md5(content).hexdigest(), holds)
            monkeypatch.setitem(store.COLLECTIONS, "small", store.Collection(("small",), (origin,)))
            return shelf / name

        put.asked = 0
        yield put
        server.shutdown()


def archive(**members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"folder/../{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


def names(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def test_a_file_is_fetched_once(publish, tmp_path):
    published = publish("digits.gz", gzip.compress(b"digits"), ("digits",))
    home = tmp_path / "home"
    found = store.files("small", home)
    assert found == {"digits": home / "small/digits.gz"}
    published.unlink()
    assert store.files("small", home) == found


def fetched(origin, home):
    """What one of some processes finds, which work together and then do not."""
    store.COLLECTIONS["small"] = store.Collection(("small",), (origin,))
    os.environ["NO_PROXY"] = "*"
    found = {name: path.read_bytes() for name, path in store.files("small", home / "all").items()}
    if together.first():  # nobody waits for those who do not come
        store.files("small", home / "first")
    return found


def test_processes_that_work_together_fetch_once(publish, tmp_path):
    publish("all.tar.gz", archive(a=b"first" * 10**5, b=b"second"), ("a", "b"))
    (origin,) = store.COLLECTIONS["small"].origins
    for found in spread(fetched, 3, origin, tmp_path):
        assert found == {"a": b"first" * 10**5, "b": b"second"}
    assert publish.asked == 2
    assert names(tmp_path / "all") == ["a", "all.tar.gz", "b"]


def test_an_archive_gives_the_named_files_and_nothing_outside_its_folder(publish, tmp_path):
    publish("all.tar.gz", archive(a=b"first", b=b"second", other=b"not asked for"), ("a", "b"))
    found = store.files("small", tmp_path / "home")
    assert [found[name].read_bytes() for name in ("a", "b")] == [b"first", b"second"]
    assert names(tmp_path / "home") == ["a", "all.tar.gz", "b"]


def test_a_fetched_file_with_another_checksum_is_refused_and_not_kept(publish, tmp_path):
    publish("digits", b"something else", ("digits",), md5="0" * 32)
    with pytest.raises(DataCorrupt, match=r"digits gave a file whose md5 is not 0{32}; try again"):
        store.files("small", tmp_path / "home")
    assert names(tmp_path / "home") == []


def test_what_the_publisher_no_longer_has_is_missing(publish, tmp_path):
    publish("digits", b"digits", ("digits",)).unlink()
    with pytest.raises(DataMissing, match="404"):
        store.files("small", tmp_path / "home")
    assert names(tmp_path / "home") == []


def test_a_folder_that_cannot_be_made_is_told(publish, tmp_path):
    publish("digits", b"digits", ("digits",))
    (tmp_path / "home").write_text("a file where the folder should be")
    with pytest.raises(DataMissing, match="home"):
        store.files("small", tmp_path / "home")


def test_writing_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    (tmp_path / "kept").write_bytes(b"old")
    with pytest.raises(TypeError), whole(tmp_path / "kept") as file:
        file.writelines([b"ne", "and then it fails"])
    assert names(tmp_path) == ["kept"]
    assert (tmp_path / "kept").read_bytes() == b"old"
