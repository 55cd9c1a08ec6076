"""How long things took: requests to the API, and what is done to documents.

In: a call for each, which touches no database. Out: rows, written a batch at a time; sums by job.
Owns the schema `measure`: operation, request, job_time, operation_day, request_day.
"""

from trapline.measure.recorder import Recorder
from trapline.measure.rows import ApiRequest, Operation

__all__ = ["ApiRequest", "Operation", "Recorder"]
