"""Powers that are loaded as they were saved."""

import numpy as np
import pytest
from registry import cloud

from heatsketch import HeatSketch, load

X = cloud(60)


@pytest.mark.parametrize("power", [1, 2.0, np.float32(2), np.float64(8)])
def test_any_power_that_can_be_fitted_can_be_loaded(power, tmp_path):
    model = HeatSketch(4, power=power, weights=2.0, n_neighbors=None).fit(X)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.power == model.sketch_.first_power == power
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
