"""The protocol: encodings, compression, limits and errors of OTLP over HTTP."""

from __future__ import annotations

import gzip
import json

import pytest
from django.test import Client
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from accounts.models import Project, Scope
from accounts.services.api_keys import api_key_create
from sessions.models import AgentSession, ToolRun, Turn
from tests.telemetry.events import JSON, call, export, figures, pairs, post, protobuf

pytestmark = pytest.mark.django_db

PROTOBUF = "application/x-protobuf"


class TestEncodings:
    @pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
    @pytest.mark.parametrize("type", ["application/json", PROTOBUF])
    def test_all_store_the_same(self, api_key: str, type: str, compressed: bool) -> None:
        body = export(call("req_a"))
        content = protobuf(body) if type == PROTOBUF else body
        response = post(api_key, content, type=type, compressed=compressed)
        assert (response.status_code, response["Content-Type"]) == (200, type)
        assert response.content == (b"" if type == PROTOBUF else b"{}")
        assert figures(Turn.objects.all()) == [(12, 4_000, 300, 57, 5_360)]

    def test_gzip_bodies_of_several_members(self, api_key: str) -> None:
        parts = [gzip.compress(protobuf(export(call(f"req_{name}")))) for name in "ab"]
        headers = {"authorization": f"Bearer {api_key}", "content-encoding": "gzip"}
        response = Client().post("/otel/v1/logs", b"".join(parts), content_type=PROTOBUF, headers=headers)
        assert (response.status_code, Turn.objects.count()) == (200, 2)

    def test_protobuf_responses_can_be_parsed(self, api_key: str) -> None:
        response = post(api_key, protobuf(export(call("req_a"))), type=PROTOBUF)
        assert not ExportLogsServiceResponse.FromString(response.content).HasField("partial_success")

    def test_records_of_other_emitters_are_ignored(self, api_key: str) -> None:
        record = {"body": {"stringValue": "GET /"}, "attributes": []}
        response = post(api_key, export(record, {"attributes": "none"}, resource={"service.name": "shop"}))
        assert (response.status_code, response.content) == (200, b"{}")
        assert not AgentSession.objects.exists()

    @pytest.mark.parametrize("type", ["application/json", PROTOBUF])
    def test_metrics_are_accepted_and_discarded(self, api_key: str, type: str) -> None:
        response = post(api_key, b"anything", signal="metrics", type=type)
        assert response.status_code == 200
        assert not AgentSession.objects.exists()

    @pytest.mark.parametrize("signal", ["logs", "traces", "metrics"])
    def test_an_empty_export_is_accepted(self, api_key: str, signal: str) -> None:
        assert post(api_key, b"", signal=signal, type=PROTOBUF).status_code == 200


class TestPartialSuccess:
    SPAN = {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "name": "chat",
        "startTimeUnixNano": "1795352015231000000",
        "endTimeUnixNano": "1795352016231000000",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "5"}},
            {
                "key": "input.value",
                "value": {"stringValue": '{"messages": [{"role": "wizard", "content": "Hi"}]}'},
            },
        ],
    }

    def test_rejected_spans_are_counted_with_the_reason(self, api_key: str) -> None:
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [self.SPAN]}]}]}
        response = post(api_key, body, signal="traces")
        partial = response.json()["partialSuccess"]
        assert response.status_code == 200
        assert partial["rejectedSpans"] == "1"
        assert "not valid in any format" in partial["errorMessage"]

    def test_in_protobuf(self, api_key: str) -> None:
        span = {name: value for name, value in self.SPAN.items() if name not in ("traceId", "spanId")}
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        response = post(api_key, _protobuf_spans(body), signal="traces", type=PROTOBUF)
        partial = ExportTraceServiceResponse.FromString(response.content).partial_success
        assert (partial.rejected_spans, "not valid in any format" in partial.error_message) == (1, True)


class TestAbsurdValues:
    """An error would make the exporter repeat or drop the valid records of the same export."""

    @pytest.mark.parametrize("type", ["application/json", PROTOBUF])
    def test_ids_that_are_too_long(self, api_key: str, type: str) -> None:
        calls = [pair for pair in TestPartialSuccess.SPAN["attributes"] if pair["key"] != "input.value"]
        run = [{"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}]
        ids = {"traceId": "A" * 3_000, "spanId": "B" * 3_000}
        spans = [TestPartialSuccess.SPAN | ids | {"attributes": given} for given in (calls, run)]
        body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
        if type == PROTOBUF:
            response = post(api_key, _protobuf_spans(body), signal="traces", type=type)
        else:
            response = post(api_key, body, signal="traces")
        assert (response.status_code, Turn.objects.count(), ToolRun.objects.count()) == (200, 1, 1)

    def test_integers_of_more_than_64_bits(self, api_key: str) -> None:
        part = {"type": "text", "content": 0}
        message = {"role": "assistant", "parts": [part]}
        given = {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.input.messages": [message],
            "gen_ai.output.messages": [message],
        }
        span = TestPartialSuccess.SPAN | {"attributes": pairs(given)}
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
        content = body.replace('{"intValue": "0"}', '{"intValue": "%s"}' % ("9" * 30))
        assert post(api_key, content.encode(), signal="traces").status_code == 200
        assert figures(Turn.objects.all()) == [(5, 0, 0, 0, None)]

    def test_a_sequence_number_that_is_too_long(self, api_key: str) -> None:
        response = post(api_key, export(call("", **{"event.sequence": "1" * 3_000}), call("req_a", 1)))
        assert (response.status_code, Turn.objects.count()) == (200, 2)

    @pytest.mark.parametrize("depth", [300, 1_000])
    @pytest.mark.parametrize("name", ["input.value", "gen_ai.input.messages", "gen_ai.tool.definitions"])
    def test_json_that_is_nested_too_deep(self, api_key: str, name: str, depth: int) -> None:
        deep = "[" * depth + "]" * depth
        contents = {
            "input.value": '{"messages": [{"role": "user", "content": [%s]}]}',
            "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": %s}]}]',
            "gen_ai.tool.definitions": '[{"name": "Bash", "input_schema": {"default": %s}}]',
        }
        given = {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]',
            name: contents[name] % deep,
        }
        span = TestPartialSuccess.SPAN | {"attributes": pairs(given)}
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        assert post(api_key, body, signal="traces").status_code == 200
        assert figures(Turn.objects.all()) == [(5, 0, 0, 0, None)]


def _protobuf_spans(body: JSON) -> bytes:
    return json_format.ParseDict(body, ExportTraceServiceRequest()).SerializeToString()


def field(number: int, content: bytes) -> bytes:
    """Return a field of a protobuf message that contains bytes or another message."""
    length, size = bytearray(), len(content)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + content


class TestErrors:
    def test_without_a_valid_key(self) -> None:
        response = post("", export())
        assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
        assert response.json()["code"] == 16
        assert "API key" in response.json()["message"]

    def test_a_key_without_push_rights(self, project: Project) -> None:
        key = api_key_create(project=project, name="reader", scopes=[Scope.READ])[1]
        response = post(key, export(call("req_a")))
        assert (response.status_code, response.json()["code"]) == (403, 7)
        assert "`push`" in response.json()["message"]

    def test_in_protobuf_an_error_is_a_protobuf_status(self, api_key: str) -> None:
        response = post(api_key, b"\xff\xff\xff", type=PROTOBUF)
        assert (response.status_code, response["Content-Type"]) == (400, PROTOBUF)
        assert response.content[:3] == b"\x08\x03\x12"  # code: INVALID_ARGUMENT, then the message
        assert b"ExportLogsServiceRequest" in response.content

    @pytest.mark.parametrize("body", [b"{", b"[]", b'{"resourceLogs": 1}', b"\xff"])
    def test_json_that_is_no_export(self, api_key: str, body: bytes) -> None:
        response = post(api_key, body)
        assert (response.status_code, response.json()["code"]) == (400, 3)

    def test_another_media_type(self, api_key: str) -> None:
        response = post(api_key, b"x", type="text/plain")
        assert response.status_code == 415
        assert "http/protobuf" in response.json()["message"]

    def test_another_compression(self, api_key: str) -> None:
        headers = {"authorization": f"Bearer {api_key}", "content-encoding": "br"}
        response = Client().post("/otel/v1/logs", b"x", content_type="application/json", headers=headers)
        assert response.status_code == 415

    def test_a_truncated_gzip_body(self, api_key: str) -> None:
        headers = {"authorization": f"Bearer {api_key}", "content-encoding": "gzip"}
        body = gzip.compress(b'{"resourceLogs": []}' * 100)[:-9]
        response = Client().post("/otel/v1/logs", body, content_type="application/json", headers=headers)
        assert response.status_code == 400

    def test_a_body_that_inflates_beyond_the_limit(self, api_key: str, settings) -> None:
        settings.CONTEXTAPP_MAX_BODY_BYTES = 10_000
        response = post(api_key, b" " * 40_001, compressed=True)
        assert response.status_code == 413
        assert "40,000 bytes" in response.json()["message"]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("type", "body"),
        [
            ("application/json", b'{"resourceSpans":[%b{}]}' % (b"{}," * 2_500_000)),
            (PROTOBUF, field(1, field(2, b"\x12\x00" * 2_500_000))),
            (PROTOBUF, field(1, field(2, field(2, b"\x4a\x00" * 2_500_000)))),
            (PROTOBUF, field(1, field(2, b"\x12\x00" * 2_500_000 + b"\x12\xff"))),
        ],
        ids=["json", "spans", "attributes", "truncated"],
    )
    def test_a_small_body_that_takes_much_memory(self, api_key: str, type: str, body: bytes) -> None:
        response = post(api_key, body, signal="traces", type=type, compressed=True)
        assert response.status_code == 413
        assert b"send smaller batches" in response.content

    @pytest.mark.slow
    @pytest.mark.parametrize("type", ["application/json", PROTOBUF])
    def test_an_export_of_too_many_records(self, api_key: str, type: str) -> None:
        json_body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b{}]}]}]}' % (b"{}," * 100_000)
        body = json_body if type == "application/json" else field(1, field(2, b"\x12\x00" * 100_001))
        response = post(api_key, body, signal="traces", type=type)
        assert response.status_code == 413
        assert b"100,000 records" in response.content

    @pytest.mark.slow
    def test_a_large_protobuf_export_is_accepted(self, api_key: str) -> None:
        """All kinds of fields are counted correctly: unknown ones, groups, numbers and long strings."""
        unknown = b"\xa3\x06\xa4\x06" + b"\xa8\x06\x01" + b"\xad\x06" + bytes(4) + b"\xa1\x06" + bytes(8)
        body = field(1, field(2, field(2, unknown + field(5, b"\x12\x00" * 2_500_000))))
        assert post(api_key, body, signal="traces", type=PROTOBUF).status_code == 200

    def test_other_methods(self, api_key: str) -> None:
        response = Client().get("/otel/v1/logs", headers={"authorization": f"Bearer {api_key}"})
        assert (response.status_code, response["Allow"]) == (405, "POST")
