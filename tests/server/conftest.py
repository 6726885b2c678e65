"""One server with the real voice for all tests, and one with an engine that fails on purpose for each that asks."""

from collections.abc import Iterator

import httpx
import pytest

from legato.runtime.registry import loader
from tests.server.live import WAIT, FaultyEngine, Live, serve


@pytest.fixture(scope="session")
def live() -> Iterator[Live]:
    with serve(loader()) as running:
        yield running


@pytest.fixture
def client(live: Live) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=live.url, timeout=WAIT) as opened:
        yield opened


@pytest.fixture
def faulty() -> FaultyEngine:
    return FaultyEngine()


@pytest.fixture
def broken(faulty: FaultyEngine) -> Iterator[Live]:
    with serve(faulty.load) as running:
        yield running
