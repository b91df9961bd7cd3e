"""Metadata of a dataset as text."""

from lance_dataset.api.debug import (
    diagnose,
    format_fragment,
    format_manifest,
    format_schema,
    list_transactions,
    repair,
)
from lance_dataset.records.diagnosis import Diagnosis, DiagnosisCause, DiagnosisKind, Finding, FindingSubject
from lance_dataset.records.repair import RepairAction, RepairOutcome, RepairReport, RepairStep

__all__ = [
    "Diagnosis",
    "DiagnosisCause",
    "DiagnosisKind",
    "Finding",
    "FindingSubject",
    "RepairAction",
    "RepairOutcome",
    "RepairReport",
    "RepairStep",
    "diagnose",
    "format_fragment",
    "format_manifest",
    "format_schema",
    "list_transactions",
    "repair",
]
