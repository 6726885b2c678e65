"""What is expensive to load, once for all tests."""

from collections.abc import Iterator

import pytest

import legato
from legato.engines.hibari import Hibari
from legato.models.hibari.graphs import Precision
from legato.models.hibari.model import HibariModel


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
