"""The paper's five algorithms, transcribed line by line in plain numpy, errata fixed.

Written from the paper, not from the package: no function of heatsketch is used here.
"""

import numpy as np


def algorithm_1(X, epsilon):
    """Symmetric normalized affinity matrix (E12: x_i, not x_1)."""
    K = kernel(X, epsilon)
    q = K.sum(axis=1)
    K = np.diag(1 / q) @ K @ np.diag(1 / q)
    v = K.sum(axis=1)
    return np.diag(1 / np.sqrt(v)) @ K @ np.diag(1 / np.sqrt(v))


def algorithm_2(X, epsilon, delta=1e-13):
    """Bistochastic normalized affinity matrix (E1: d_{i+1} and d_{i+2}; E2: d_0 is a vector)."""
    K = kernel(X, epsilon)
    d = [np.ones(len(X))]
    d.append(K @ (1 / d[0]))
    d.append(K @ (1 / d[1]))
    i = 0
    while np.max(np.abs(d[i + 2] / d[i] - 1)) > delta:
        i += 1
        d.append(K @ (1 / d[i + 1]))
    last = np.sqrt(d[i + 1] * d[i + 2])
    return np.diag(1 / last) @ K @ np.diag(1 / last)


def algorithm_3(A, k, t):
    """Diffusion maps."""
    values, vectors = np.linalg.eigh(A)
    values, vectors = values[::-1], vectors[:, ::-1]
    return vectors[:, 1 : k + 1] * values[1 : k + 1] ** t


def algorithm_4_and_5(A, G, p):
    """Gaussian process embedding, with Gaussian or symmetric Bernoulli G."""
    Y = G
    for _ in range(p):
        Y = A @ Y
    return Y / np.sqrt(G.shape[1])


def kernel(X, epsilon):
    return np.exp(-squares(X) / epsilon)


def squares(X):
    return ((X[:, np.newaxis] - X) ** 2).sum(axis=2)


def diffusion_distance(A, p):
    return euclidean_distance(np.linalg.matrix_power(A, p))


def euclidean_distance(X):
    return np.array([np.sqrt(((X - x) ** 2).sum(axis=1)) for x in X])


def log_L(Y, distance):  # noqa: N802 - the paper's letter
    pairs = np.triu_indices(len(Y), 1)
    dilation = euclidean_distance(Y)[pairs] / distance[pairs]
    return np.log(dilation.max() / dilation.min())
