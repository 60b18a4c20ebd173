"""Rows for the table of bad inputs: files that cannot be written, read or understood."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from bad_inputs import CLOUD, rejected

from heatsketch import HeatSketch, load
from heatsketch.exceptions import (
    FileError,
    FileFormatError,
    ModelVersionError,
    NotStorableError,
    OutputError,
    OutputExistsError,
    TrainingDataError,
)
from heatsketch.persistence import _container as model_file


def own_metric(x, y):
    return float(abs(x - y).sum())


def save(name, *, twice=False, **parameters):
    with TemporaryDirectory() as folder:
        model = HeatSketch(2, **parameters).fit(CLOUD)
        model.save(Path(folder, name))
        if twice:
            model.save(Path(folder, name))


def load_text(text):
    with TemporaryDirectory() as folder:
        Path(folder, "model").write_bytes(text)
        load(Path(folder, "model"))


def load_of_later():
    with TemporaryDirectory() as folder:
        later = {"FORMAT_VERSION": 99, "OLDEST_READER": 98}
        with mock.patch.multiple(model_file, **later):
            HeatSketch(2).fit(CLOUD).save(Path(folder, "model"))
        load(Path(folder, "model"))


def transform_without_points():
    with TemporaryDirectory() as folder:
        HeatSketch(2).fit(CLOUD).save(Path(folder, "model"), training_data=False)
        load(Path(folder, "model")).transform(CLOUD)


rejected(
    "a folder that is not there",
    partial(save, "no/model"),
    OutputError,
    ("cannot write", "no/model", "make the folder first"),
)
rejected(
    "a model that is not there",
    partial(load, "no/model"),
    FileError,
    ("cannot read", "no/model", "check the spelling"),
)
rejected(
    "a file that is there",
    partial(save, "model", twice=True),
    OutputExistsError,
    ("model", "exists already", "pass overwrite=True"),
)
rejected(
    "a file that is no model",
    partial(load_text, b"a,b\n1,2\n"),
    FileFormatError,
    ("model", "is not a model file", "check the path"),
)
rejected(
    "a model of a later version",
    load_of_later,
    ModelVersionError,
    ("model", "has format 99", "pip install --upgrade"),
)
rejected(
    "a model with a metric of the user's own",
    partial(save, "model", metric=own_metric),
    NotStorableError,
    ("^metric=", "own_metric", "fit with a name"),
)
rejected(
    "a model without its training data",
    transform_without_points,
    TrainingDataError,
    ("^transform", "without which this model was saved", "or fit again"),
)
