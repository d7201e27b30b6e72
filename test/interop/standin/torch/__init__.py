# SPDX-License-Identifier: MIT
"""The handful of torch that a custom loss needs, on numpy.

torch itself is several gigabytes and would be there for four functions. This
is no part of what is tested: the client is used as it is and finds this in
its place. Tensors know their gradient by reverse mode over +, -, *, / and sum,
and over stack and logsigmoid.
"""

import numpy as _np

from . import nn  # noqa: F401


class dtype:
    def __init__(self, numpy, is_floating_point):
        self.numpy = _np.dtype(numpy)
        self.is_floating_point = is_floating_point


float32 = dtype("float32", True)
float64 = dtype("float64", True)
int64 = dtype("int64", False)
bool = dtype("bool", False)
bfloat16 = dtype("void", True)
_DTYPES = {d.numpy: d for d in (float32, float64, int64, bool)}


def _unbroadcast(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient.sum(axis=0)
    for axis, n in enumerate(shape):
        if n == 1 and gradient.shape[axis] != 1:
            gradient = gradient.sum(axis=axis, keepdims=True)
    return gradient


class Tensor:
    def __init__(self, array, parents=(), back=None):
        self._array = _np.asarray(array)
        self._parents = parents
        self._back = back
        self.requires_grad = any(p.requires_grad for p in parents)
        self.grad = None

    shape = property(lambda self: self._array.shape)
    ndim = property(lambda self: self._array.ndim)
    dtype = property(lambda self: _DTYPES[self._array.dtype])

    def numpy(self):
        return self._array

    def tolist(self):
        return self._array.tolist()

    def item(self):
        return self._array.item()

    def contiguous(self):
        return Tensor(_np.ascontiguousarray(self._array))

    def cpu(self):
        return self

    def clone(self):
        return Tensor(self._array.copy(), (self,), lambda g: (g,))

    def detach(self):
        return Tensor(self._array)

    def requires_grad_(self, on=True):
        self.requires_grad = on
        return self

    def reshape(self, *shape):
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return Tensor(self._array.reshape(shape), (self,), lambda g: (g.reshape(self.shape),))

    def float(self):
        return Tensor(self._array.astype(_np.float32), (self,), lambda g: (g,))

    def to(self, kind):
        return Tensor(self._array.astype(kind.numpy), (self,), lambda g: (g,))

    def flatten(self):
        return self.reshape(-1)

    def sum(self):
        return Tensor(self._array.sum(), (self,), lambda g: (_np.broadcast_to(g, self.shape),))

    def dot(self, other):
        return (self * other).sum()

    def __getitem__(self, at):
        """Of what needs no gradient."""
        return Tensor(self._array[at._array if isinstance(at, Tensor) else at])

    def __gt__(self, other):
        return Tensor(self._array > (other._array if isinstance(other, Tensor) else other))

    def __float__(self):
        return float(self._array)

    def mean(self):
        return self.sum() * (1.0 / max(1, self._array.size))

    def _with(self, other, value, back):
        other = other if isinstance(other, Tensor) else Tensor(_np.asarray(other, self._array.dtype))
        return Tensor(
            value(self._array, other._array), (self, other),
            lambda g: tuple(
                _unbroadcast(part, t.shape)
                for part, t in zip(back(g, self._array, other._array), (self, other))
            ),
        )

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b, lambda g, a, b: (g, g))

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b, lambda g, a, b: (g, -g))

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b, lambda g, a, b: (g * b, g * a))

    def __truediv__(self, other):
        return self._with(other, lambda a, b: a / b, lambda g, a, b: (g / b, -g * a / (b * b)))

    def __neg__(self):
        return self * -1.0

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other):
        return -self + other

    def __len__(self):
        return len(self._array)

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if id(node) not in seen:
                seen.add(id(node))
                for parent in node._parents:
                    visit(parent)
                order.append(node)

        visit(self)
        gradients = {id(self): _np.ones_like(self._array)}
        for node in reversed(order):
            gradient = gradients.get(id(node))
            if gradient is None or not node.requires_grad:
                continue
            if not node._parents:
                node.grad = Tensor(gradient if node.grad is None else gradient + node.grad._array)
                continue
            for parent, part in zip(node._parents, node._back(gradient)):
                before = gradients.get(id(parent))
                gradients[id(parent)] = part if before is None else before + part


class Generator:
    """For type checks of other packages; none is ever made."""


def tensor(data, dtype=None):
    array = _np.asarray(data)
    if dtype is not None:
        array = array.astype(dtype.numpy)
    elif array.dtype == _np.float64 and not isinstance(data, _np.ndarray):
        array = array.astype(_np.float32)
    return Tensor(array)


def stack(tensors):
    return Tensor(_np.stack([t._array for t in tensors]), tuple(tensors), tuple)


def cat(tensors):
    """Of what needs no gradient."""
    return Tensor(_np.concatenate([t._array for t in tensors]))


def zeros(n):
    return Tensor(_np.zeros(n, _np.float32))


def dot(a, b):
    return a.dot(b)


def from_numpy(array):
    return Tensor(array)


def is_tensor(value):
    return isinstance(value, Tensor)
