"""The model of costs: what it foretells whatever the machine, and what it sees of a real run."""

import numpy as np
import pytest

from heatsketch.cli._cluster_cost import (
    STAGES,
    Calibration,
    Job,
    StageWatch,
    bent_surface,
    calibrate,
    forecast,
    halo_law,
    halo_rows,
)
from heatsketch.graph._neighbors import find_neighbors

EACH = dict.fromkeys(STAGES, 1e-6)
KNOWN = Calibration(EACH, EACH, n_threads=2, halo=(4.0, 0.75), neighbor_blocks=8.0)
BILLION = Job(10**9, 128, n_workers=64, n_threads=8)


@pytest.mark.parametrize("n_workers", [2, 64, 640])
def test_time_is_shared_by_workers_and_points_pay_for_themselves(monkeypatch, n_workers):
    free = Job(10**8, 16, n_workers=n_workers, network=float("inf"))
    monkeypatch.setattr("heatsketch.cli._cluster_cost.TASK", 0.0)
    each = KNOWN._replace(fixed=dict.fromkeys(STAGES, 0.0))
    wanted = len(STAGES) * 1e-6 * 10**8 * 2 / n_workers
    assert forecast(free, each).seconds == pytest.approx(wanted)
    twice = free._replace(n_points=2 * free.n_points)
    assert forecast(twice, each).seconds == pytest.approx(2 * wanted)


def test_twice_the_workers_take_half_the_memory_of_the_graph_and_the_same_for_chunks():
    few, many = (forecast(BILLION._replace(n_workers=n), KNOWN) for n in (64, 128))
    stages = {
        stage.stage: (stage.bytes_per_worker, other.bytes_per_worker)
        for stage, other in zip(few.stages, many.stages, strict=True)
    }
    assert stages["reading"][0] == stages["reading"][1]
    for stage in ("search", "symmetrising", "normalization"):
        assert 1.8 < stages[stage][0] / stages[stage][1] <= 2


def test_no_stage_of_a_billion_points_needs_all_of_them_in_one_worker():
    everything = BILLION.points
    for stage in forecast(BILLION, KNOWN).stages:
        assert stage.bytes_per_worker < everything / 10, stage


def test_one_worker_sends_nothing():
    assert forecast(Job(10**6, 16, n_workers=1), KNOWN).bytes_per_step == 0


def test_halos_of_a_real_graph_are_predicted_from_one_of_a_third_of_its_size():
    few, many = (
        find_neighbors(bent_surface(n, 16, "f4"), n_neighbors=8, n_probes=6)[1]
        for n in (20_000, 60_000)
    )
    law, _ = halo_law(few)
    predicted = halo_rows(Job(60_000, 16, n_workers=6), KNOWN._replace(halo=law))
    halos = []
    for start in range(10_000, 50_000, 10_000):
        found = np.unique(many[start : start + 10_000].indices)
        halos.append(np.sum((found < start) | (found >= start + 10_000)))
    assert predicted == pytest.approx(np.mean(halos), rel=0.3)


def test_a_watch_hears_stages_in_their_order_and_none_twice():
    watch = StageWatch()
    for name in ("lists", "partition", "lists", "search", "power 1 of 8", "normalization"):
        watch(name, 3)()
    assert list(watch.begun) == ["reading", "lists", "partition", "search", "products"]
    seconds = watch.seconds()
    assert list(seconds) == list(STAGES)
    assert seconds["output"] == 0
    assert min(seconds.values()) >= 0


@pytest.mark.nightly
def test_a_short_run_on_this_machine_knows_all_stages():
    job = Job(10**7, 4, 8, power=2, n_neighbors=6)
    found = calibrate(job, sizes=(17_000, 34_000))
    assert set(found.fixed) == set(found.per_point) == set(STAGES)
    assert any(found.per_point.values())  # no stage for sure: others work here, too
    assert found.halo[0] > 0
    there = forecast(job, found)
    assert there.seconds > 0
    assert there.bottleneck in there.stages
    assert there.tasks == sum(stage.tasks for stage in there.stages)
