"""Test of the pipeline of ``make demo-pipeline`` with a few days of flights."""

from __future__ import annotations

import lance_dataset


def test_a_few_days_go_through_the_pipeline(spark, tmp_path, capsys):
    from demo.pipeline import Pipeline, draw

    pipeline = Pipeline(spark, tmp_path, days=2, days_per_batch=1, repeats=1)
    pipeline.run()
    draw(pipeline, tmp_path / "picture.png")
    pipeline.timings.show()
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert len(pipeline.upserts) == len(pipeline.rewrites) == 2
    assert pipeline.changes["insert"] == lance_dataset.dataset(pipeline.flights).count_rows() == 1727
    assert pipeline.changes["update_postimage"] > 0
    lance_dataset.dataset(pipeline.flights).validate()
    shown = capsys.readouterr().out
    for word in ("batch 1:", "rows were updated", "nearly repeat another", "each passage finds itself"):
        assert word in shown
