"""A user's images out of folders, tables and arrays."""

import errno
import os
import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orbitpool.datasets import DataCorrupt, image_folder
from orbitpool.userdata.reading import moderate, open_images, shaped


def test_a_folder_a_table_and_an_array_give_the_same_images(photographs_in_folders, tmp_path):
    folder = open_images(photographs_in_folders, strict=False)
    assert len(folder) == 41
    there, images = folder.read(range(41))
    assert folder.problems == [("temple/broken.png", "image file is truncated")]
    lines = [f"{photographs_in_folders / folder.names[i]},{folder.labels[i]}" for i in there]
    (tmp_path / "table.csv").write_text("\n".join(["file,label", *lines]))
    table = open_images(tmp_path / "table.csv", strict=True)
    assert table.labels == ["flower"] * 20 + ["temple"] * 20
    for ours, theirs in zip(table.read(range(40))[1], images, strict=True):
        assert_array_equal(ours, theirs)
    same = np.stack([shaped(image, False, (20, 30)) for image in images])
    for scale in (1, 1 / 255):
        np.save(tmp_path / "array.npy", same * scale)
        array = open_images(tmp_path / "array.npy", strict=True)
        assert array.names[39] == "array.npy[39]"
        assert_array_equal(np.stack(array.read(range(40))[1]), same)


def test_strictly_damage_is_an_error(photographs_in_folders):
    with pytest.raises(DataCorrupt, match=r"broken\.png cannot be read as an image"):
        open_images(photographs_in_folders, strict=True).read(range(41))


def test_what_may_not_be_read_is_told(photographs_in_folders, tmp_path, monkeypatch):
    top = shutil.copytree(photographs_in_folders, tmp_path / "photos")
    (top / "flower/gone.png").symlink_to("nowhere.png")
    (top / "flower/round.png").symlink_to("round.png")
    temple, scandir = str(top / "temple"), os.scandir

    def refusing(folder):
        if folder == temple:
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    found = open_images(top, strict=False)
    there, _ = found.read(range(len(found)))
    assert len(there) == 20
    assert [name for name, _ in found.problems] == [temple, "flower/gone.png", "flower/round.png"]
    with pytest.raises(DataCorrupt, match="temple may not be read"):
        open_images(top, strict=True)
    with pytest.raises(DataCorrupt, match="temple may not be read"):
        image_folder(top, strict=True)
    assert (top / "temple", "may not be read") in image_folder(top).problems


def test_sizes_are_moderate():
    assert moderate(30, 64) == (30, 64)
    assert moderate(300, 640) == (30, 64)
    assert moderate(4, 6400) == (12, 64)
    assert moderate(8, 8) == (12, 12)


def test_labels_of_an_array(digit_array, turned_digits):
    found = open_images(digit_array, strict=True)
    assert found.labels == list(map(str, turned_digits.y_train[:300]))
    assert found.read([7])[1][0].shape == (16, 16, 3)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.npy", np.zeros((3, 4)), r"has shape \(3, 4\); give \(N, H, W\)"),
        ("a.npy", np.zeros((3, 3, 8, 8)), r"has shape \(3, 3, 8, 8\); give"),
        ("a.npy", np.full((1, 8, 8), 256.0), "values from 256 to 256; give pixels from 0 to 1 or from 0 to 255"),
        ("a.npy", np.full((1, 8, 8), np.nan), "values from nan to nan"),
        ("a.npy", np.array([[["x"]]], dtype=object), "a.npy cannot be read as arrays"),
        ("a.npz", {"pixels": np.zeros((1, 8, 8))}, "holds pixels; call the images 'images'"),
        ("a.npz", {"X": np.zeros((2, 8, 8)), "y": [1]}, "holds 2 images and 1 labels"),
        ("a.csv", "path\n1.png", "the header is 'path' and lacks file; it must be file and may have label"),
        ("a.csv", "file", "has no rows below its header"),
        ("a.csv", "file;label\n1.png;x", "lacks file; it must be file and may have label, with commas between them"),
        ("a.PNG", "", r"a\.PNG is one image; give the folder"),
        ("a.txt", "", r"is no folder, and its ending is '\.txt'; choose one of '\.npy', '\.npz', '\.csv'"),
    ],
)
def test_sources_that_are_none_are_refused(name, content, says, tmp_path):
    path = tmp_path / name
    if isinstance(content, np.ndarray):
        np.save(path, content, allow_pickle=True)
    elif isinstance(content, dict):
        np.savez(path, **content)
    else:
        path.write_text(content)
    with pytest.raises(ValueError, match=says):
        open_images(path, strict=False)
