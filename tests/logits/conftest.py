"""What the tests from logits share."""

import pytest


@pytest.fixture(params=["auto", "numpy", "reference"])
def how(request: pytest.FixtureRequest) -> str:
    """A backend."""
    backend: str = request.param
    return backend
