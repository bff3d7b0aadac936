import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def labels():
    return load_digits().target
