# SPDX-License-Identifier: MIT
"""See the package."""

import numpy as _np

from .. import Tensor


def logsigmoid(x):
    value = -_np.logaddexp(0, -x.numpy())
    # Its derivative is 1 - sigmoid(x) = 1 - exp(value).
    return Tensor(value.astype(x.numpy().dtype), (x,), lambda g: (-g * _np.expm1(value),))
