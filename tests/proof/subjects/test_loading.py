import sys
from pathlib import Path

import pytest

import draftproof
from draftproof.proof.subjects.loading import SubjectNotFound, find_callable, importable_name

FOLDER = Path(__file__).parent


def message(spec):
    with pytest.raises(SubjectNotFound) as refusal:
        find_callable(spec)
    return str(refusal.value)


def test_a_module():
    assert find_callable("draftproof:verify") is draftproof.verify
    assert find_callable("draftproof.verify:verify_greedy") is draftproof.verify_greedy


def test_a_file_and_a_dotted_attribute():
    find = find_callable(f"{FOLDER}/gallery.py:Namespace.right")
    assert find is find_callable(f"{FOLDER}/gallery.py:right")


def test_a_relative_file(monkeypatch):
    monkeypatch.chdir(FOLDER)
    assert find_callable("gallery.py:single").__name__ == "single"


def test_a_file_named_like_a_module_shadows_nothing(tmp_path):
    (tmp_path / "json.py").write_text("def verify(): return 'mine'")
    assert find_callable(f"{tmp_path}/json.py:verify")() == "mine"
    assert find_callable(f"{tmp_path}/json.py:verify") is find_callable(
        f"{tmp_path}/json.py:verify"
    )
    assert sys.modules["json"].__name__ == "json"
    sys.path.remove(str(tmp_path))


def test_a_file_imports_its_neighbours(tmp_path):
    (tmp_path / "neighbour_of_mine.py").write_text("answer = 42")
    (tmp_path / "uses_neighbour.py").write_text(
        "import neighbour_of_mine\ndef verify(): return neighbour_of_mine.answer"
    )
    assert find_callable(f"{tmp_path}/uses_neighbour.py:verify")() == 42
    sys.path.remove(str(tmp_path))


@pytest.mark.parametrize("spec", ["", "draftproof", "draftproof:", ":verify", "mine.py"])
def test_without_two_parts(spec):
    assert "wanted module:attr or path/to/file.py:attr" in message(spec)


def test_no_such_file():
    found = message(f"{FOLDER}/galery.py:right")
    assert "there is no file" in found
    assert found.endswith(f"Did you mean {FOLDER}/gallery.py?")


def test_no_such_module():
    assert message("no_such_module:f") == "subject: there is no module no_such_module."
    assert "there is no module draftproof.nothing" in message("draftproof.nothing:f")
    assert f"Did you mean {FOLDER}/gallery.py:...?" in message(f"{FOLDER}/gallery:right")


def test_no_such_attribute():
    assert "has no attribute 'rigth'. Fix: the closest callable is 'right'" in message(
        f"{FOLDER}/gallery.py:rigth"
    )
    assert "gallery.py.Namespace has no attribute" in message(f"{FOLDER}/gallery.py:Namespace.x")


def test_not_callable():
    assert "gallery.py:number is a int; wanted a callable" in message(f"{FOLDER}/gallery.py:number")


def test_an_import_that_fails_is_told_by_the_subjects_own_frames():
    found = message(f"{FOLDER}/unimportable.py:f")
    assert "JSONDecodeError" in found
    assert found.endswith("(at unimportable.py line 5)")
    assert "loading.py" not in found


def test_a_syntax_error_is_told_by_its_line(tmp_path):
    (tmp_path / "bad.py").write_text("x = 1\ndef (:\n")
    assert "(at bad.py line 2)" in message(f"{tmp_path}/bad.py:f")
    sys.path.remove(str(tmp_path))


def test_a_missing_requirement_is_no_missing_subject(tmp_path):
    (tmp_path / "needs.py").write_text("import no_such_requirement")
    assert "No module named 'no_such_requirement'" in message(f"{tmp_path}/needs.py:f")
    sys.path.remove(str(tmp_path))


def test_the_name_under_which_another_process_finds_a_callable():
    assert importable_name(draftproof.verify) == "draftproof.verify:verify"
    right = find_callable(f"{FOLDER}/gallery.py:right")
    name = importable_name(right)
    assert name is not None
    assert find_callable(name) is right


def test_closures_lambdas_and_partials_have_no_such_name():
    closure = find_callable(f"{FOLDER}/gallery.py:closure")
    assert importable_name(closure()) is None
    assert importable_name(lambda: None) is None
    assert importable_name(max) is None
