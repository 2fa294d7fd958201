"""Losses through an endpoint without a trial before, so that every request is one that the test expects."""

from dataclasses import replace

from auditor.collectors.base import Classification, ModelScorer, Records, in_batches, losses_of
from auditor.collectors.streaming import predictor


def collected(endpoint, *, members, nonmembers, task=None, repeats=1, batch_size=None):
    """Return the losses of both groups, scored in batches of that size, or of what the endpoint wants."""
    task = task or Classification()
    groups = [
        Records(name, features, task.labels(name, labels))
        for name, (features, labels) in (("member", members), ("nonmember", nonmembers))
    ]
    found = predictor(endpoint, task=task, sample=groups)
    scorer = ModelScorer(found, task=task, repeats=repeats)
    return losses_of(scorer, *in_batches(scorer, groups, size=batch_size), labels={})


def in_order(endpoint, **kwargs):
    """Return the losses of both groups by one request at a time, which arrive in the order of the records."""
    return collected(replace(endpoint, concurrency=1), **kwargs)
