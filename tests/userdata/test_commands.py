"""A user's own images on the command line: fit, encode, classify, inspect."""

import csv
import json
import os
import shutil

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

import orbitpool
from orbitpool import together
from orbitpool import transforms as T
from orbitpool.userdata import choosing, images
from orbitpool.userdata.commands import guess_kind
from spreading import spread


@pytest.fixture(autouse=True)
def few_patches(monkeypatch):
    monkeypatch.setattr(choosing, "PATCHES", 2000)


def size_of(picture):
    with Image.open(picture) as file:
        return file.size


def test_a_folder_of_photographs(command, photographs_in_folders, tmp_path):
    """Different sizes, colour and grey, one damaged: the whole way, with what one command wrote in the next."""
    model, z, picture = (tmp_path / name for name in ("model.safetensors", "z.csv", "filters.png"))
    code, says, progress = command("fit", photographs_in_folders, "--components", 6, "--epochs", 2, "--out", model)
    assert (code, says) == (0, f"{model}: 6 filters, 48 features\n")
    assert "left out 1 (" in progress
    assert "temple/broken.png: image file is truncated" in progress
    assert "40 images of" in progress
    assert "26 of them in colour" in progress
    code, says, progress = command("encode", model, photographs_in_folders, "--out", z)
    assert (code, says) == (0, f"{z}: 40 rows of 48 features\n")
    assert "left out 1 (" in progress
    with z.open() as file:
        rows = list(csv.DictReader(file))
    assert (rows[21]["file"], rows[21]["label"]) == ("temple/01.png", "temple")
    image = np.array(Image.open(photographs_in_folders / "temple/01.png"))
    expected = orbitpool.load(model).transform(image[None])[0]
    assert_allclose([float(rows[21][f"feature{i}"]) for i in range(48)], expected, atol=1e-5)
    judged = [
        command("classify", *source, "--json", "--quiet")[1].splitlines()[-1]
        for source in ((z,), (model, photographs_in_folders))
    ]
    assert json.loads(judged[0]) == json.loads(judged[1])
    assert json.loads(judged[0])["accuracy"] > 0.65
    assert command("classify", z)[1].startswith("accuracy ")
    code, says, _ = command("inspect", model, "--out", picture)
    assert code == 0
    for words in ("ConvFeatures: ", "around TIRBM: ", "TransformSet(10 of 8×8 → 6×6", "learned for 2 epochs in "):
        assert words in says
    assert size_of(picture) == (3 * 26 + 2, 2 * 26 + 2)


def test_an_array_of_digits(command, digit_array, turned_digits, tmp_path):
    """Small and of one size: learned whole. Files of another size are brought to it."""
    model, z = tmp_path / "model.safetensors", tmp_path / "z.npz"
    options = ("--components", 20, "--epochs", 3, "--transforms", "rotation")
    code, says, progress = command("fit", digit_array, *options, "--out", model)
    assert (code, says) == (0, f"{model}: 20 filters, 20 features\n")
    assert "learning them whole, with binary units; 20 filters in 16 poses, 3 epochs in batches of 10" in progress
    assert command("encode", model, digit_array, "--out", z)[0] == 0
    expected = orbitpool.load(model).transform(turned_digits.X_train[:300].astype(np.float32))
    with np.load(z) as packed:
        assert_allclose(packed["features"], expected, atol=0.02)  # pixels became bytes
        assert list(packed["files"][:2]) == ["digits.npz[0]", "digits.npz[1]"]
    (tmp_path / "large").mkdir()
    Image.new("RGB", (100, 60)).save(tmp_path / "large/black.png")
    code, says, progress = command("encode", model, tmp_path / "large", "--out", tmp_path / "y.npy")
    assert (code, says) == (0, f"{tmp_path / 'y.npy'}: 1 rows of 20 features\n")
    assert "each at 16×16 pixels, in grey" in progress
    assert "TIRBM: " in command("inspect", model)[1]


def test_transformations_that_nobody_names_are_found(command, turned_digits, tmp_path, monkeypatch):
    """In words and in a picture, if there are images enough; some are taken if there are not."""
    monkeypatch.setattr("orbitpool.discovery.auto.STEPS", 2)
    model = tmp_path / "model.safetensors"
    np.save(tmp_path / "many.npy", turned_digits.X_train[:520].reshape(-1, 16, 16))
    code, says, progress = command("fit", tmp_path / "many.npy", "--components", 4, "--epochs", 1, "--out", model)
    assert code == 0
    learned = orbitpool.load(model)
    assert learned.transforms == "auto"
    assert f"found {learned.discovery_.words()}\n" in progress
    assert size_of(tmp_path / "model.safetensors-transformations.png")[0] > 800
    assert says.endswith(f"; found {learned.discovery_.words()}\n")
    assert f"found in the data: {learned.discovery_.words()}\n" in command("inspect", model)[1]
    assert command("encode", model, tmp_path / "many.npy", "--out", tmp_path / "z.npy")[0] == 0
    np.save(tmp_path / "few.npy", turned_digits.X_train[:50].reshape(-1, 16, 16))
    code, _, progress = command("fit", tmp_path / "few.npy", "--components", 4, "--epochs", 1, "--out", model)
    assert code == 0
    assert "50 images are too few to find their transformations, 500 would do: taking combined ones" in progress
    assert not (tmp_path / "model.safetensors-transformations.png").exists()  # it was of the model before


def test_the_picture_of_what_was_found_is_no_image_to_learn_from(command, turned_digits, tmp_path, monkeypatch):
    """Nor is there hours of work before a name turns out to be taken."""
    monkeypatch.setattr("orbitpool.discovery.auto.STEPS", 2)
    (tmp_path / "images").mkdir()
    for i, image in enumerate(turned_digits.X_train[:505].reshape(-1, 16, 16)):
        Image.fromarray((255 * image).astype(np.uint8)).save(tmp_path / f"images/{i}.png")
    fit = ("fit", tmp_path / "images", "--components", 2, "--epochs", 1, "--out")
    code, _, progress = command(*fit, tmp_path / "images/model.safetensors")
    assert code == 0
    assert "it would be one of the images" in progress
    assert len(list((tmp_path / "images").glob("*.png"))) == 505
    code, says, _ = command(*fit, tmp_path / "model.safetensors", "--json")
    picture = tmp_path / "model.safetensors-transformations.png"
    assert code == 0
    assert f'"picture": "{picture}"' in says
    assert '"found": "' in says
    picture.unlink()
    picture.mkdir()
    assert command(*fit, tmp_path / "model.safetensors")[0] != 0


def test_names_that_are_not_utf8_are_spelled(command, photographs_in_folders, tmp_path):
    model, table, images = tmp_path / "model.safetensors", tmp_path / "z.csv", tmp_path / "images"
    shutil.copytree(photographs_in_folders / "flower", images / os.fsdecode(b"flow\xffr"))
    options = ("--components", 4, "--epochs", 1, "--transforms", "none")
    assert command("fit", images, *options, "--out", model)[0] == 0
    assert command("encode", model, images, "--out", table)[0] == 0
    assert table.read_text().splitlines()[1].startswith("flow\\udcffr/")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("fit", "{images}", "--kind", "sound", "--out", "{tmp}/m"), "is a folder; sound is a table of file,start,end"),
        (("fit", "{tmp}", "--out", "{tmp}/m"), "holds no images; give a folder with images"),
        (("fit", "{images}", "--device", "tpu", "--out", "{tmp}/m"), "device is 'tpu'"),
        (("classify", "{tmp}/z.npz", "{images}"), "z.npz has features already"),
        (("inspect", "{tmp}/z.npz", "--out", "{tmp}/filters.jpg"), "give a name that ends in .png"),
        (("inspect", "{images}"), "is a folder; give a file"),
    ],
)
def test_mistakes_are_told_before_any_work(arguments, says, command, photographs_in_folders, tmp_path):
    (tmp_path / "z.npz").touch()
    code, _, told = command(*(a.format(images=photographs_in_folders, tmp=tmp_path) for a in arguments))
    assert code == 1
    assert says in told
    assert "reading" not in told


def test_kinds_are_guessed(photographs_in_folders, tmp_path):
    assert guess_kind(photographs_in_folders) == guess_kind(tmp_path / "a.npy") == "image"
    for text, kind in (
        ("file,start,end\nx.wav,,", "sound"),
        ("file,label\nx.FLAC,hum", "sound"),
        ("label,file\nx,x.png", "image"),
    ):
        (tmp_path / "t.csv").write_text(text)
        assert guess_kind(tmp_path / "t.csv") == kind


def test_what_goes_wrong_is_one_sentence(command, photographs_in_folders, tmp_path):
    model, nothing = tmp_path / "model.safetensors", tmp_path / "nothing"
    (nothing / "a").mkdir(parents=True)
    (nothing / "a/b.png").write_text("")
    for arguments, says in (
        (("fit", photographs_in_folders, "--strict", "--out", model), "broken.png cannot be read as an image"),
        (("fit", photographs_in_folders, "--transforms", "turns", "--out", model), "transforms is 'turns'; choose one"),
        (("fit", nothing, "--out", model), "none of 1 images in"),
        (("fit", tmp_path / "nowhere", "--out", model), "nowhere is not there; check its name"),
        (("classify", tmp_path / "z.npy"), "the ending is '.npy'; choose one of '.npz'"),
        (("inspect", photographs_in_folders / "flower/01.png"), "01.png is not a file that orbitpool wrote"),
    ):
        code, _, complaint = command(*arguments)
        assert code == 1
        assert f"orbitpool: {complaint.splitlines()[-1].removeprefix('orbitpool: ')}" in complaint
        assert says in complaint.splitlines()[-1]
    assert os.listdir(tmp_path) == ["nothing"]


def found_by_each(folder):
    """What a process is told that sees one image more than the other."""
    try:
        return len(images._open(folder / ("more" if together.place() else "few"), strict=True))
    except ValueError as error:
        return str(error)


def test_processes_that_find_other_images_are_refused(tmp_path):
    for name, count in (("few", 3), ("more", 4)):
        (tmp_path / name).mkdir()
        for i in range(count):
            Image.new("L", (8, 8)).save(tmp_path / name / f"{i}.png")
    assert all("the 2 processes do not find the same images" in said for said in spread(found_by_each, 2, tmp_path))


def test_every_model_can_be_inspected(command, digits, photographs, tmp_path):
    patches = photographs[:, :64, :64]
    models = {
        "square": orbitpool.TIRBM(3, n_iter=1).fit(digits),
        "row": orbitpool.TIRBM(3, n_iter=1).fit(digits[:, :63]),
        "shifts": orbitpool.TIRBM(3, T.time_shifts(8, 6), n_iter=1).fit(digits),
        "patches": orbitpool.ConvFeatures(orbitpool.TIOMP(3, n_iter=1), patch_size=(5, 6), n_patches=500).fit(patches),
    }
    for name, model in models.items():
        model.save(tmp_path / name)
        code, says, _ = command("inspect", tmp_path / name, "--out", tmp_path / f"{name}.png")
        assert code == 0
        assert "3 filters, " in says
        assert size_of(tmp_path / f"{name}.png")[0] > 20


def test_models_of_the_library_encode_a_users_images(command, photographs_in_folders, tmp_path):
    """Those that `fit` does not make: filters in one pose, and two layers."""
    with Image.open(photographs_in_folders / "temple/00.png") as file:
        grey = np.asarray(file.convert("L"))[None]
    below = {"patch_size": 5, "n_patches": 200, "random_state": 0}
    first = orbitpool.ConvFeatures(orbitpool.TIOMP(3, n_iter=1), grid=4, output="map", **below)
    second = orbitpool.ConvFeatures(orbitpool.TIOMP(2, n_iter=1), **{**below, "patch_size": 2})
    for name, model in {
        "one pose": orbitpool.ConvFeatures(orbitpool.TIOMP(3, n_iter=1), **below),
        "two layers": orbitpool.Stack(first, second, random_state=0),
    }.items():
        model.fit(grey).save(tmp_path / name)
        code, *_ = command("encode", tmp_path / name, photographs_in_folders, "--out", tmp_path / f"{name}.npz")
        assert code == 0
        with np.load(tmp_path / f"{name}.npz") as features:
            assert features["features"].shape == (40, len(model.get_feature_names_out()))
