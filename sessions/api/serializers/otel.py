"""OpenTelemetry exports in JSON, as OTLP defines them. Fields that contextapp does not read are omitted."""

from __future__ import annotations

from rest_framework import serializers


class LogsExport(serializers.Serializer):
    resourceLogs = serializers.ListField(  # noqa: N815  # OTLP defines the names
        child=serializers.DictField(), required=False, help_text="Log records by resource and scope."
    )


class TracesExport(serializers.Serializer):
    resourceSpans = serializers.ListField(  # noqa: N815
        child=serializers.DictField(), required=False, help_text="Spans by resource and scope."
    )


class MetricsExport(serializers.Serializer):
    resourceMetrics = serializers.ListField(  # noqa: N815
        child=serializers.DictField(), required=False, help_text="Metrics by resource and scope."
    )


class PartialSuccess(serializers.Serializer):
    rejectedLogRecords = serializers.CharField(  # noqa: N815
        required=False, help_text="Number of log records that were not stored, as a string."
    )
    rejectedSpans = serializers.CharField(  # noqa: N815
        required=False, help_text="Number of spans that were not stored, as a string."
    )
    errorMessage = serializers.CharField(help_text="Why the records were not stored.")  # noqa: N815


class ExportResult(serializers.Serializer):
    partialSuccess = PartialSuccess(  # noqa: N815
        required=False, help_text="Present only if part of the export was not stored."
    )


class OtlpStatus(serializers.Serializer):
    code = serializers.IntegerField(help_text="A gRPC status code.")
    message = serializers.CharField(help_text="Human-readable error message.")
