"""Events of datasets, for callbacks and as files for Chrome."""

from lance_dataset.api.tracing import capture_trace_events, trace_to_chrome
from lance_dataset.events import TraceEvent

__all__ = ["TraceEvent", "capture_trace_events", "trace_to_chrome"]
