"""Fixtures: a bucket and a store on the S3 server."""

from __future__ import annotations

import pytest
from support.stores.s3_server import S3Server

from lance_dataset.io.base import ObjectStore
from lance_dataset.io.resolve import resolve


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    return s3_server.new_bucket()


@pytest.fixture
def store(s3_server: S3Server, bucket: str) -> ObjectStore:
    return resolve(f"s3://{bucket}/t", s3_server.options)[0]
