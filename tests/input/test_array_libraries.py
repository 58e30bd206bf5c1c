"""Arrays of PyTorch, JAX, and libraries that follow the array API standard or export DLPack."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import powerkern as pk
from powerkern.stats import boxcox

X = np.random.default_rng(32).lognormal(size=(60, 2))
SINGLE = X.astype(np.float32)
EXPECTED = pk.fit(X).transform(X)


class Namespace:
    """A stand-in for an array library, without `__array__`."""

    @staticmethod
    def asarray(values, device=None):
        return Array(np.array(values))


class Array:
    """An array of the stand-in library."""

    device = "cpu"

    def __init__(self, values):
        self.values = values

    def __array_namespace__(self, api_version=None):
        return Namespace

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OnGpu(Array):
    """An array in the memory of a device."""

    def __dlpack__(self, **options):
        raise AssertionError("the memory was read")

    def __dlpack_device__(self):
        return 2, 1


def arrays_of_torch():
    torch = pytest.importorskip("torch")
    return torch.from_numpy, lambda x: x.numpy(), torch.Tensor


def arrays_of_jax():
    jax = pytest.importorskip("jax")
    return jax.numpy.asarray, np.asarray, jax.Array


def arrays_of_strict():
    strict = pytest.importorskip("array_api_strict")
    return strict.asarray, np.from_dlpack, type(strict.asarray(1.0))


def own_arrays():
    return Array, lambda x: x.values, Array


LIBRARIES = {"torch": arrays_of_torch, "jax": arrays_of_jax, "strict": arrays_of_strict, "of this test": own_arrays}
libraries = pytest.mark.parametrize("library", LIBRARIES)


@libraries
def test_results_are_arrays_of_the_same_library(library):
    make, read, kind = LIBRARIES[library]()
    given = make(SINGLE)
    fit = pk.fit(given)
    assert_array_equal(fit.lmbda, pk.fit(SINGLE).lmbda)
    out = fit.transform(given)
    assert isinstance(out, kind)
    assert_array_equal(read(out), pk.fit(SINGLE).transform(SINGLE))
    back = fit.inverse_transform(out)
    assert isinstance(back, kind)
    assert np.allclose(read(back), SINGLE, rtol=1e-5)
    column = make(SINGLE[:, 0].copy())
    one = pk.fit(column).transform(column)
    assert isinstance(one, kind)
    assert one.shape == (60,) if kind is not Array else one.values.shape == (60,)


@libraries
def test_arrays_in_double_precision_keep_their_bits(library):
    if library == "jax":
        pytest.skip("JAX has single precision unless it is told otherwise")
    make, read, _ = LIBRARIES[library]()
    assert_array_equal(read(pk.fit(make(X)).transform(make(X))), EXPECTED)
    assert_array_equal(read(boxcox(make(X), lmbda=0.5)), boxcox(X, lmbda=0.5))


@libraries
def test_weights_and_groups_may_be_such_arrays(library):
    make, read, kind = LIBRARIES[library]()
    weight, groups = np.arange(60.0, dtype=np.float32), np.arange(60) % 3
    assert_array_equal(pk.fit(X, sample_weight=make(weight)).lmbda, pk.fit(X, sample_weight=weight).lmbda)
    grouped = pk.fit(make(SINGLE), groups=groups)
    out = grouped.transform(make(SINGLE), groups)
    assert isinstance(out, kind)
    assert_array_equal(read(out), pk.fit(SINGLE, groups=groups).transform(SINGLE, groups))


def test_an_array_on_a_gpu_is_refused_with_what_to_call():
    message = (
        r"^X is on the device CUDA:1, but powerkern computes on the CPU; pass a copy in CPU memory, such as X\.cpu\(\)"
    )
    with pytest.raises(TypeError, match=message):
        pk.fit(OnGpu(X))
    with pytest.raises(TypeError, match=message):
        pk.fit(X).transform(OnGpu(X))
    with pytest.raises(TypeError, match=r"^sample_weight is on the device CUDA:1"):
        pk.fit(X, sample_weight=OnGpu(X[:, 0]))


def test_tensors_that_pytorch_does_not_export():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"^X cannot be read as an array of NumPy: .*detach"):
        pk.fit(torch.from_numpy(X).requires_grad_())
    with pytest.raises(TypeError, match=r"^X .*(BFloat16|bfloat16)"):
        pk.fit(torch.from_numpy(X).to(torch.bfloat16))


@pytest.mark.parametrize("dtype", ["int16", "int64", "bool", "float16", "uint8"])
def test_integers_booleans_and_half_precision_are_read(dtype):
    values = (X * 10).astype(dtype) if dtype != "bool" else X > 1.0
    assert_array_equal(pk.fit(Array(values)).lmbda, pk.fit(values).lmbda)
    torch = pytest.importorskip("torch")
    assert_array_equal(pk.fit(torch.from_numpy(values)).lmbda, pk.fit(values).lmbda)


def test_complex_tensors_are_refused():
    with pytest.raises(TypeError, match=r"^X is complex"):
        pk.fit(Array(X.astype(complex)))
