"""The common header of all stored data: damaged, cut, foreign and newer data are rejected in one sentence each."""

import json
import struct

import numpy as np
import pytest
from forged import forged

import powerkern as pk
from powerkern.federated import Client, Server
from powerkern.federated.messages import ProtocolError
from powerkern.joint import JointFit, fit_joint
from powerkern.regression import RegressionFit, fit_regression
from powerkern.sketch import Range, Sketch, range_of, summarize_chunk
from powerkern.sketch.grids import Grid

X = np.random.default_rng(0).lognormal(size=(40, 2))
CLIENT = Client(X, name="a")

TEXTS = {
    "PowerFit": (lambda: pk.fit(X), pk.PowerFit),
    "GroupedFit": (lambda: pk.fit(X, groups=np.arange(40) % 2), pk.GroupedFit),
    "RegressionFit": (lambda: fit_regression(X, np.arange(40.0)), RegressionFit),
    "JointFit": (lambda: fit_joint(X), JointFit),
}
BYTES = {
    "a range": (lambda: range_of(X).to_bytes(), Range.from_bytes),
    "a grid": (lambda: range_of(X).grid().to_bytes(), Grid.from_bytes),
    "a sketch": (lambda: summarize_chunk(X, range_of(X).grid()).to_bytes(), Sketch.from_bytes),
    "a message": (lambda: Server(["a"]).request, CLIENT.answer),
}


def one_sentence(error):
    """Return the message of an error. It must be one line; a prefix "server: " is removed.

    `error` is the ``ExceptionInfo`` of `pytest.raises`.
    """
    text = str(error.value)
    assert "\n" not in text
    return text.removeprefix("server: ")


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_are_read_back(kind):
    write, read = BYTES[kind]
    read(write())


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_cut_anywhere_are_refused(kind):
    write, read = BYTES[kind]
    data = write()
    for n in [*range(40), *range(40, len(data), 97), len(data) - 1]:
        with pytest.raises(ValueError, match="not a") as error:
            read(data[:n])
        assert one_sentence(error).startswith(f"not {kind}: ")
        assert "cut" in str(error.value) or f"{n} bytes" in str(error.value)


@pytest.mark.parametrize("kind", BYTES)
def test_a_changed_bit_is_refused(kind):
    write, read = BYTES[kind]
    data = write()
    for at in range(0, len(data), max(1, len(data) // 150)):
        with pytest.raises(ValueError, match=r"not a|in layout") as error:
            read(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        one_sentence(error)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("version, advice", [(99, "update powerkern"), (0, "write it again"), ("x", "write it again")])
def test_other_versions_of_bytes_are_refused(kind, version, advice):
    write, read = BYTES[kind]
    data = forged(write(), lambda description, _: description.update(version=version))
    with pytest.raises(ValueError, match="in version") as error:
        read(data)
    assert one_sentence(error).startswith(f"{kind} in version {version!r}; this powerkern reads version ")
    assert one_sentence(error).endswith(advice)


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_of_another_format_are_refused(kind):
    read = BYTES[kind][1]
    for other, (write, _) in BYTES.items():
        if other != kind:
            with pytest.raises(ValueError, match=f"not {kind}: its format is 'powerkern"):
                read(write())


def test_a_message_names_its_sender():
    with pytest.raises(ProtocolError, match=r"^server: not a message: these 5 bytes"):
        CLIENT.answer(b"12345")


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_are_refused_likewise(kind, tmp_path):
    make, cls = TEXTS[kind]
    text = make().to_json()
    record = json.loads(text)
    assert cls.from_json(text).to_json() == text
    path = tmp_path / "fit.json"
    for version, advice in ((99, "update powerkern"), (0, "write it again")):
        path.write_text(json.dumps({**record, "version": version}))
        for read in (lambda: pk.load(path), lambda: cls.from_json(path)):
            with pytest.raises(ValueError, match=rf"^a fit in version {version}; .* reads version 1: {advice}$"):
                read()
    for cut in range(1, len(text), max(1, len(text) // 60)):
        path.write_text(text[:cut])
        with pytest.raises(ValueError, match=r"^not a fit: the text is not JSON, or is incomplete"):
            pk.load(path)
    path.write_text(json.dumps({**record, "vector": 1}))
    with pytest.raises(ValueError, match=r"^not a fit: the JSON text was changed after it was written"):
        pk.load(path)
    other = next(each for each in TEXTS if each != kind)
    path.write_text(TEXTS[other][0]().to_json())
    with pytest.raises(ValueError, match=rf"^not a fit: its format is 'powerkern\.{other}', not 'powerkern\.{kind}'$"):
        cls.from_json(path)


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_of_this_release_have_version_1(kind):
    assert json.loads(TEXTS[kind][0]().to_json())["version"] == 1


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_of_this_release_have_layout_1(kind):
    """The header holds the layout, the lengths of text and payload, and 16 bytes of digest. Text and payload follow."""
    data = BYTES[kind][0]()
    magic, layout, n_text, n_payload = struct.unpack_from("<4sHIQ", data)
    assert (magic, layout) == (b"PKRN", 1)
    assert len(data) == struct.calcsize("<4sHIQ") + 16 + n_text + n_payload
