"""onnxruntime is run on the calling thread alone, and holds nothing of a call."""

import threading
from pathlib import Path

import numpy as np

from legato.models.onnx_graph import Graph
from legato.models.session import Session


def _model() -> bytes:
    graph = Graph("test")
    x = graph.input("x", ["n", 3])
    graph.output("twice", graph.op("Add", x, x), ["n", 3])
    graph.output("squared", graph.op("Mul", x, x), ["n", 3])
    return graph.build()


def test_outputs_by_name_or_all() -> None:
    session = Session(_model())
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (squared,) = session.run(["squared"], {"x": x})
    assert np.array_equal(squared, x * x)
    assert [value.tolist() for value in session.run(None, {"x": x})] == [(x + x).tolist(), (x * x).tolist()]


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(_model())
    (twice,) = Session(path).run(["twice"], {"x": np.ones((1, 3), np.float32)})
    assert twice.tolist() == [[2, 2, 2]]


def test_no_pool_of_threads() -> None:
    options = Session(_model())._session.get_session_options()
    assert options.intra_op_num_threads == options.inter_op_num_threads == 1


def test_one_session_may_be_run_from_several_threads() -> None:
    session, wrong = Session(_model()), []

    def work(value: float) -> None:
        x = np.full((50, 3), value, np.float32)
        for _ in range(50):
            (twice,) = session.run(["twice"], {"x": x})
            if not np.array_equal(twice, x + x):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(float(value),)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
