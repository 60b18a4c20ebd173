"""Write the golden file of this format, which later versions must read: run once for each format.

``python tests/persistence/make_golden.py``, after FORMAT_VERSION has been raised. Old ones stay.
"""

import json
from pathlib import Path

from registry import cloud

from heatsketch import HeatSketch
from heatsketch.engines import _local
from heatsketch.persistence._container import FORMAT_VERSION

GOLDEN = Path(__file__).parent / "golden"


def main():
    _local.EXACT_COMPARISONS = 0  # so that there are lists, which few points would not have
    model = HeatSketch(4, n_neighbors=5, epsilon="auto").fit(cloud(200, 2))
    new = cloud(5, 2, seed=1)
    model.save(GOLDEN / f"format_{FORMAT_VERSION}.heatsketch")
    wanted = {
        "new": new.tolist(),
        "transform": model.transform(new).tolist(),
        "embedding": model.embedding_[:5].tolist(),
    }
    (GOLDEN / f"format_{FORMAT_VERSION}.json").write_text(json.dumps(wanted, indent=1) + "\n")


if __name__ == "__main__":
    main()
