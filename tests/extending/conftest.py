from tests.api.conftest import api

__all__ = ["api"]
