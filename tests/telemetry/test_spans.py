"""Spans of model calls: real instrumentations against a fake provider, and the conventions that they use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from django.utils.module_loading import import_string
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from accounts.models import Project
from sessions.models import AgentSession, ToolRun, Turn
from sessions.selectors.convert import message_body
from tests.gateway.anthropic_talk import text, tool_use, whole
from tests.gateway.double import Provider
from tests.gateway.openai_talk import chat_whole, function_call, reasoned, responses_whole
from tests.gateway.openai_talk import said as said_item
from tests.telemetry.events import pairs, post

pytestmark = [pytest.mark.django_db, pytest.mark.processes]  # OpenAI's SDK runs uname

JSON = dict[str, Any]
PROTOBUF = "application/x-protobuf"
# Importing them takes seconds, even in runs that do not include these tests.
OPEN_INFERENCE = "openinference.instrumentation.anthropic.AnthropicInstrumentor"
OPEN_LLMETRY = "opentelemetry.instrumentation.anthropic.AnthropicInstrumentor"
OPENAI = "opentelemetry.instrumentation.genai.openai.OpenAIInstrumentor"
TOOLS: list[Any] = [
    {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
]
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@contextmanager
def instrumented(name: str, exporter: SpanExporter) -> Iterator[Tracer]:
    instrumentor = import_string(name)()
    traces = TracerProvider(resource=Resource.create({"service.name": "shop", "team.id": "growth"}))
    traces.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor.instrument(tracer_provider=traces)
    try:
        yield traces.get_tracer("shop")
    finally:
        instrumentor.uninstrument()


def claude(provider: Provider, rounds: int = 2) -> None:
    """Run an agent with one tool call."""
    import anthropic

    client = anthropic.Anthropic(api_key="sk-ant", base_url=provider.url)
    history: list[Any] = [{"role": "user", "content": "List the files."}]
    answers = [[text("I look."), tool_use("t1", command="ls")], [text("Two files.")]]
    for answer in answers[:rounds]:
        provider.script = [whole(*answer)]
        message = client.messages.create(
            model="claude-sonnet-5-5", max_tokens=100, messages=history, system="Be brief.", tools=TOOLS
        )
        history.append({"role": "assistant", "content": [block.to_dict() for block in message.content]})
        history.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a b"}]}
        )


def gpt(provider: Provider) -> None:
    import openai

    client = openai.OpenAI(api_key="sk", base_url=f"{provider.url}/v1")
    history: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "List the files."},
    ]
    answers: list[JSON] = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "content": "Two files."},
    ]
    for answer in answers:
        provider.script = [chat_whole(answer)]
        message = client.chat.completions.create(model="gpt-5", messages=history).choices[0].message
        history += [message.to_dict(), {"role": "tool", "tool_call_id": "c1", "content": "a b"}]


def gpt_responses(provider: Provider) -> None:
    import openai

    client = openai.OpenAI(api_key="sk", base_url=f"{provider.url}/v1")
    history: list[Any] = [{"role": "user", "content": "List the files."}]
    thought = {"status": "completed", "summary": [{"type": "summary_text", "text": "Hm."}]}
    answers = [
        [reasoned() | thought, said_item("I look."), function_call("c1", "ls"), function_call("c2", "ls")],
        [said_item("Two files.")],
    ]
    for number, answer in enumerate(answers):
        provider.script = [responses_whole(*answer, id=f"resp_{number}")]
        client.responses.create(model="gpt-5", input=history, instructions="Be brief.")
        history += answer
        history += [{"type": "function_call_output", "call_id": id, "output": "a b"} for id in ("c1", "c2")]


def stored(session: AgentSession) -> list[JSON]:
    return [message_body(row) for row in session.messages.select_related("blob").order_by("position")]


def export(key: str, exporter: InMemorySpanExporter) -> None:
    body = encode_spans(exporter.get_finished_spans()).SerializeToString()
    response = post(key, body, signal="traces", type=PROTOBUF, compressed=True)
    assert (response.status_code, response.content) == (200, b"")


class TestInstrumentations:
    @pytest.mark.parametrize("instrumentor", [OPEN_LLMETRY, OPEN_INFERENCE])
    def test_anthropic(self, provider: Provider, api_key: str, instrumentor: str) -> None:
        exporter = InMemorySpanExporter()
        with instrumented(instrumentor, exporter):
            claude(provider)
        for _ in range(2):  # repeated exports add nothing
            export(api_key, exporter)
        [session] = AgentSession.objects.all()
        assert [message["role"] for message in stored(session)] == ["user", "assistant", "user", "assistant"]
        assert stored(session)[1]["content"][1] == {
            "type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"},
        }  # fmt: skip
        assert stored(session)[2]["content"][0]["tool_use_id"] == "t1"
        usage = session.turns.order_by("index").values_list(
            "uncached_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"
        )
        assert list(usage) == [(12, 4_000, 300, 57)] * 2
        assert (session.format, session.agent, session.tags) == ("anthropic", "shop", ["team.id:growth"])
        assert session.title == "List the files."
        assert session.preambles.get().tools is not None
        assert session.cost_microusd > 0

    def test_openai(self, provider: Provider, api_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
        exporter = InMemorySpanExporter()
        with instrumented(OPENAI, exporter):
            gpt(provider)
        export(api_key, exporter)
        [session] = AgentSession.objects.all()
        assert stored(session) == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "List the files."},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "a b"},
            {"role": "assistant", "content": "Two files."},
        ]
        assert (session.turn_count, session.uncached_tokens, session.cache_read_tokens) == (2, 200, 1_800)

    def test_openai_responses(
        self, provider: Provider, api_key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The spans have one message for each item of an answer, and group them differently in prompts."""
        monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
        exporter = InMemorySpanExporter()
        with instrumented(OPENAI, exporter):
            gpt_responses(provider)
        export(api_key, exporter)
        [session] = AgentSession.objects.all()
        assert session.turn_count == 2
        function = {"name": "ls", "arguments": "{}"}
        calls = [{"id": id, "type": "function", "function": function} for id in ("c1", "c2")]
        assert stored(session) == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "List the files."},
            {"role": "assistant", "content": "I look.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "a b"},
            {"role": "tool", "tool_call_id": "c2", "content": "a b"},
            {"role": "assistant", "content": "Two files."},
        ]

    def test_without_content_the_usage_is_stored(self, provider: Provider, api_key: str) -> None:
        exporter = InMemorySpanExporter()
        with instrumented(OPENAI, exporter) as tracer, tracer.start_as_current_span("run"):
            gpt(provider)
        export(api_key, exporter)
        [session] = AgentSession.objects.all()
        assert (session.turn_count, session.message_count, session.output_tokens) == (2, 0, 40)
        assert session.turns.get(index=0).duration_ms is not None

    @pytest.mark.django_db(transaction=True)
    def test_the_exporter_of_the_sdk(self, provider: Provider, served_url: str, api_key: str) -> None:
        exporter = OTLPSpanExporter(
            endpoint=f"{served_url}/otel/v1/traces",
            headers={"authorization": f"Bearer {api_key}"},
            compression=Compression.Gzip,
        )
        with instrumented(OPEN_LLMETRY, exporter):
            claude(provider)
        [session] = AgentSession.objects.all()
        assert (session.turn_count, session.message_count) == (2, 4)


def span(number: int = 1, **attributes: Any) -> JSON:
    start = 1_795_352_015_000_000_000 + number * 1_000_000_000
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": f"{number:016x}",
        "name": "chat",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 250_000_000),
        "attributes": pairs(attributes),
    }


def send(key: str, *spans: JSON) -> None:
    response = post(key, {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}, signal="traces")
    assert (response.status_code, response.content) == (200, b"{}")


def parts(kind: str, **fields: Any) -> str:
    return json.dumps([{"type": kind, **fields}])


def said(role: str, kind: str, **fields: Any) -> str:
    return json.dumps([{"role": role, "parts": [{"type": kind, **fields}]}])


CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5"}
OPENINFERENCE = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-5", "llm.token_count.prompt": 100}
USED = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5}


def message_item(words: str) -> JSON:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"id": f"msg_{len(words)}", "type": "message", "role": "assistant", "content": content}


class TestSessions:
    @pytest.mark.parametrize(
        "name",
        ["gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id"],
    )
    def test_the_conversation_names_the_session(self, api_key: str, name: str) -> None:
        send(api_key, span(1, **CHAT, **USED, **{name: "talk-1"}))
        assert AgentSession.objects.get().external_id == "talk-1"

    def test_another_span_of_the_trace_may_name_it(self, api_key: str) -> None:
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "talk-1"}
        send(api_key, span(1, **CHAT, **USED), span(2, **agent, **USED))
        session = AgentSession.objects.get()
        assert (session.external_id, session.turn_count) == ("talk-1", 1)

    def test_otherwise_the_trace_is_the_session(self, api_key: str) -> None:
        send(api_key, span(1, **CHAT, **USED), span(2, **CHAT, **USED))
        session = AgentSession.objects.get()
        assert session.external_id == "trace-5b8efff798038103d269b633813fc60c"
        assert session.turn_count == 2


class TestConventions:
    @pytest.mark.parametrize(
        "attributes",
        [
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]',
                "gen_ai.output.messages": [
                    {"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}
                ],
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.cache_read.input_tokens": 60,
            },
            {
                "llm.request.type": "chat",
                "gen_ai.prompt.0.role": "user",
                "gen_ai.prompt.0.content": "Hi",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "Hello",
                "gen_ai.usage.prompt_tokens": "100",
                "gen_ai.usage.cache_read_input_tokens": 60,
            },
            {
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": "Hi",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": "Hello",
                "llm.token_count.prompt": 100,
                "llm.token_count.prompt_details.cache_read": 60,
            },
        ],
        ids=["current", "OpenLLMetry", "OpenInference"],
    )
    def test_names_of_attributes(self, api_key: str, attributes: JSON) -> None:
        send(api_key, span(1, **attributes))
        session = AgentSession.objects.get()
        assert stored(session) == [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
        ]
        assert (session.uncached_tokens, session.cache_read_tokens) == (40, 60)

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["without content first", "with content first"])
    @pytest.mark.parametrize("exports", [1, 2])
    def test_two_spans_of_one_call(self, api_key: str, order: tuple[int, int], exports: int) -> None:
        """Anthropic's SDK emits a span without content, in addition to that of an instrumentation."""
        named = CHAT | USED | {"gen_ai.response.id": "msg_1", "session.id": "talk-1"}
        message = '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'
        both = [span(1, **named), span(1, **named, **{"gen_ai.input.messages": message})]
        spans = [both[index] for index in order]
        for part in [spans] if exports == 1 else [spans[:1], spans[1:], spans]:
            send(api_key, *part)
        session = AgentSession.objects.get()
        assert (session.turn_count, session.message_count, session.uncached_tokens) == (1, 1, 100)

    def test_two_spans_of_one_call_in_different_traces(self, api_key: str) -> None:
        named = CHAT | USED | {"gen_ai.response.id": "msg_1"}
        message = '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'
        send(
            api_key,
            span(1, **named),
            span(2, **named, **{"gen_ai.input.messages": message}) | {"traceId": "cd" * 16},
        )
        session = AgentSession.objects.get()
        assert (session.turn_count, session.message_count) == (1, 1)

    @pytest.mark.parametrize("provider", ["anthropic", "openai"])
    def test_a_call_that_sends_only_the_results_of_its_tools(self, api_key: str, provider: str) -> None:
        """The provider stores the messages before them: a message thread, or `previous_response_id`."""
        named = CHAT | USED | {"gen_ai.provider.name": provider, "gen_ai.conversation.id": "talk-1"}
        named["gen_ai.system_instructions"] = parts("text", content="Be brief.")
        call = {"id": "c1", "name": "ls", "arguments": {}}
        output = [{"type": "text", "text": "a.py"}, {"type": "text", "text": "b.py"}]
        first = {
            "gen_ai.input.messages": said("user", "text", content="List the files."),
            "gen_ai.output.messages": said("assistant", "tool_call", **call),
        }
        second = {
            "gen_ai.input.messages": said("user", "tool_call_response", id="c1", response=output),
            "gen_ai.output.messages": said("assistant", "text", content="Two files."),
        }
        send(api_key, span(1, **named, **first), span(2, **named, **second))
        session = AgentSession.objects.get()
        assert session.turn_count == 2
        *_, asked, result, answer = stored(session)
        assert (asked["role"], answer["role"]) == ("assistant", "assistant")
        text = result["content"] if provider == "openai" else result["content"][0]["content"]
        assert text == "a.py\nb.py"

    @pytest.mark.parametrize("is_stored", [False, True], ids=["whole history", "previous_response_id"])
    def test_items_of_the_responses_api(self, api_key: str, is_stored: bool) -> None:
        """OpenInference records them as JSON, and as messages that lack the ids."""
        asked, more = ({"role": "user", "content": words} for words in ("List the files.", "And now?"))
        looked: list[JSON] = [
            {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
            {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
            {"id": "fc_2", "type": "function_call", "call_id": "c2", "name": "ls", "arguments": "{}"},
        ]
        listed = [{"type": "function_call_output", "call_id": id, "output": "a.py"} for id in ("c1", "c2")]
        answers = [looked, *([message_item(words)] for words in ("One file.", "Still one."))]
        sent, spans, previous = list[JSON](), list[JSON](), ""
        for number, (new, answer) in enumerate(zip([[asked], listed, [more]], answers, strict=True)):
            sent += new
            stored_by_provider = {"previous_response_id": previous} if previous and is_stored else {}
            request = {"input": new if is_stored else sent, "instructions": "Be brief.", **stored_by_provider}
            previous = f"resp_{number}"
            response = {
                "id": previous,
                "object": "response",
                "output": [{"status": None, **i} for i in answer],
            }
            attributes = {"input.value": json.dumps(request), "output.value": json.dumps(response)}
            spans.append(span(number, **OPENINFERENCE, **attributes) | {"traceId": f"{number:032x}"})
            sent += answer
        for each in spans:
            send(api_key, each)
        [session] = AgentSession.objects.all()
        assert stored(session) == sent
        assert (session.format, session.turn_count) == ("openai-responses", 3)

    @pytest.mark.parametrize("with_content", [True, False])
    def test_a_turn_has_the_time_and_the_price_of_its_call(self, api_key: str, with_content: bool) -> None:
        """An exporter retries for minutes, and a collector for hours."""
        price = {"uncached": 7_000_000, "cache_read": 0, "cache_write": 0, "output": 0}
        dated = {"model": "gpt-5", "first": "2026-11-01", "last": "2026-11-22", **price}
        Project.objects.update(custom_prices=[dated])
        message = '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'
        content = {"gen_ai.input.messages": message} if with_content else {}
        send(api_key, span(1, **CHAT, **USED, **content))
        session, turn = AgentSession.objects.get(), Turn.objects.get()
        assert turn.at == datetime.fromtimestamp(1_795_352_016.25, UTC)
        assert session.started_at == turn.at
        assert turn.cost_microusd == 700

    def test_input_tokens_that_exclude_cached_ones(self, api_key: str) -> None:
        send(api_key, span(1, **CHAT, **USED, **{"gen_ai.usage.cache_read.input_tokens": 4_000}))
        session = AgentSession.objects.get()
        assert (session.uncached_tokens, session.cache_read_tokens) == (100, 4_000)

    def test_the_ai_sdk_names_the_session_and_cached_tokens_in_its_own_attributes(self, api_key: str) -> None:
        cached = {"cacheReadTokens": 60, "cacheWriteTokens": 30}
        used = {f"ai.usage.inputTokenDetails.{name}": tokens for name, tokens in cached.items()}
        send(api_key, span(1, **CHAT, **USED, **used, **{"ai.telemetry.metadata.sessionId": "s-1"}))
        session = AgentSession.objects.get()
        assert session.external_id == "s-1"
        assert (session.uncached_tokens, session.cache_read_tokens, session.cache_write_tokens) == (
            10,
            60,
            30,
        )

    def test_content_in_an_event_of_the_span(self, api_key: str) -> None:
        message = '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'
        details = {
            "name": "gen_ai.client.inference.operation.details",
            "attributes": pairs({"gen_ai.input.messages": message}),
        }
        send(api_key, span(1, **CHAT, **USED) | {"events": [details]})
        assert stored(AgentSession.objects.get()) == [{"role": "user", "content": "Hi"}]

    @pytest.mark.parametrize("provider", ["anthropic", "openai"])
    def test_reasoning_and_tools_of_the_provider_are_left_out(self, api_key: str, provider: str) -> None:
        """A later request cannot repeat them. Pydantic AI has its own names for them."""
        answered = [
            {"type": "thinking", "content": "Hm."},
            {"type": "reasoning", "content": "Hm."},
            {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {"type": "w"}},
            {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": {"type": "w"}},
            {"type": "tool_call", "id": "s2", "name": "web_search", "arguments": "{}", "builtin": True},
            {"type": "tool_call_response", "id": "s2", "name": "web_search", "result": [], "builtin": True},
            {"type": "text", "content": "Two files."},
        ]
        content = {
            "gen_ai.provider.name": provider,
            "gen_ai.input.messages": said("user", "text", content="List the files."),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": answered}]),
        }
        send(api_key, span(1, **CHAT, **USED, **content))
        _, answer = stored(AgentSession.objects.get())
        texts = {"anthropic": [{"type": "text", "text": "Two files."}], "openai": "Two files."}
        assert answer == {"role": "assistant", "content": texts[provider]}

    @pytest.mark.parametrize("provider", ["anthropic", "openai"])
    def test_images_and_documents(self, api_key: str, provider: str) -> None:
        image = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBO"}
        document = {"type": "blob", "modality": "document", "content": "JVBE"}
        file = {"type": "file", "modality": "document", "file_id": "file-1"}
        sent = [{"role": "user", "parts": [image, document, file]}]
        content = {"gen_ai.provider.name": provider, "gen_ai.input.messages": json.dumps(sent)}
        send(api_key, span(1, **CHAT, **USED, **content))
        [message] = stored(AgentSession.objects.get())
        text = {"type": "text", "text": json.dumps(file, separators=(",", ":"))}
        if provider == "openai":
            pdf = {"filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBE"}
            assert message["content"] == [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
                {"type": "file", "file": pdf},
                text,
            ]
        else:
            png, pdf = (
                {"type": "base64", "media_type": type, "data": data}
                for type, data in (("image/png", "iVBO"), ("application/pdf", "JVBE"))
            )
            blocks = [{"type": "image", "source": png}, {"type": "document", "source": pdf}]
            assert message["content"] == [*blocks, text]

    @pytest.mark.parametrize("provider", ["anthropic", "openai"])
    def test_audio_and_video_are_no_text(self, api_key: str, provider: str) -> None:
        data = "UklGRiQAAABXQVZF" * 1_000
        sent = [
            {"type": "text", "content": "Transcribe these."},
            {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": data},
            {"type": "blob", "mime_type": "video/mp4", "content": data},
            {"type": "binary", "media_type": "audio/mpeg", "content": data},  # of Pydantic AI
        ]
        answered = [
            {"type": "text", "content": "Done."},
            {"type": "blob", "modality": "audio", "content": data},
        ]
        content = {
            "gen_ai.provider.name": provider,
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": sent}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": answered}]),
        }
        send(api_key, span(1, **CHAT, **USED, **content))
        session = AgentSession.objects.get()
        question, answer = stored(session)
        assert data not in json.dumps(answer)
        assert "[audio block]" in json.dumps(answer)
        if provider == "openai":
            assert question["content"][1:] == [
                {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
                {
                    "type": "file",
                    "file": {"filename": "file.mp4", "file_data": f"data:video/mp4;base64,{data}"},
                },
                {"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}},
            ]
        else:  # the API has no such blocks
            notes = ["[audio block]", "[video block]", "[audio block]"]
            assert [block["text"] for block in question["content"][1:]] == notes

    @pytest.mark.parametrize("provider", ["anthropic", "openai"])
    @pytest.mark.parametrize(
        "image",
        [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
            {"type": "image", "data": "iVBO", "mimeType": "image/png"},  # of MCP
            {"kind": "binary", "media_type": "image/png", "data": "iVBO"},  # of Pydantic AI
        ],
    )
    def test_an_image_in_the_result_of_a_tool(self, api_key: str, provider: str, image: JSON) -> None:
        call = {"type": "tool_call", "id": "t1", "name": "screenshot", "arguments": "{}"}
        result = {"type": "tool_call_response", "id": "t1", "response": ["Taken.", image]}
        sent = [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [result]}]
        content = {"gen_ai.provider.name": provider, "gen_ai.input.messages": json.dumps(sent)}
        send(api_key, span(1, **CHAT, **USED, **content))
        _, message = stored(AgentSession.objects.get())
        blocks = message["content"] if provider == "openai" else message["content"][0]["content"]
        source = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
        expected = {
            "openai": {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
            "anthropic": {"type": "image", "source": source},
        }
        assert blocks == [{"type": "text", "text": "Taken."}, expected[provider]]

    def test_a_result_that_only_resembles_an_image_is_text(self, api_key: str) -> None:
        found = {"type": "image", "content": "A photo of a cat."}
        call = {"type": "tool_call", "id": "t1", "name": "describe", "arguments": "{}"}
        result = {"type": "tool_call_response", "id": "t1", "response": [found]}
        sent = [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [result]}]
        content = {"gen_ai.provider.name": "openai", "gen_ai.input.messages": json.dumps(sent)}
        send(api_key, span(1, **CHAT, **USED, **content))
        _, message = stored(AgentSession.objects.get())
        assert json.loads(message["content"]) == [found]

    def test_audio_and_images_of_an_indexed_history(self, api_key: str) -> None:
        source = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
        openinference = {
            "openinference.span.kind": "LLM",
            "llm.provider": "openai",
            "llm.token_count.prompt": 9,
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.contents.0.message_content.type": "audio",
            "llm.input_messages.0.message.contents.0.message_content.audio.audio.url": (
                "data:audio/wav;base64,UklGR"
            ),
        }
        openllmetry = {
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": json.dumps([{"type": "image", "source": source}]),
        }
        send(api_key, span(1, **openinference))
        send(api_key, span(2, **CHAT, **USED, **{"gen_ai.provider.name": "anthropic"}, **openllmetry))
        [heard], [seen] = (stored(each) for each in AgentSession.objects.order_by("created_at"))
        audio = {"data": "UklGR", "format": "wav"}
        assert heard["content"] == [{"type": "input_audio", "input_audio": audio}]
        assert seen["content"] == [{"type": "image", "source": source}]

    def test_tools_of_an_indexed_history(self, api_key: str) -> None:
        send(
            api_key,
            span(
                1,
                **{
                    "openinference.span.kind": "LLM",
                    "llm.provider": "anthropic",
                    "llm.token_count.prompt": 9,
                    "llm.input_messages.0.message.role": "assistant",
                    "llm.input_messages.0.message.tool_calls.0.tool_call.id": "t1",
                    "llm.input_messages.0.message.tool_calls.0.tool_call.function.name": "ls",
                    "llm.input_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"a": 1}',
                    "llm.input_messages.1.message.role": "tool",
                    "llm.input_messages.1.message.tool_call_id": "t1",
                    "llm.input_messages.1.message.content": "a b",
                },
            ),
        )
        assert stored(AgentSession.objects.get()) == [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {"a": 1}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a b"}],
            },
        ]

    @pytest.mark.parametrize(
        "attributes",
        [
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ls"},
            {"openinference.span.kind": "TOOL", "tool.name": "ls"},
            {"traceloop.span.kind": "tool", "traceloop.entity.name": "ls"},
        ],
        ids=["current", "OpenInference", "OpenLLMetry"],
    )
    def test_runs_of_tools_have_a_duration(self, api_key: str, attributes: JSON) -> None:
        send(api_key, span(1, **attributes, **{"session.id": "talk-1"}))
        run = ToolRun.objects.get()
        assert (run.name, run.duration_ms, run.is_error) == ("ls", 250, False)

    def test_other_spans_are_ignored(self, api_key: str) -> None:
        send(
            api_key,
            span(1, **{"http.request.method": "GET"}),
            span(2, **{"gen_ai.operation.name": "invoke_agent"}, **USED),
            span(3, **{"gen_ai.operation.name": "embeddings"}, **USED),
            span(4, **CHAT),
        )
        assert not AgentSession.objects.exists()

    @pytest.mark.parametrize("name", ["gen_ai.operation.name", "openinference.span.kind", "llm.request.type"])
    def test_an_attribute_with_a_list_hides_no_other_span(self, api_key: str, name: str) -> None:
        send(api_key, span(1, **CHAT, **USED), span(2, **USED, **{name: ["chat"]}))
        assert Turn.objects.count() == 1


def test_messages_of_no_dialect_leave_the_usage(api_key: str) -> None:
    """The export reports the rejected messages. Repeating it adds nothing."""
    odd = {"input.value": json.dumps({"messages": [{"role": "acme", "content": 5}]})}
    usage = {"gen_ai.request.model": "m-1", "gen_ai.usage.input_tokens": 100}
    export = {"resourceSpans": [{"scopeSpans": [{"spans": [span(1, **odd, **usage)]}]}]}
    for _ in range(2):
        assert b"rejectedSpans" in post(api_key, export, signal="traces").content
    session = AgentSession.objects.get()
    assert (session.turn_count, session.message_count, session.uncached_tokens) == (1, 0, 100)
