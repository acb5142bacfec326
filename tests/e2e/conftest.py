"""One deployment a module: what its worker is to be started with stands in the module."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.e2e.house import House, open_house


@pytest.fixture(scope="module")
def house(
    request: pytest.FixtureRequest, bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """A running deployment with the module's ``BLOCKS`` (settings) and ``VALUES`` (process)."""
    folder = tmp_path_factory.mktemp("house")
    with open_house(
        bootstrap,
        f"e{uuid.uuid4().hex[:10]}",
        folder,
        blocks=getattr(request.module, "BLOCKS", None),
        values=getattr(request.module, "VALUES", None),
    ) as opened:
        yield opened
