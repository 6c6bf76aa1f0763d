"""SQLAlchemy's own suite of tests for dialects, over a database in a new folder. See scripts/test-python."""

import pytest
from sqlalchemy.dialects import registry

for name in ("counterfoil", "counterfoil.counterfoil"):
    registry.register(name, "counterfoil.sqlalchemy", "Dialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
