"""Photographs and folders of images."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from sklearn.datasets import load_sample_images

from orbitpool.datasets import DataCorrupt, DataMissing, image_folder, natural_images
from orbitpool.datasets.photographs import class_files


@pytest.fixture(scope="module")
def colour():
    """Two real photographs, (427, 640, 3) bytes each."""
    return load_sample_images().images


def test_without_files_scikit_learns_photographs_stand_in(photographs, tmp_path):
    images, provenance, source = natural_images(tmp_path)
    assert_allclose(images, photographs, atol=1e-6)
    assert images[0].dtype == np.float32
    assert provenance == "stand-in"
    assert "scikit-learn" in source


def test_grey_photographs_in_the_folder_stand_in(photographs, tmp_path):
    (tmp_path / "natural").mkdir()
    for i, image in enumerate(photographs):
        Image.fromarray((image * 255).astype(np.uint8)).save(tmp_path / f"natural/{i}.tiff")
    images, provenance, source = natural_images(tmp_path)
    assert_allclose(images, photographs, atol=1 / 255)
    assert (provenance, str(tmp_path) in source) == ("stand-in", True)


def test_van_hateren_images_are_official(tmp_path):
    (tmp_path / "vanhateren").mkdir()
    pixels = np.arange(1024 * 1536).reshape(1024, 1536) % 5000
    for i in range(4):
        (pixels + i).astype(">u2").tofile(tmp_path / f"vanhateren/imk0000{i}.iml")
    images, provenance, source = natural_images(tmp_path, most=2)
    assert_allclose(images, [pixels / 4999, (pixels + 3) / 5002], atol=1e-6)
    assert provenance == "official"
    assert "2 van Hateren images" in source


def test_damaged_photographs_are_refused_by_name(tmp_path):
    (tmp_path / "natural").mkdir()
    (tmp_path / "natural/1.tiff").write_bytes(b"II*\0 and no more")
    with pytest.raises(DataCorrupt, match=r"1\.tiff cannot be read as an image"):
        natural_images(tmp_path)
    (tmp_path / "natural/1.iml").write_bytes(bytes(1000))
    with pytest.raises(DataCorrupt, match=r"1\.iml has 1,000 bytes; a van Hateren image has 3,145,728"):
        natural_images(tmp_path)
    with pytest.raises(ValueError, match="most is 0"):
        natural_images(tmp_path, most=0)


@pytest.fixture
def classes(colour, tmp_path):
    """Two class folders with three images, one damaged, and things that are no images."""
    for name in ("b/2.png", "a/1.png", "a/deeper/3.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(colour["b" in name][: 30 + int(path.stem), :40]).save(path)
    (tmp_path / "a/broken.png").write_bytes((tmp_path / "a/1.png").read_bytes()[:200])
    (tmp_path / "a/notes.txt").write_text("no image")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_subfolders_are_classes_and_damage_is_listed(classes, colour):
    found = image_folder(classes)
    assert found.names == ("a", "b")
    assert_array_equal(found.labels, [0, 0, 1])
    assert [p.name for p in found.files] == ["1.png", "3.png", "2.png"]
    assert_array_equal(found.images[2], colour[1][:32, :40])
    ((path, reason),) = found.problems
    assert path == classes / "a/broken.png"
    assert reason


def test_strictly_damage_is_an_error(classes):
    with pytest.raises(DataCorrupt, match=r"broken\.png cannot be read as an image"):
        image_folder(classes, strict=True)


def test_images_beside_class_folders_are_not_labelled(classes, colour):
    Image.fromarray(colour[0]).save(classes / "loose.png")
    found = image_folder(classes)
    assert len(found.images) == 3
    assert (classes / "loose.png", "lies outside the class folders") in found.problems
    (classes / "a/broken.png").unlink()
    with pytest.raises(DataCorrupt, match=r"loose\.png lies outside"):
        image_folder(classes, strict=True)


def test_a_plain_folder_has_no_labels(colour, tmp_path):
    Image.fromarray(colour[0]).save(tmp_path / "x.png")
    Image.fromarray(colour[0][:, :, 0].astype(np.uint16) << 8).save(tmp_path / "y.png")
    found = image_folder(tmp_path, grey=True)
    assert found.labels is None
    assert found.names == ()
    assert [image.shape for image in found.images] == [(427, 640)] * 2
    assert_array_equal(found.images[1], colour[0][:, :, 0])  # sixteen bits become eight
    assert_array_equal(image_folder(tmp_path).images[0], colour[0])


def test_what_is_transparent_stands_on_white_and_real_numbers_are_refused(tmp_path):
    ink = np.zeros((6, 6, 4), np.uint8)
    ink[2:4, 2:4, 3] = 255  # black, drawn in the alpha channel alone
    Image.fromarray(ink).save(tmp_path / "ink.png")
    Image.fromarray(np.random.default_rng(0).random((6, 6), dtype=np.float32)).save(tmp_path / "real.tiff")
    found = image_folder(tmp_path)
    assert_array_equal(found.images[0][:, :, 0], np.where(ink[:, :, 3] == 255, 0, 255))
    assert len(found.images) == len(found.problems) == 1
    assert "numbers of 32 bits" in str(found.problems)


def test_a_folder_without_images_is_told(tmp_path):
    with pytest.raises(DataMissing, match="holds no images"):
        image_folder(tmp_path)
    with pytest.raises(DataMissing, match="is not a folder"):
        image_folder(tmp_path / "nowhere")


def test_files_are_in_the_order_of_their_paths_whatever_their_names(tmp_path):
    for name in ("a/x", "a/x-1", "a/x/y", "a-b", "b", "a/.hidden", ".thumbs", "__MACOSX"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        for file in ("2.png", "10.PNG", "x.jpg", "x-.jpg", ".dot.png", "notes.txt", "1.png"):
            (tmp_path / name / file).touch()
    (tmp_path / "a/x.png").mkdir()  # a folder that is called like an image
    (tmp_path / "a/link").symlink_to(tmp_path, target_is_directory=True)  # a way round and round
    (tmp_path / "loose.png").touch()
    groups, left = class_files(tmp_path)
    assert list(groups) == ["a", "a-b", "b"]
    assert left == [("loose.png", "lies outside the class folders")]
    for name, files in groups.items():
        there = [p for p in (tmp_path / name).rglob("*") if p.suffix.lower() in (".png", ".jpg") and p.is_file()]
        expected = sorted(
            p.relative_to(tmp_path) for p in there if not p.name.startswith(".") and "link" not in p.parts
        )
        assert files == [str(p) for p in expected]
