"""Metadata of a dataset as text."""

from lance_dataset.api.debug import diagnose, format_fragment, format_manifest, format_schema, list_transactions
from lance_dataset.records.diagnosis import Diagnosis, DiagnosisCause, DiagnosisKind, Finding, FindingSubject

__all__ = [
    "Diagnosis",
    "DiagnosisCause",
    "DiagnosisKind",
    "Finding",
    "FindingSubject",
    "diagnose",
    "format_fragment",
    "format_manifest",
    "format_schema",
    "list_transactions",
]
