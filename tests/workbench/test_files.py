import pickle

import pytest
import torch

from workbench.settings.files import (
    FileError,
    count_numbers,
    read_tensors,
    write_tensors,
    write_text,
)

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor(1, dtype=torch.int64)}


class Marker:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_tensors_come_back_as_they_were(tmp_path):
    write_tensors(tmp_path / "x.safetensors", TENSORS)
    back = read_tensors(tmp_path / "x.safetensors")
    assert back.keys() == TENSORS.keys()
    assert all(torch.equal(back[name], TENSORS[name]) for name in TENSORS)
    assert back["b"].dtype == torch.int64


def test_a_view_is_written_as_what_it_shows(tmp_path):
    write_tensors(tmp_path / "x.safetensors", {"t": TENSORS["a"].T})
    assert torch.equal(read_tensors(tmp_path / "x.safetensors")["t"], TENSORS["a"].T)


def test_nothing_unfinished_stays_behind(tmp_path):
    write_tensors(tmp_path / "x.safetensors", TENSORS)
    write_text(tmp_path / "x.txt", "Φ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.safetensors", "x.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)
    with pytest.raises(Exception, match="meta"):
        write_tensors(path, {"a": torch.empty(2, device="meta")})
    assert torch.equal(read_tensors(path)["a"], TENSORS["a"])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"x\.safetensors does not exist"):
        read_tensors(tmp_path / "x.safetensors")


@pytest.mark.parametrize("size", [0, 4, 40, -1])
def test_a_truncated_file_is_named(tmp_path, size):
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(FileError, match=r"x\.safetensors is truncated or no safetensors file"):
        read_tensors(path)


def test_a_pickle_under_another_name_is_refused_and_not_run(tmp_path):
    path, marker = tmp_path / "x.safetensors", tmp_path / "marker"
    path.write_bytes(pickle.dumps(Marker(marker)))
    with pytest.raises(FileError, match="is truncated or no safetensors file"):
        read_tensors(path)
    assert not marker.exists()


def test_a_torch_file_under_another_name_is_refused_and_not_run(tmp_path):
    path, marker = tmp_path / "x.safetensors", tmp_path / "marker"
    torch.save({"a": Marker(marker)}, path)
    with pytest.raises(FileError, match="is truncated or no safetensors file"):
        read_tensors(path)
    assert not marker.exists()


@pytest.mark.parametrize(("write", "what"), [(write_text, "x"), (write_tensors, TENSORS)])
def test_where_nothing_can_be_written_the_file_is_named_and_nothing_left(tmp_path, write, what):
    with pytest.raises(FileError, match="nowhere/x cannot be written"):
        write(tmp_path / "nowhere" / "x", what)
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="folder is a folder; name a file"):
        write(tmp_path / "folder", what)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_numbers_are_counted_by_the_head_of_a_file(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)
    assert count_numbers(path) == 7
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileError, match="is truncated or no safetensors file"):
        count_numbers(path)
