"""Files that are damaged, odd or mean: one of each kind that once got through; `make fire` tries thousands."""

import io
import json
import os
import struct
import sys
import zipfile
import zlib

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image

from orbitpool import TIRBM, ModelFileError, SpeechFeatures, arrayfiles, datasets, load, modelfile
from orbitpool.datasets import DataCorrupt, photographs
from orbitpool.experiments import results
from orbitpool.speech import Recording, Segment, read_audio
from orbitpool.userdata import choosing, featurefiles, reading


@pytest.fixture
def npz(tmp_path):
    """An .npz whose arrays are the given bytes."""

    def made(**members):
        with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in members.items():
                file.writestr(f"{name}.npy", content)
        return tmp_path / "x.npz"

    return made


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def header(text):
    """The beginning of a .npy file with a header of one's own."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.ljust(117) + b"\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no array",
        header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2"),  # a header that does not end
        header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999, 99999), }"),  # petabytes
        header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), }"),
        header(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }") + b"cos\nsystem\n",
        npy(np.ones((2, 2)))[:-1],
    ],
)
def test_arrays_that_are_none_are_refused_whatever_numpy_raises(content, npz, tmp_path):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.npy cannot be read as arrays"):
        arrayfiles.read_npy(tmp_path / "x.npy")
    for read in (arrayfiles.read_npz, featurefiles.read, reading.load_array):
        with pytest.raises(ValueError, match=r"x\.npz"):
            read(npz(features=content, images=content, labels=npy(np.array(["a", "b"]))))


def test_a_bomb_is_not_unpacked(npz):
    data = npy(np.zeros((1, 1), np.uint8)).replace(b"(1, 1), }        ", b"(20000, 20000), }")
    path = npz(images=data + bytes(20000 * 20000 - 1))
    assert path.stat().st_size < 10**6
    with pytest.raises(ValueError, match="more than 100 times as much"):
        arrayfiles.read_npz(path)


def test_letters_that_unicode_does_not_have_are_refused(npz):
    path = npz(images=npy(np.zeros((1, 8, 8), np.uint8)), labels=npy(np.array([0xFFFFFF], "<u4").view("<U1")))
    with pytest.raises(ValueError, match="numbers in the place of letters"):
        reading.open_images(path, strict=True)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_damaged_features_are_refused_by_name(ending, tmp_path):
    path, Z = tmp_path / f"z{ending}", np.ones((40, 3), np.float32)
    featurefiles.write(path, Z, {"file": ["x"] * 40, "label": ["a"] * 40})
    whole = path.read_bytes()
    for damaged in (b"", whole[:-5], whole[:100] + bytes(200) + whole[300:], b"label,feature0\n,1\n\n"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"z{ending} is not a file that orbitpool encode wrote"):
            featurefiles.read(path)
    Z[3, 1] = np.inf
    featurefiles.write(path, Z, {"file": ["x"] * 40, "label": ["a"] * 40})
    with pytest.raises(ValueError, match="its features are not all finite"):
        featurefiles.read(path)


def png(width, height, data=b""):
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(data)))
    parts = [
        struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in (*chunks, (b"IEND", b""))
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_pictures_that_are_too_large_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "1.png"
    for width, height in ((12_000, 12_000), (100_000, 100_000), (0, 0)):
        path.write_bytes(png(width, height))
        with pytest.raises(DataCorrupt, match=r"1\.png cannot be read as an image"):
            photographs.read_image(path, grey=False)
    path.write_bytes(png(8, 8, bytes(8 * 25)))
    assert photographs.read_image(path, grey=False).shape == (8, 8, 3)


def test_pictures_that_another_program_would_draw_are_not_opened(tmp_path):
    """Pillow hands PostScript to Ghostscript, whatever the file is called."""
    Image.new("RGB", (9, 9)).save(tmp_path / "1.eps")
    (tmp_path / "1.eps").rename(tmp_path / "1.png")
    with pytest.raises(DataCorrupt, match="cannot identify image file"):
        photographs.read_image(tmp_path / "1.png", grey=False)
    Image.new("RGB", (9, 9)).save(tmp_path / "2.eps")
    assert datasets.image_folder(tmp_path).files == []


def test_a_pipe_in_the_place_of_a_file_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(DataCorrupt, match="it is no plain file"):
        photographs.read_image(tmp_path / "pipe.png", grey=False)
    with pytest.raises(ValueError, match="is no plain file"):
        read_audio(tmp_path / "pipe.png")


def test_sound_that_claims_to_be_sampled_a_billion_times_a_second_is_refused(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(800), 16_000)
    data = bytearray((tmp_path / "a.wav").read_bytes())
    data[24:28] = struct.pack("<I", 2**31 - 1)
    (tmp_path / "a.wav").write_bytes(data)
    with pytest.raises(ValueError, match="announces 2,147,483,647 samples a second; 1,000,000 are the most"):
        read_audio(tmp_path / "a.wav")


def test_transformations_that_are_not_finite_are_refused_by_name(tmp_path):
    np.save(tmp_path / "t.npy", np.full((1, 4, 4), np.nan))
    with pytest.raises(ValueError, match=r"t\.npy does not hold transformations: matrix 0 holds NaN"):
        choosing.choose_poses(str(tmp_path / "t.npy"), (2, 2), whole=True)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[]",
        "7",
        '{"row": 1}',
        '{"figure": "x", "quick": true}',
        "\ud800".encode("utf-8", "ignore").decode(),
    ],
)
def test_results_that_are_none_are_refused_by_name(text, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ValueError, match=r"r\.json is not a result of orbitpool"):
        results.load(tmp_path / "r.json")


def test_a_row_without_its_data_is_no_result(tmp_path):
    row = {"table": "t", "row": "r", "quick": True, "runs": [], "values": [], "mean": 1.0, "settings": {}, "std": None}
    (tmp_path / "r.json").write_text(json.dumps({**row, "metric": "error", "paper": None}))
    with pytest.raises(ValueError, match=r"r\.json is not a result of orbitpool: KeyError\('data'\)"):
        results.load(tmp_path / "r.json")


@pytest.fixture
def resealed(digits, tmp_path):
    """A checkpoint that is changed, under a checksum that is right, and gone on from."""
    options = {"n_components": 3, "random_state": 0, "checkpoint": tmp_path / "run"}
    TIRBM(n_iter=1, **options).fit(digits)

    def change(f):
        content, tensors = modelfile.read(tmp_path / "run")
        f(content, tensors)
        modelfile.write(tmp_path / "run", content, tensors)
        return TIRBM(n_iter=2, **options).fit(digits)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda content, tensors: content.pop("counters"),
        lambda content, tensors: content["counters"].update(epochs=1),
        lambda content, tensors: content["counters"].update(epoch=-1),
        lambda content, tensors: content["counters"].update(history={"seconds": [1.0, 2.0]}),
        lambda content, tensors: tensors.update({"state.W": tensors["state.W"][:1]}),
        lambda content, tensors: tensors["state.W"].fill_(1e30),
    ],
)
def test_a_checkpoint_that_contradicts_itself_is_refused_by_name(resealed, change):
    with pytest.raises(ModelFileError, match="run is not a model that this version understands"):
        resealed(change)


@pytest.mark.parametrize(
    "change",
    [
        lambda content, tensors: tensors["scale_"].fill_(0),
        lambda content, tensors: tensors["mean_"].fill_(torch.inf),
        lambda content, tensors: tensors.update(mean_=tensors["mean_"][:5]),
        lambda content, tensors: content.update(n_features_in=38.5),
    ],
)
def test_features_that_contradict_themselves_are_refused(change, tmp_path):
    rng = np.random.default_rng(0)
    recording = Recording("a", rng.normal(size=(50, 39)).astype(np.float32), 0.5)
    SpeechFeatures(frames=3).fit([Segment(recording, 0.1, 0.4)]).save(tmp_path / "m")
    content, tensors = modelfile.read(tmp_path / "m")
    change(content, tensors)
    modelfile.write(tmp_path / "m", content, tensors)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_a_large_file_that_is_no_model_is_not_read_whole(tmp_path):
    with (tmp_path / "video").open("wb") as file:
        file.write(b"\x20\0\0\0\0\0\0\0ftypmp42")
        file.truncate(2**40)  # a terabyte of nothing
    with pytest.raises(ModelFileError, match="is not a file that orbitpool wrote"):
        load(tmp_path / "video")


@pytest.mark.filterwarnings("default")
@pytest.mark.skipif(sys.platform != "linux", reason="the programme reads /proc")
def test_a_slice_of_the_fire(tmp_path):
    """Three damaged files of every reader; the programme itself is `make fire`."""
    from fire.inputs import attempt
    from fire.readers import readers

    from orbitpool.datasets import objects, written

    kept = objects.CIFAR_RECORDS, objects.STL_SIZES, objects.STL_FOLDS, photographs._IML, written.SIZES
    try:
        ends = [attempt(reader, case, tmp_path) for reader in readers() if not reader.odd for case in range(3)]
    finally:
        objects.CIFAR_RECORDS, objects.STL_SIZES, objects.STL_FOLDS, photographs._IML, written.SIZES = kept
    assert len(ends) > 200
    assert [end for end in ends if not end.fine] == []
