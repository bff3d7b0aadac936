import pytest
import torch


@pytest.fixture
def poisoned():
    """What is not written to is not a number."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.empty(3).isnan().all()
    with torch.no_grad():
        yield
    torch.use_deterministic_algorithms(before)
