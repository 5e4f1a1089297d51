from __future__ import annotations

import pytest

pytestmark = pytest.mark.real


def test_nginx(nginx): print(nginx)
def test_litellm(litellm): print(litellm)
def test_litellmp(litellm_plain): print(litellm_plain)
