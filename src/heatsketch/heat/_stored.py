"""Heat graphs and sketches from the parts of a file."""

from __future__ import annotations

from heatsketch.diffusion._all_times import LARGEST_POWER, Times
from heatsketch.diffusion._heat_trace import HeatTrace
from heatsketch.engines import LocalEngine
from heatsketch.heat._graph import HeatGraph
from heatsketch.heat._rules import NodeRule, PointRule
from heatsketch.heat._sketch import Settings, Sketch
from heatsketch.persistence._parts import FLOATS, INTEGERS, Part
from heatsketch.persistence._values import read_neighbors, read_operator, read_scaling


def read_graph(part: Part) -> HeatGraph:
    """Return a graph, stored in the memory of this machine."""
    stationary = part["operator"].array("stationary", FLOATS, (None,))
    n, dtype = len(stationary), stationary.dtype.name
    rule = _rule(part["rule"], n, dtype)
    n_parts = part.count("n_connected_components", most=n)
    labels = part.indices("labels", ("int32",), (n,), n_parts) if part.has("labels") else None
    part.check((labels is None) == (n_parts == 1), "labels")
    return HeatGraph(
        operator=read_operator(part["operator"], rule),
        scaling=read_scaling(part["scaling"], n),
        settings=part.plain_dict("settings"),
        rule=rule,
        order=part.permutation("order", n),
        row_numbers=part.array("row_numbers", INTEGERS, (n,)),
        labels=labels,
        n_connected_components=n_parts,
        engine=LocalEngine(),
        names=part.names("names", n) if part.has("names") else None,
    )


def _rule(part: Part, n: int, dtype: str) -> PointRule | NodeRule:
    if "nodes" in part.tree:
        n_features = part.count("n_features", n, n)
        prints = None
        if part.has("fingerprints"):
            prints = part.array("fingerprints", ("float64",), (n,), finite=False)
        return NodeRule(n_features, part.names("nodes", n) if part.has("nodes") else None, prints)
    neighbors = read_neighbors(part["neighbors"], n, dtype)
    bandwidth = part.plain("bandwidth", float)
    scales = part.array("scales", FLOATS, (n,)) if part.has("scales") else None
    is_positive = bandwidth > 0 and (scales is None or (scales > 0).all())
    part.check(is_positive, "bandwidth", "must be positive")
    return PointRule(neighbors, scales, bandwidth)


def read_sketch(part: Part) -> Sketch:
    """Return a sketch, with its graph if it was saved."""
    embedding = part.array("embedding", FLOATS, (None, None))
    (n, k), dtypes = embedding.shape, (embedding.dtype.name,)
    names = part.names("names", n) if part.has("names") else None
    numbers = None if names is None else part.array("given_numbers", INTEGERS, (n,))
    settings = Settings(**part.plain_dict("settings"))
    is_split = isinstance(settings.n_leading, int) and 0 <= settings.n_leading <= max(k - 2, 0)
    part.check(is_split, "settings", "must have n_leading <= n_components - 2")
    times = _times(part["times"]) if part.has("times") else None
    part.check((times is None) == (settings.power != "all"), "times")
    graph = before_last = coefficients = offsets = None
    if part.has("graph"):
        graph = read_graph(part["graph"])
        part.check(graph.n_samples == n and graph.dtype == embedding.dtype, "graph")
        before_last = part.array("before_last", dtypes, (n, k))
        coefficients = None if times is not None else part.array("coefficients", FLOATS, (k,))
        if part.has("offsets"):
            offsets = part.array("offsets", FLOATS, (graph.n_connected_components, k))
    return Sketch(
        embedding=embedding,
        graph=graph,
        graph_settings=part.plain_dict("graph_settings"),
        settings=settings,
        times=times,
        before_last=before_last,
        coefficients=coefficients,
        offsets=offsets,
        names=names,
        given_numbers=numbers,
    )


def _times(part: Part) -> Times:
    trace = part["heat_trace"]
    powers = trace.array("powers", INTEGERS, (None,))
    trace.check((powers > 0).all(), "powers")
    curves = [
        trace.array(name, FLOATS, powers.shape, finite=False)
        for name in ("trace", "error", "directions")
    ]
    interval = part.array("interval", ("float64",), (2,))
    part.check(-1 <= interval[0] < interval[1] <= 1, "interval")
    return Times(
        first_power=part.count("first_power", most=2 * LARGEST_POWER),
        n_components=part.count("n_components"),
        heat_trace=HeatTrace(powers, *curves),
        interval=interval,
        n_products=part.count("n_products"),
    )
